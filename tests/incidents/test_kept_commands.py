"""What earlier versions commanded in the recorded incidents: this version commands the same.

No folder of kept commands is ever edited, see their READMEs. A command may get a new field; no field that was kept may
change or go.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.replay.replay import Replay
from evictstream.streams.settings import Settings
from tests.harness.incidents import INCIDENTS, LARGEST
from tests.kit.replay.recorded import EVICTED, PARTITIONS, incident

FOLDERS = [Path(__file__).with_name(name) for name in ("commands_2", "commands")]
"""The newest first: what it holds takes the place of what the others hold."""

RECORDINGS = {
    folder.name: folder for parent in (INCIDENTS, EVICTED) for folder in sorted(parent.iterdir()) if folder.is_dir()
}
AFTERMATH_SECONDS = 60.0


def commands_of(folder: Path) -> list[bytes]:
    replay = Replay(Settings(), partitions=PARTITIONS, plays_executor=True)
    messages = sorted([*replay.run(incident(folder)), *replay.run_on(AFTERMATH_SECONDS)])
    return [message.value for message in messages if message.topic == "commands"]


def by_node(commands: Iterable[bytes]) -> list[dict[str, Any]]:
    """Read commands in the order of their times, those of one instant by node: nodes had partitions of their own."""
    return sorted(map(json.loads, commands), key=lambda one: (one["issuedAt"], one["node"]))


def changed(kept: object, now: object) -> bool:
    """Whether something that was kept is another now; a field more is no change."""
    if isinstance(kept, dict) and isinstance(now, dict):
        return any(name not in now or changed(value, now[name]) for name, value in kept.items())
    return kept != now


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name.startswith(LARGEST) else ()) for name in sorted(RECORDINGS)],
)
def test_commands_are_those_of_earlier_versions(name: str) -> None:
    newest = next(file for folder in FOLDERS if (file := folder / f"{name}.jsonl.gz").exists())
    kept = by_node(gzip.decompress(newest.read_bytes()).splitlines())
    now = by_node(commands_of(RECORDINGS[name]))
    assert [(one["action"], one["podUid"]) for one in now] == [(one["action"], one["podUid"]) for one in kept]
    assert [(old, new) for old, new in zip(kept, now, strict=True) if changed(old, new)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_kept_commands_are_not_edited(folder: Path) -> None:
    sums = (folder / "SHA256SUMS").read_text().splitlines()
    files = sorted(folder.glob("*.jsonl.gz"))
    assert [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files] == sums


def test_commands_of_every_recording_are_kept() -> None:
    assert {file.name for file in FOLDERS[-1].glob("*.jsonl.gz")} == {f"{name}.jsonl.gz" for name in RECORDINGS}


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
