"""Folders of `evictstream record`, read as changes of nodes and pods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evictstream.kit.recordings import Entry, Flaw, Skipped, open_recordings
from evictstream.kit.recordings.entries import Item
from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import RecordingWriter
from evictstream.models.instants import instant_us
from evictstream.streams.errors import WrongUseError
from tests.streams.feed.samples import line, node, pod

AT = "2026-11-21T10:00:01Z"
APPENDED = "2026-11-21T10:00:03Z"


def recorded(folder: Path, *values: tuple[Role, bytes | None]) -> list[Item]:
    with RecordingWriter(folder, partitions=1) as writer:
        for offset, (topic, value) in enumerate(values):
            writer.write(
                RecordedRecord(
                    topic=topic,
                    partition=0,
                    offset=offset,
                    timestamp=instant_us(APPENDED) // 1_000 + offset,
                    key=b"lab",
                    value=value,
                )
            )
    with open_recordings([str(folder)]) as items:
        return list(items)  # type: ignore[arg-type]  # no folder is a live watch


def test_changes_keep_their_times_and_others_have_their_append_times(tmp_path: Path) -> None:
    timeless = json.dumps({"cluster": "lab", "type": "ADDED", "object": pod()}).encode()
    items = recorded(tmp_path / "r", ("nodes", line(node(), AT).strip()), ("pods", timeless))
    entries = [item for item in items if isinstance(item, Entry)]
    assert [(item.kind, item.cluster, item.observed_at_us) for item in entries] == [
        ("Node", "lab", instant_us(AT)),
        ("Pod", "lab", instant_us(APPENDED) + 1_000),
    ]


def test_other_topics_and_signals_are_left_out_by_name(tmp_path: Path) -> None:
    signal = b'{"cluster":"lab","type":"HEARTBEAT","observedAt":"2026-11-21T10:00:01Z"}'
    items = recorded(tmp_path / "r", ("results", b"{}"), ("commands", b"{}"), ("nodes", signal))
    assert [item.type for item in items if isinstance(item, Skipped)] == ["results", "commands", "HEARTBEAT"]


def test_records_that_cannot_be_read_name_their_file_and_line(tmp_path: Path) -> None:
    items = recorded(tmp_path / "r", ("nodes", line(node(), AT).strip()), ("nodes", None), ("nodes", b"nope"))
    flaws = [str(item) for item in items if isinstance(item, Flaw)]
    assert flaws[0].endswith("r/nodes-00000, line 2: no value")
    assert "nodes-00000, line 3: BadJson" in flaws[1]


def test_a_folder_without_a_recording_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="has no recording"), open_recordings([str(tmp_path)]) as items:
        list(items)
