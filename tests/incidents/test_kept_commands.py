"""What earlier versions commanded in the recorded incidents: this version commands the same.

`commands/` is never edited, see its README. A command may get a new field; no field that was kept may change or go.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from evictstream.streams.replay.replay import Replay
from evictstream.streams.settings import Settings
from tests.streams.replay.recorded import EVICTED, INCIDENTS, PARTITIONS, incident

KEPT = Path(__file__).parent / "commands"
RECORDINGS = {
    folder.name: folder for parent in (INCIDENTS, EVICTED) for folder in sorted(parent.iterdir()) if folder.is_dir()
}
AFTERMATH_SECONDS = 60.0


def commands_of(folder: Path) -> list[bytes]:
    replay = Replay(Settings(), partitions=PARTITIONS, plays_executor=True)
    messages = sorted([*replay.run(incident(folder)), *replay.run_on(AFTERMATH_SECONDS)])
    return [message.value for message in messages if message.topic == "commands"]


def changed(kept: object, now: object) -> bool:
    """Whether something that was kept is another now; a field more is no change."""
    if isinstance(kept, dict) and isinstance(now, dict):
        return any(name not in now or changed(value, now[name]) for name, value in kept.items())
    return kept != now


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_commands_are_those_of_earlier_versions(name: str) -> None:
    kept = [json.loads(line) for line in gzip.decompress((KEPT / f"{name}.jsonl.gz").read_bytes()).splitlines()]
    now = [json.loads(line) for line in commands_of(RECORDINGS[name])]
    assert [(one["action"], one["podUid"]) for one in now] == [(one["action"], one["podUid"]) for one in kept]
    assert [(old, new) for old, new in zip(kept, now, strict=True) if changed(old, new)] == []


def test_kept_commands_are_not_edited() -> None:
    sums = (KEPT / "SHA256SUMS").read_text().splitlines()
    names = sorted(f"{name}.jsonl.gz" for name in RECORDINGS)
    assert [f"{hashlib.sha256((KEPT / name).read_bytes()).hexdigest()}  {name}" for name in names] == sums


@pytest.mark.parametrize(
    ("now", "is_changed"),
    [
        pytest.param({"deadline": "a", "reason": {"verdict": "x"}}, False, id="the same"),
        pytest.param({"deadline": "a", "reason": {"verdict": "x", "row": 4}, "new": 1}, False, id="fields more"),
        pytest.param({"deadline": "b", "reason": {"verdict": "x"}}, True, id="another deadline"),
        pytest.param({"deadline": "a", "reason": {"verdict": "y"}}, True, id="another verdict"),
        pytest.param({"reason": {"verdict": "x"}}, True, id="a field less"),
    ],
)
def test_only_what_was_kept_may_not_change(now: dict[str, object], is_changed: bool) -> None:  # noqa: FBT001
    assert changed({"deadline": "a", "reason": {"verdict": "x"}}, now) is is_changed
