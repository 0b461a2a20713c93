"""Keeps what is written to some topics, with the time at which it was read here."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.broker.follow import follow
from evictstream.streams.errors import BrokerError
from evictstream.streams.settings import Settings

_STOP_SECONDS: Final = 10.0
"""For a reader to end; it looks several times a second."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """A record, as it came.

    Attributes:
        at: when it was read, seconds since 1970.
        topic: `nodes`, `pods` or `results`.
        partition: its number.
        offset: within the partition.
        key: as it came.
        value: as it came.
    """

    at: float
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None

    def read(self, decode: Callable[[bytes], object]) -> tuple[dict[str, Any], str]:
        """Read the value.

        Args:
            decode: reads a message as the product does, and raises `Unreadable`.

        Returns:
            The fields, as far as the value is a JSON object, and why `decode` refuses it; empty if it does not.
        """
        value = self.value or b""
        fields: dict[str, Any] = {}
        problem = ""
        try:
            decode(value)
        except Unreadable as error:
            problem = str(error)
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(value)
            fields = content if isinstance(content, dict) else {}
        return fields, problem


class TopicRecorder:
    """Reads from the beginning, committed records only, a thread for each topic. Use as a context manager."""

    def __init__(self, settings: Settings, topics: Mapping[str, str]) -> None:
        """Take the full name of each topic by its short one."""
        self._settings = settings
        self._records: list[SeenRecord] = []
        self._stopped = threading.Event()
        self._failure: BrokerError | None = None
        self._threads = [
            threading.Thread(target=self._read, args=named, name=f"reader of {named[0]}", daemon=True)
            for named in topics.items()
        ]

    def __enter__(self) -> Self:
        """Begin to read."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def records(self, begin: int = 0) -> list[SeenRecord]:
        """Return the records read so far, starting with this number.

        Raises:
            BrokerError: a topic can be read no more.
        """
        if self._failure is not None:
            raise self._failure
        return self._records[begin:]

    def _read(self, name: str, topic: str) -> None:
        try:
            with follow(self._settings, topic, "beginning", is_stopped=self._stopped.is_set) as batches:
                for batch in batches:
                    at = time.time()
                    for record in batch:
                        self._records.append(
                            SeenRecord(
                                at=at,
                                topic=name,
                                partition=record.partition,
                                offset=record.offset,
                                key=record.key,
                                value=record.value,
                            )
                        )
        except BrokerError as error:
            self._failure = error
