"""What is worked out before the play begins: times that are moved, when to kill, when all is over."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from evictstream.kit.demo.play import expected, kill_moment_us, moved
from evictstream.kit.demo.story import demo_incident, read_incident
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.models.instants import instant_us
from evictstream.streams.errors import WrongUseError
from evictstream.streams.settings import Settings
from tests.harness.incidents import INCIDENTS
from tests.kit.demo.samples import START_US, Event, node, pod, taint, tolerates, us

SETTINGS = Settings(partitions=1)


def records(*events: Event) -> list[RecordedRecord]:
    return [
        RecordedRecord(
            topic="nodes" if event["object"]["kind"] == "Node" else "pods",
            partition=0,
            offset=offset,
            timestamp=instant_us(event["observedAt"]) // 1_000,
            key=b"lab",
            value=msgspec.json.encode(event),
        )
        for offset, event in enumerate(events)
    ]


def kill_moment(found: list[RecordedRecord]) -> int | None:
    return kill_moment_us(*expected(found, SETTINGS))


def test_moved_events_keep_their_pace_and_their_objects() -> None:
    before = records(node(0), pod(0), node(2.5))
    after = moved(before, 1_000_000)
    assert [record.appended_us - START_US for record in after] == [10**9, 10**9, 10**9 + 2_500_000]
    for old, new in zip(before, after, strict=True):
        event = json.loads(new.value or b"")
        assert instant_us(event["observedAt"]) == new.appended_us
        assert event["object"] == json.loads(old.value or b"")["object"]


def test_a_worker_is_killed_in_mid_window() -> None:
    """Half of the 52 deadlines of the peak or more are pending from 14.0 s to 32.3 s of the recorded outage."""
    evictions, end_us = expected(read_incident(demo_incident(), 1), SETTINGS)
    moment = kill_moment_us(evictions, end_us)
    assert moment is not None
    pending = sum(
        one.scheduled_at_us <= moment < (one.issued_at_us or one.cancelled_at_us or end_us)
        for one in evictions
        if one.scheduled_at_us is not None
    )
    assert pending > 26


def test_the_kill_is_amid_a_deadline_that_is_pending() -> None:
    assert kill_moment(records(node(0), pod(0, tolerates(seconds=20)), node(10, taint()))) == us(20)


def test_nobody_is_killed_when_nothing_is_pending() -> None:
    assert kill_moment(records(node(0, taint()), pod(1))) is None


@pytest.mark.parametrize(("seconds", "end"), [(50, 51), (10**9, 2)])
def test_only_deadlines_that_are_near_are_waited_for(seconds: int, end: float) -> None:
    """And a wait that lasts longer does not move the kill behind the end."""
    found = records(node(0, taint()), pod(1, tolerates(seconds=seconds)), node(2, taint()))
    _, end_us = expected(found, SETTINGS)
    moment = kill_moment(found)
    assert end_us == us(end)
    assert moment is not None
    assert us(1) <= moment <= end_us


@pytest.mark.parametrize("folder", sorted(INCIDENTS.glob("*/")), ids=lambda folder: folder.name)
def test_every_recorded_incident_can_be_played(folder: Path) -> None:
    assert read_incident(folder, 1)


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"{}\n", b"[]\n"], ids=["missing", "empty", "half an object", "no event", "a list"]
)
def test_what_cannot_be_read_is_wrong_use(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "events.jsonl.gz").write_bytes(content)
    with pytest.raises(WrongUseError, match=r"events\.jsonl\.gz"):
        read_incident(tmp_path, 1)
