"""Fetched records: the same as aiokafka gives, whatever producers and transactions have left in the log."""

from __future__ import annotations

import itertools
import struct
from typing import Any, NamedTuple

import crc32c
import pytest
from aiokafka import errors as kafka_errors
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from evictstream.streams.engine.kafka.fetched_batches import AnswerParts, DecodedRecords, FetchedBatches

PLACE = TopicPartition("nodes", 0)
CONTROL = 0b10_0000
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


class Written(NamedTuple):
    """One record batch; `marker` makes it a control batch."""

    values: tuple[bytes | None, ...] = (b"value",)
    producer: int = -1
    is_transactional: bool = False
    codec: int = 0
    hole: int = 0
    marker: bytes | None = None


def log_of(batches: list[Written], first: int = 0) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a log, and its aborted transactions as a broker names them: producer and first offset."""
    log, offset, begun, aborted = bytearray(), first, dict[int, int](), list[tuple[int, int]]()
    for batch in batches:
        is_marker = batch.marker is not None
        builder = DefaultRecordBatchBuilder(
            2, batch.codec, int(batch.is_transactional or is_marker), batch.producer, 0, 0, 1 << 20
        )
        records = [(batch.marker, b"\0\0\0\0\0\0")] if is_marker else [(b"a/key", value) for value in batch.values]
        for number, (key, value) in enumerate(records):
            builder.append(number, 1_700_000_000_000 + number, key, value, [("kind", b"x")])
        raw = bytearray(builder.build())
        struct.pack_into(">q", raw, 0, offset)
        if is_marker:
            raw[22] |= CONTROL
            struct.pack_into(">I", raw, 17, crc32c.crc32c(raw[21:]))
        log += raw
        if is_marker:
            begin = begun.pop(batch.producer, None)
            if batch.marker == ABORT and begin is not None:
                aborted.append((batch.producer, begin))
        elif batch.is_transactional:
            begun.setdefault(batch.producer, offset)
        offset += len(records) + batch.hole
    return bytes(log), aborted


def read(
    log: bytes, aborted: list[tuple[int, int]], position: int, isolation: int, *, limit: int = 1, is_ours: bool
) -> object:
    """Take `limit` records again and again; returns them, and where the reader stands after each time."""
    memory, reader = (FetchedBatches, DecodedRecords) if is_ours else (MemoryRecords, PartitionRecords)
    records = reader(PLACE, memory(log), list(aborted), position, None, None, True, isolation)  # noqa: FBT003
    found = []
    while True:
        taken: list[Any] = records.take(limit) if is_ours else list(itertools.islice(records, limit))
        found.append(([_seen(record) for record in taken], records.next_fetch_offset))
        if len(taken) < limit:
            return found


def _seen(record: Any) -> object:
    return record.offset, record.timestamp, record.timestamp_type, record.key, record.value, tuple(record.headers)


codecs = st.sampled_from([0, 1, 2, 3, 4])
values = st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=4).map(tuple)
plain = st.builds(lambda found, codec, hole: Written(found, codec=codec, hole=hole), values, codecs, st.integers(0, 3))
transactional = st.builds(
    lambda found, codec, producer: Written(found, producer, True, codec),  # noqa: FBT003
    values,
    codecs,
    st.integers(1, 2),
)
markers = st.builds(
    lambda producer, marker: Written(producer=producer, marker=marker),
    st.integers(1, 2),
    st.sampled_from([ABORT, COMMIT]),
)


@given(
    batches=st.lists(plain | transactional | markers, max_size=8),
    behind=st.integers(0, 6),
    cut=st.integers(0, 90),
    isolation=st.sampled_from([READ_COMMITTED, READ_UNCOMMITTED]),
    limit=st.integers(1, 9),
)
def test_records_and_positions_are_those_of_aiokafka(
    batches: list[Written], behind: int, cut: int, isolation: int, limit: int
) -> None:
    log, aborted = log_of(batches, first=100)
    log = log[: len(log) - cut]
    ours = read(log, aborted, 100 + behind, isolation, limit=limit, is_ours=True)
    assert ours == read(log, aborted, 100 + behind, isolation, limit=limit, is_ours=False)


def test_an_aborted_transaction_has_no_records() -> None:
    log, aborted = log_of(
        [
            Written((b"lost",), producer=1, is_transactional=True),
            Written((b"kept",), producer=2, is_transactional=True),
            Written(producer=1, marker=ABORT),
            Written((b"anew",), producer=1, is_transactional=True),
            Written(producer=1, marker=COMMIT),
            Written(producer=2, marker=COMMIT),
        ]
    )
    records = DecodedRecords(PLACE, FetchedBatches(log), aborted, 0, None, None, True, READ_COMMITTED)  # noqa: FBT003
    assert [record.value for record in records] == [b"kept", b"anew"]
    assert records.next_fetch_offset == 6


def test_a_flipped_byte_is_refused_with_its_partition() -> None:
    log = bytearray(log_of([Written((b"value",))])[0])
    log[-3] ^= 1
    with pytest.raises(kafka_errors.CorruptRecordException, match="nodes"):
        read(bytes(log), [], 0, READ_COMMITTED, is_ours=True)


def test_a_batch_of_another_format_is_refused() -> None:
    log = bytearray(log_of([Written((b"value",))])[0])
    log[16] = 1
    with pytest.raises(kafka_errors.CorruptRecordException, match="format"):
        read(bytes(log), [], 0, READ_COMMITTED, is_ours=True)


def test_long_parts_of_an_answer_are_views() -> None:
    parts = AnswerParts(bytearray(b"ab" + b"x" * 5000 + b"c"))
    assert parts.read(2) == b"ab"
    assert isinstance(parts.read(5000), memoryview)
    assert parts.read(9) == b"c"
    assert parts.read(9) == b""


def test_a_record_outlives_the_answer_it_came_in() -> None:
    answer = bytearray(log_of([Written((b"value",))])[0])
    (record,) = DefaultRecordBatch(memoryview(answer))
    answer[:] = bytes(len(answer))
    assert (record.key, record.value) == (b"a/key", b"value")
