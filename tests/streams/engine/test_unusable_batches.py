"""Batches that cannot be used: what stands for their records, where a reader stands then, and what one poll expands."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import crc32c
import pytest
from aiokafka.consumer.fetcher import READ_UNCOMMITTED

from evictstream.streams.compression import RECORDS_AT, Unusable
from evictstream.streams.engine.core.batches import UnusableRecord
from evictstream.streams.engine.kafka.fetched_batches import (
    MOST_NAMED,
    READING,
    BatchReading,
    DecodedRecords,
    FetchedBatches,
)
from tests.streams.engine.test_fetched_batches import COMMIT, PLACE, Written, log_of

LIMIT = 1 << 16
GIANT = bytes(LIMIT + 1)
ATTRIBUTES_AT, CHECKSUM_AT, COUNT_AT, DELTA_AT = 21, 17, 57, 23


@pytest.fixture(autouse=True)
def reading() -> Iterator[BatchReading]:
    found = BatchReading(LIMIT, refuses_transactions=True)
    token = READING.set(found)
    yield found
    READING.reset(token)


def reader(log: bytes, position: int = 0) -> DecodedRecords:
    return DecodedRecords(PLACE, FetchedBatches(log), [], position, None, None, True, READ_UNCOMMITTED)  # noqa: FBT003


def polled(records: DecodedRecords, reading: BatchReading) -> list[Any]:
    found = []
    while not records.is_over:
        reading.expanded_bytes = 0
        found += records.take(2_000)
    return found


def sealed(log: bytearray) -> bytes:
    struct.pack_into(">I", log, CHECKSUM_AT, crc32c.crc32c(log[ATTRIBUTES_AT:]))
    return bytes(log)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_giant_is_named_by_its_offsets(codec: int, reading: BatchReading) -> None:
    log, _ = log_of([Written(), Written((b"a", GIANT, b"c"), codec=codec), Written()])
    records = reader(log)
    found = polled(records, reading)
    assert [record.offset for record in found] == [0, 1, 2, 3, 4]
    assert [getattr(record, "reason", None) for record in found] == [None, *[Unusable.OVERSIZED] * 3, None]
    assert found[1].content is not None
    assert found[2].content is None
    assert records.next_fetch_offset == 5


def test_from_within_a_giant_only_the_rest_is_named(reading: BatchReading) -> None:
    log, _ = log_of([Written((GIANT, b"b", b"c"), codec=4)])
    assert [record.offset for record in polled(reader(log, 2), reading)] == [2]


def test_a_header_that_claims_millions_names_few(reading: BatchReading) -> None:
    log = bytearray(log_of([Written((GIANT,), codec=4)])[0])
    struct.pack_into(">i", log, DELTA_AT, 2**31 - 2)
    struct.pack_into(">i", log, COUNT_AT, 2**31 - 1)
    records = reader(sealed(log))
    assert len(polled(records, reading)) == MOST_NAMED
    assert records.next_fetch_offset == 2**31 - 1


def test_records_of_transactions_are_set_aside_as_they_came(reading: BatchReading) -> None:
    log, _ = log_of(
        [
            Written((b"open",), producer=1, is_transactional=True, codec=4),
            Written((b"plain",)),
            Written(producer=1, marker=COMMIT),
        ]
    )
    records = reader(log)
    first, second = polled(records, reading)
    assert (first.reason, first.content_key, first.content) == (Unusable.TRANSACTIONAL, b"a/key", b"open")
    assert (first.key, first.value) == (None, None)
    assert second.value == b"plain"
    assert records.next_fetch_offset == 3


@pytest.mark.parametrize("claimed", [3, 2**31 - 1])
def test_what_follows_the_last_whole_record_is_named(claimed: int, reading: BatchReading) -> None:
    log = bytearray(log_of([Written((b"a", b"b"))])[0])
    struct.pack_into(">i", log, COUNT_AT, claimed)
    struct.pack_into(">i", log, DELTA_AT, 2)
    found = polled(reader(sealed(log) + log_of([Written()], first=3)[0]), reading)
    assert [(record.offset, isinstance(record, UnusableRecord)) for record in found] == [
        (0, False),
        (1, False),
        (2, True),
        (3, False),
    ]


def test_a_poll_opens_no_more_than_its_share(reading: BatchReading) -> None:
    """Of many small batches, each of which becomes large."""
    count = 10
    log, _ = log_of([Written((bytes(LIMIT - 100),), codec=4)] * count)
    records = reader(log)
    for number in range(count):
        reading.expanded_bytes = 0
        assert [record.offset for record in records.take(2_000)] == [number]
        assert records.next_fetch_offset == number + 1
    assert records.take(2_000) == []
    assert records.next_fetch_offset == count


def test_what_another_partition_expanded_counts_too(reading: BatchReading) -> None:
    log, _ = log_of([Written((b"a",), codec=4)])
    records = reader(log)
    reading.expanded_bytes = LIMIT
    assert records.take(2_000) == []
    assert not records.is_over
    assert records.next_fetch_offset == 0
    reading.expanded_bytes = 0
    assert [record.value for record in records.take(2_000)] == [b"a"]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_no_bytes_behind_a_right_checksum_raise(codec: int, reading: BatchReading) -> None:
    chance = random.Random(codec)  # noqa: S311
    whole = log_of([Written((b"some", None, b"records"), codec=codec)])[0]
    for _ in range(2_000):
        log = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            log[chance.randrange(RECORDS_AT, len(log))] = chance.randrange(256)
        records = reader(sealed(log))
        polled(records, reading)
        assert records.next_fetch_offset == 3


def test_records_of_inputs_come_without_headers(reading: BatchReading) -> None:
    log, _ = log_of([Written((b"a",)), Written((GIANT,), codec=4)])
    first, second = polled(reader(log), reading)
    assert not hasattr(first, "headers")
    assert (first.offset, first.key, first.value) == (0, b"a/key", b"a")
    assert second.reason is Unusable.OVERSIZED
