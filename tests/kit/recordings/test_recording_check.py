"""What is odd about a recording is found, counted and placed; what is in order is not."""

from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.recordings.recording_check import (
    ASSUMED,
    FOREIGN,
    MISSING_OFFSETS,
    MOST_PLACES,
    SILENCES,
    TIMES_BACK,
    UNREADABLE,
    VERSIONS_BACK,
    RecordingCheck,
)


def record(
    offset: int, *, at_ms: int = 1_000, version: int = 1, cluster: str = "lab", epoch: int = 1
) -> RecordedRecord:
    thing = {"kind": "Node", "metadata": {"uid": "u", "resourceVersion": str(version)}}
    value = {"cluster": cluster, "epoch": epoch, "type": "MODIFIED", "object": thing}
    return RecordedRecord(
        topic="nodes", partition=3, offset=offset, timestamp=at_ms, key=b"lab", value=json.dumps(value).encode()
    )


def checked(*records: RecordedRecord) -> RecordingCheck:
    check = RecordingCheck()
    check.take(records)
    return check


@pytest.mark.parametrize(
    ("second", "kind", "count", "place"),
    [
        pytest.param(record(4), MISSING_OFFSETS, 3, "nodes, partition 3, offset 4, 3 before", id="offsets"),
        pytest.param(record(1, at_ms=400), TIMES_BACK, 1, "nodes, partition 3, offset 1, by 600 ms", id="times"),
        pytest.param(record(1, version=0), VERSIONS_BACK, 1, "nodes, partition 3, offset 1, 0 after 1", id="versions"),
        pytest.param(record(1, cluster="b"), FOREIGN, 1, "nodes, partition 3, offset 1, b", id="another cluster"),
        pytest.param(
            record(1, at_ms=61_001),
            SILENCES,
            1,
            "nodes, partition 3, offset 1, lab since 1970-01-01T00:00:01.000000Z",
            id="silence",
        ),
        pytest.param(
            msgspec.structs.replace(record(1), value=b"{"), UNREADABLE, 1, "nodes, partition 3, offset 1", id="no event"
        ),
    ],
)
def test_each_oddity_is_counted_and_placed(second: RecordedRecord, kind: str, count: int, place: str) -> None:
    found = checked(record(0), second)
    assert dict(found.counts) == {kind: count}
    assert found.places[kind] == [place]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(record(1, at_ms=61_000), id="a minute later"),
        pytest.param(record(1, version=1), id="the same version, listed again"),
        pytest.param(record(1, version=0, epoch=2), id="another epoch"),
        pytest.param(msgspec.structs.replace(record(1), value=None), id="a tombstone"),
    ],
)
def test_what_is_in_order_is_not_found(second: RecordedRecord) -> None:
    assert not checked(record(0), second).counts


def test_all_are_counted_and_the_first_are_placed() -> None:
    found = checked(*(record(2 * number) for number in range(20)))
    assert found.counts[MISSING_OFFSETS] == 19
    assert len(found.places[MISSING_OFFSETS]) == MOST_PLACES


def test_a_program_gets_every_kind() -> None:
    findings = checked(record(0)).summary()["findings"]
    assert isinstance(findings, list)
    assert [one["what"] for one in findings] == list(ASSUMED)
