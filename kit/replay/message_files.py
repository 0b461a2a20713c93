"""The messages of a run as files, one JSON document a line, in the order of virtual time whatever was read together."""

from __future__ import annotations

import heapq
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Self

from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.streams.errors import WrongUseError

NAMES = {"commands": "commands.jsonl", "decisions": "decisions.jsonl", "dead-letters": "dead-letters.jsonl"}
"""File by topic."""

ORDER = b"%020d %06d %s\n"
"""Instant and partition, by which partitions are joined, before each message."""

ORDER_BYTES = 28


class MessageFiles:
    """Writes into a folder. Use as a context manager; the files are whole at its end, and missing after an error.

    Each partition's messages are in order already, so they wait on disk, and are joined at the end.
    """

    def __init__(self, folder: Path) -> None:
        """Take a folder, which is made if it is not there.

        Raises:
            WrongUseError: it holds files of an earlier run, or cannot be made.
        """
        self._folder = folder
        taken = [name for name in NAMES.values() if (folder / name).exists()]
        if taken:
            raise WrongUseError(f"{folder} already has {', '.join(taken)}", next_step="name another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._parts = Path(tempfile.mkdtemp(prefix=".parts-", dir=folder))
        except OSError as error:
            raise WrongUseError(f"{folder} cannot be written: {error.strerror}") from error
        self._open: dict[tuple[str, int], BinaryIO] = {}
        self._files = ExitStack()

    def write(self, message: ReplayedMessage) -> None:
        """Keep a message."""
        place = message.topic, message.partition
        file = self._open.get(place)
        if file is None:
            file = self._files.enter_context((self._parts / f"{message.topic}-{message.partition}").open("w+b"))
            self._open[place] = file
        file.write(ORDER % (message.at_us, message.partition, message.value))

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Merge the kept messages, unless there was an error."""
        try:
            for topic, name in NAMES.items() if kind is None else ():
                with (self._folder / name).open("wb") as joined:
                    joined.writelines(line[ORDER_BYTES:] for line in heapq.merge(*self._lines(topic)))
        finally:
            self._files.close()
            shutil.rmtree(self._parts)

    def _lines(self, topic: str) -> Iterator[BinaryIO]:
        for (of, _), file in self._open.items():
            if of == topic:
                file.seek(0)
                yield file
