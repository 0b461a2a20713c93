"""Batches are opened up to a bound, whatever compressed them, and what is no batch is said to be none."""

from __future__ import annotations

import gzip
import random
import tracemalloc

import lz4.frame
import pytest
import snappy
import zstandard
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

from evictstream.streams.compression import RECORDS_AT, Unusable, open_batch

LIMIT = 1 << 20
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
HEADER = bytes(range(21)) + b"\0\0" + bytes(range(23, RECORDS_AT))


def compressed(codec: int, records: bytes) -> bytes:
    encode = {GZIP: gzip_encode, SNAPPY: snappy_encode, LZ4: lz4_encode, ZSTD: zstd_encode}[codec]
    found: bytes = encode(records)
    return found


def batch(codec: int, content: bytes) -> memoryview:
    return memoryview(HEADER[:22] + bytes([codec | 0x10]) + HEADER[23:] + content)


EACH = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])


@EACH
@pytest.mark.parametrize("records", [b"", b"a", bytes(LIMIT), random.Random(1).randbytes(LIMIT)])  # noqa: S311
def test_a_batch_within_the_bound_is_opened(codec: int, records: bytes) -> None:
    opened = open_batch(batch(codec, compressed(codec, records)), LIMIT)
    assert not isinstance(opened, Unusable)
    assert opened.tobytes() == batch(0, records).tobytes()


@EACH
def test_a_batch_beyond_the_bound_takes_no_more_memory(codec: int) -> None:
    bomb = batch(codec, compressed(codec, bytes(64 * LIMIT)))
    tracemalloc.start()
    try:
        assert open_batch(bomb, LIMIT) is Unusable.OVERSIZED
        assert tracemalloc.get_traced_memory()[1] < 8 * LIMIT
    finally:
        tracemalloc.stop()
    assert open_batch(batch(codec, compressed(codec, bytes(LIMIT + 1))), LIMIT) is Unusable.OVERSIZED


def test_a_bare_block_of_snappy_says_its_size_first() -> None:
    assert open_batch(batch(SNAPPY, snappy.compress(b"records")), LIMIT) == batch(0, b"records")
    for size in (snappy.compress(bytes(LIMIT + 1)), b"\xff\xff\xff\xff\x0f"):
        assert open_batch(batch(SNAPPY, size), LIMIT) is Unusable.OVERSIZED


def test_frames_of_zstd_behind_one_another_are_one_batch() -> None:
    frame = zstandard.ZstdCompressor().compress(b"records")
    assert open_batch(batch(ZSTD, frame * 2), LIMIT) == batch(0, b"recordsrecords")


@EACH
def test_what_is_cut_or_garbled_is_no_batch(codec: int) -> None:
    whole = compressed(codec, random.Random(1).randbytes(5_000))  # noqa: S311
    garbled = [b"garbage", b"\0" * 40]
    if codec != ZSTD:  # a stream of it may end anywhere: then the records end too early
        garbled += [whole[:-1000], b""]
    for content in garbled:
        assert open_batch(batch(codec, content), LIMIT) is Unusable.BAD_BATCH, content[:20]


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_no_batch(codec: int) -> None:
    assert open_batch(batch(codec, b"records"), LIMIT) is Unusable.BAD_BATCH


@EACH
def test_no_bytes_raise(codec: int) -> None:
    chance = random.Random(codec)  # noqa: S311
    whole = compressed(codec, b"records of some kind, " * 200)
    for _ in range(500):
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        opened = open_batch(batch(codec, bytes(content[: chance.randrange(len(content) + 1)])), LIMIT)
        assert isinstance(opened, Unusable) or len(opened) <= LIMIT + RECORDS_AT


def test_a_batch_that_is_not_compressed_is_not_copied() -> None:
    plain = batch(0, b"records")
    assert open_batch(plain, 1) is plain


def test_many_members_behind_one_another_are_not_looked_through() -> None:
    """No client writes them, and each would have all behind it copied. The records end too early."""
    members, frames = gzip.compress(b"a") * 50_000, lz4.frame.compress(b"a", block_linked=False) * 50_000
    for codec, content in ((GZIP, members), (LZ4, frames)):
        assert open_batch(batch(codec, content), LIMIT) == batch(0, b"a")


def test_headers_that_grow_when_they_are_read_are_no_batch() -> None:
    """A header of two bytes is 64 in memory."""

    def written(*counts: int) -> bytes:
        builder = DefaultRecordBatchBuilder(2, ZSTD, 0, -1, -1, -1, 1 << 30)
        for number, count in enumerate(counts):
            builder.append(number, 0, b"key", b"v" * LIMIT, [("", None)] * count)
        return bytes(builder.build())

    few, many = written(10, 100), written(10, 101)
    assert not isinstance(open_batch(memoryview(few), 4 * LIMIT), Unusable)
    assert open_batch(memoryview(many), 4 * LIMIT) is Unusable.BAD_BATCH
