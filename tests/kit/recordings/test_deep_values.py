"""JSON that is deeper than Python reads ends no tool: it is passed over, or said to be unreadable."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from evictstream.kit.conformance.executor_evidence import SeenResult
from evictstream.kit.conformance.feed_evidence import FeedRecord
from evictstream.kit.conformance.topic_recorder import SeenRecord
from evictstream.kit.oracle.reading import UnreadableRecordError, read
from evictstream.kit.oracle.records import InputRecord
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.recordings.recording_check import UNREADABLE, RecordingCheck
from evictstream.kit.recordings.trimming import trimmed
from evictstream.kit.replay.edited_records import with_toleration_seconds
from evictstream.models.kubernetes.shapes import Kind
from tests.faults.numbers import NUMBERS

LEVELS = 20_000  # more than any Python reads
DEEP = b'{"object":' * LEVELS + b"1" + b"}" * LEVELS


def recorded() -> RecordedRecord:
    return RecordedRecord(topic="pods", partition=0, offset=0, timestamp=1, key=b"c", value=DEEP)


def seen() -> SeenRecord:
    return SeenRecord(at=1.0, topic="pods", partition=0, offset=0, key=b"c", value=DEEP)


def checked() -> bool:
    check = RecordingCheck()
    check.take([recorded()])
    return UNREADABLE in str(check.summary())


def judged() -> bool:
    limits = NUMBERS.limits()
    record = InputRecord(topic="pods", partition=0, offset=0, append_at_us=1, key=b"c", value=DEEP)
    with pytest.raises(UnreadableRecordError):
        read(record, limits, 1)
    return True


def kept(kind: Kind) -> bool:
    return bytes(trimmed(kind, msgspec.Raw(DEEP))) == DEEP


@pytest.mark.parametrize(
    "is_passed_over",
    [
        pytest.param(lambda: kept("Pod"), id="trimming"),
        pytest.param(lambda: list(with_toleration_seconds([recorded()], {"a": 1})) == [recorded()], id="other seconds"),
        pytest.param(checked, id="the check of a recording"),
        pytest.param(lambda: bool(FeedRecord.of(seen()).problem), id="evidence about a feed"),
        pytest.param(lambda: bool(SeenResult.of(seen()).problem), id="evidence about an executor"),
        pytest.param(judged, id="the oracle"),
    ],
)
def test_a_very_deep_value_is_passed_over(is_passed_over: Callable[[], bool]) -> None:
    assert is_passed_over()
