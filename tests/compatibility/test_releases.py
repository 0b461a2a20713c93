"""Who upgrades has the topics of an earlier release: its state leads to the same evictions, its messages are read."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evictstream.models.eviction import RowKind, split_row_key
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import decode_command
from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.decision import decode_decision
from tests.compatibility.recorded import FOLDER, ReleaseStory, bytes_of, later

RELEASES = sorted(FOLDER.glob("*.jsonl"))
OF_A_COMMAND = ("action", "evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node", "deadline")

Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(params=RELEASES, ids=[file.stem for file in RELEASES])
def release(request: pytest.FixtureRequest) -> Lines:
    found: Lines = collections.defaultdict(list)
    for line in Path(request.param).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        found[entry["what"]].append(entry)
    return found


def is_kept(before: Any, now: Any) -> bool:
    """Whether all that was said is said: fields may be added, none goes or changes."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(name in now and is_kept(before[name], now[name]) for name in before)
    return bool(before == now)


def test_the_first_release_is_among_them() -> None:
    assert "0.1.0" in [file.stem for file in RELEASES]


def test_a_recording_has_rows_of_each_kind(release: Lines) -> None:
    keys = [bytes_of(row["key"]) for row in release["row"]]
    kinds = {split_row_key(key)[0] for key in keys if not key.startswith((b"cluster\0", b"gap"))}
    assert kinds == set(RowKind)
    assert any(key.startswith(b"cluster\0") for key in keys)


def test_the_rows_of_a_release_lead_to_the_same_commands(release: Lines) -> None:
    rows = {bytes_of(row["key"]): bytes_of(row["value"]) for row in release["row"]}
    before = [[line["command"].get(name) for name in OF_A_COMMAND] for line in release["later"]]
    assert before
    assert [[command.get(name) for name in OF_A_COMMAND] for command in later(rows)] == before


READERS: dict[str, Callable[[bytes], Any]] = {"commands": decode_command, "decisions": decode_decision}


def test_the_messages_of_a_release_are_read_whole(release: Lines) -> None:
    read = collections.Counter[str]()
    for message in release["message"]:
        topic, value = message["topic"], bytes_of(message["value"])
        read[topic] += 1
        if topic in READERS:
            assert is_kept(json.loads(value), json.loads(encode(READERS[topic](value))))
        else:
            headers = [(name, bytes_of(content)) for name, content in message["headers"]]
            assert DeadLetterHeaders.from_headers(headers).reason == "BadJson"
    assert set(read) == {*READERS, "dead-letters"}
    commands = [bytes_of(one["value"]) for one in release["message"] if one["topic"] == "commands"]
    assert {json.loads(command)["action"] for command in commands} == {"Schedule", "Evict", "Cancel"}


def test_the_inputs_of_a_release_are_taken(release: Lines) -> None:
    story = ReleaseStory()
    for record in release["input"]:
        story.raw(record["at"], record["topic"], bytes_of(record["value"]), record["key"].encode())
    assert story.config.counters.dead_letters == {"BadJson": 1}
