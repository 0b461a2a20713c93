"""Values of a list that are set aside until the list says what they are; on disk beyond some MB."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from struct import Struct
from types import TracebackType
from typing import Final, Self

MOST_IN_MEMORY: Final = 8 * 2**20
"""Bytes: some 500 pods. A printer that sorts keys writes the items of a list before its kind."""

_place: Final = Struct("<qq")


class DelayedItems:
    """Keeps texts with their lines, in their order. Use as a context manager, which removes what is on disk."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=MOST_IN_MEMORY)  # noqa: SIM115 - closed by `__exit__`
        self._count = 0

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget all."""
        self._file.close()

    def keep(self, line: int, text: bytes) -> None:
        """Take one more."""
        self._file.write(_place.pack(line, len(text)) + text)
        self._count += 1

    def taken(self) -> Iterator[tuple[int, bytes]]:
        """Give all, and forget them."""
        count, self._count = self._count, 0
        self._file.seek(0)
        for _ in range(count):
            line, size = _place.unpack(self._file.read(_place.size))
            yield line, self._file.read(size)
        self._file.seek(0)
        self._file.truncate()
