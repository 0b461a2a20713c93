"""Bytes of a file as UTF-8, however they are packed. The beginning shows the format, and may have to be awaited."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final, cast

from evictstream.streams.errors import ObjectFileError

BUFFER_BYTES: Final = 262_144

PACKED_ERRORS: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError)
"""What reading raises where a file is damaged; `EOFError` where it was cut."""

_PACKED: Final[dict[bytes, Callable[[io.BufferedReader], io.IOBase]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}

_ENCODINGS: Final = {  # the longer ones first: one of UTF-16 begins one of UTF-32
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"{\0": "utf-16-le",
    b"[\0": "utf-16-le",
    b"\0{": "utf-16-be",
    b"\0[": "utf-16-be",
}
"""Windows PowerShell writes UTF-16 where `>` stands behind a command."""

_NOT_UNPACKED: Final = {
    b"\x28\xb5\x2f\xfd": ("zstd data", "give what `zstd -dc` writes"),
    b"\x04\x22\x4d\x18": ("lz4 data", "give what `lz4 -dc` writes"),
    b"PK\x03\x04": ("a zip archive", "give the files in it"),
    b"7z\xbc\xaf": ("a 7z archive", "give the files in it"),
    b"<!DOCTYPE": ("an HTML page", "the server was not an API server"),
    b"<html": ("an HTML page", "the server was not an API server"),
    b"SQLite format 3": ("a database", "export it as JSON"),
    b"PAR1": ("a Parquet file", "export it as JSON"),
}
_TAR: Final = b"ustar"
_TAR_AT: Final = 257
_MOST_MAGIC: Final = _TAR_AT + len(_TAR)


def decoded(source: str, file: BinaryIO) -> io.BufferedReader:
    """Decompress and recode what a file holds, if need be.

    Args:
        source: its name, for people.
        file: its bytes.

    Raises:
        ObjectFileError: it is of a kind that is known and not read.
        OSError: it cannot be read; also the others of `PACKED_ERRORS`.
    """
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    begins = buffered.peek(_MOST_MAGIC)
    opened = next((open_ for magic, open_ in _PACKED.items() if begins.startswith(magic)), None)
    if opened is not None:
        # No other buffer behind it: one that fills itself would lose what stands before the place of a cut.
        buffered = cast("io.BufferedReader", opened(buffered))
        begins = buffered.peek(_MOST_MAGIC)
    for magic, (name, next_step) in _NOT_UNPACKED.items():
        if begins.startswith(magic):
            raise ObjectFileError(source, f"it is {name}; {next_step}")
    if begins[_TAR_AT:].startswith(_TAR):
        raise ObjectFileError(source, "it is a tar archive; give the files in it")
    for mark, encoding in _ENCODINGS.items():
        if begins.startswith(mark):
            return io.BufferedReader(_Recoded(buffered, encoding), BUFFER_BYTES)
    if begins.startswith(codecs.BOM_UTF8):
        buffered.read(len(codecs.BOM_UTF8))
    return buffered


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8, without its byte order mark."""

    def __init__(self, file: io.BufferedReader, encoding: str) -> None:
        super().__init__()
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # typeshed's buffer has no length
        while not self._left:
            read = self._file.read1(BUFFER_BYTES)
            self._left = self._decoder.decode(read, final=not read).encode()
            if not read:
                break
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
