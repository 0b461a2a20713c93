"""Record batches without their compression, up to a bound.

A broker bounds a batch as it is sent. What 22 KB become when they are read, only their reader can bound: the codecs of
the client libraries do not. So readers of both libraries have their batches opened here before they take records out
of them. A batch beyond the bound is never expanded further than up to it.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Callable
from typing import Final

import lz4.frame
import snappy
import zstandard

ATTRIBUTES_AT: Final = 21
RECORDS_AT: Final = 61
"""Where a batch of format 2 has its attributes, and where its records begin."""

UNCOUNTED_BYTES: Final = 1024 * 1024
"""Up to so many bytes headers are not counted: a header may have two bytes, and is 64 once it is read, so 32 MiB."""

_MOST_HEADERS: Final = 100
"""Of one record in a batch that expands beyond that. Tracing and the like add some ten."""

CODEC_BITS: Final = 0b111

GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
"""The largest window, in gzip's format."""

XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
XERIAL_HEADER_BYTES: Final = 16
"""How Java's snappy frames its blocks: after this header, each behind its length. Others write one bare block."""

LONGEST_VARINT: Final = 5
"""Bytes of a length of 32 bits, seven bits in each."""

_attributes: Final = struct.Struct(">h")
_length: Final = struct.Struct(">i")


class Unusable(enum.StrEnum):
    """Why readers leave out a batch, or the rest of one; also the reason of the dead letters."""

    OVERSIZED = "Oversized"
    """Without its compression it is larger than the bound."""
    BAD_BATCH = "BadBatch"
    """Its checksum is right, and still it cannot be decompressed, or holds no well-formed records."""
    TRANSACTIONAL = "Transactional"
    """It belongs to a transaction, which inputs must not have."""


class _BeyondBoundError(Exception):
    pass


def open_batch(batch: memoryview, limit_bytes: int) -> memoryview | Unusable:
    """Return a batch of format 2 with its records as they are; one that is not compressed is returned itself.

    Args:
        batch: whole, and compared with its checksum. The checksum of what is returned is that of before.
        limit_bytes: most that its records may have without compression.
    """
    (attributes,) = _attributes.unpack_from(batch, ATTRIBUTES_AT)
    codec = attributes & CODEC_BITS
    if not codec:
        return batch
    expand = _EXPAND.get(codec)
    if expand is None:
        return Unusable.BAD_BATCH
    try:
        records = expand(batch[RECORDS_AT:], limit_bytes)
    except _BeyondBoundError:
        return Unusable.OVERSIZED
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - each library has errors of its own for what is not in its format
        return Unusable.BAD_BATCH
    if len(records) > limit_bytes:
        return Unusable.OVERSIZED
    if len(records) > UNCOUNTED_BYTES and _has_many_headers(records):
        return Unusable.BAD_BATCH
    opened = bytearray(RECORDS_AT + len(records))
    opened[:RECORDS_AT] = batch[:RECORDS_AT]
    _attributes.pack_into(opened, ATTRIBUTES_AT, attributes & ~CODEC_BITS)
    opened[RECORDS_AT:] = records
    return memoryview(opened)


def _has_many_headers(records: bytes | bytearray) -> bool:
    """Whether a record has so many headers that they would be much larger once they are read."""
    at = 0
    try:
        while at < len(records):
            length, begin = _varint(records, at)
            if length <= 0:
                return False  # the decoder says what is wrong
            at = begin + length
            _, place = _varint(records, begin + 1)  # behind the attributes: the time
            _, place = _varint(records, place)  # the offset
            for _ in ("key", "value"):
                size, place = _varint(records, place)
                place += max(size, 0)
            count, _ = _varint(records, place)
            if count > _MOST_HEADERS:
                return True
    except IndexError:
        pass
    return False


def _varint(records: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return a number in Kafka's zigzag of seven bits a byte, and the place behind it."""
    shift = number = 0
    while True:
        byte = records[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _gunzip(data: memoryview, limit: int) -> bytes:
    decompressor = zlib.decompressobj(GZIP_WINDOW)
    return _whole(decompressor.decompress(data, limit + 1), is_ended=decompressor.eof, limit=limit)


def _unlz4(data: memoryview, limit: int) -> bytes:
    decompressor = lz4.frame.LZ4FrameDecompressor()
    return _whole(decompressor.decompress(data, limit + 1), is_ended=decompressor.eof, limit=limit)


def _whole(records: bytes, *, is_ended: bool, limit: int) -> bytes:
    if not is_ended and len(records) <= limit:
        raise ValueError("it is cut")
    return records


def _unzstd(data: memoryview, limit: int) -> bytes:
    # Some producers write several frames, one for each flush.
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(limit + 1)


def _unsnappy(data: memoryview, limit: int) -> bytes | bytearray:
    if data[: len(XERIAL_MAGIC)].tobytes() != XERIAL_MAGIC:
        return _block(data, limit)
    output = bytearray()
    at = XERIAL_HEADER_BYTES
    while at < len(data):
        (length,) = _length.unpack_from(data, at)
        if length <= 0:
            raise ValueError("a block without a length")
        at += _length.size
        output += _block(data[at : at + length], limit - len(output))
        at += length
    return output


def _block(data: memoryview, limit: int) -> bytes:
    """Decompress a bare block of snappy: it begins with the size that it will have, and never gets another one."""
    size = 0
    for place, byte in enumerate(data[:LONGEST_VARINT]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            break
    if size > limit:
        raise _BeyondBoundError
    output: bytes = snappy.decompress(data.tobytes())
    return output


_EXPAND: Final[dict[int, Callable[[memoryview, int], bytes | bytearray]]] = {
    1: _gunzip,
    2: _unsnappy,
    3: _unlz4,
    4: _unzstd,
}
