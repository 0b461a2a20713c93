"""What stands on a topic, as a `read_committed` reader sees it."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka import KafkaConsumer, TopicPartition

from evictstream.streams.settings import Settings

POLL_MS = 200
WAIT_SECONDS = 40.0


class Seen(NamedTuple):
    """One record with the moment (wall clock, seconds) at which the broker appended it, and its partition and offset.

    One place seen twice was read twice; two places are two records.
    """

    value: dict[str, Any]
    key: bytes | None
    raw: bytes | None
    headers: dict[str, bytes]
    appended_at: float
    place: tuple[int, int]


class TopicReader:
    """Follows all partitions of a topic from the beginning; all records, or those of one kind."""

    def __init__(self, settings: Settings, topic: str, kind: str | None = None) -> None:
        self.seen: list[Seen] = []
        self._kind = kind
        self._servers = settings.bootstrap_servers
        self._consumer = KafkaConsumer(
            bootstrap_servers=self._servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_id=None,
        )
        self._consumer.assign([TopicPartition(topic, number) for number in range(settings.partitions)])

    def poll(self) -> list[Seen]:
        """Take in what has come; returns all seen so far."""
        for records in self._consumer.poll(timeout_ms=POLL_MS, max_records=10_000).values():
            for record in records:
                value = _json(record.value)
                if self._kind is not None and value.get("kind") != self._kind:
                    continue
                headers = dict(record.headers)
                place = (record.partition, record.offset)
                self.seen.append(Seen(value, record.key, record.value, headers, record.timestamp / 1000, place))
        return self.seen

    def wait_for(self, condition: Callable[[list[Seen]], bool], what: str, seconds: float = WAIT_SECONDS) -> list[Seen]:
        """Read until a condition holds of all seen."""
        until = time.monotonic() + seconds
        while not condition(self.poll()):
            if time.monotonic() > until:
                shown = "\n".join(str(seen.value or seen.raw) for seen in self.seen[-20:])
                message = f"not seen: {what}; {len(self.seen)} records, the last:\n{shown}"
                raise AssertionError(message)
        return self.seen

    def to_end(self) -> list[Seen]:
        """Read up to the end that the topic has now, also behind markers that are not written yet."""
        with contextlib.closing(KafkaConsumer(bootstrap_servers=self._servers, group_id=None)) as everything:
            ends = everything.end_offsets(list(self._consumer.assignment()))
        until = time.monotonic() + WAIT_SECONDS
        while any(self._consumer.position(partition) < end for partition, end in ends.items()):
            assert time.monotonic() < until, f"no end: {ends}"
            self.poll()
        return self.seen

    def quiet(self, seconds: float) -> list[Seen]:
        """Read until nothing has come for some time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            before = len(self.seen)
            if len(self.poll()) > before:
                until = time.monotonic() + seconds
        return self.seen

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()


def _json(value: bytes | None) -> dict[str, Any]:
    """Decode what is an object; a dead letter need not be one."""
    try:
        found = json.loads(value or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def commands(seen: list[Seen], action: str) -> dict[str, list[Seen]]:
    """Commands of one action by pod name."""
    found: dict[str, list[Seen]] = {}
    for record in seen:
        if record.value.get("action") == action:
            found.setdefault(record.value["pod"], []).append(record)
    return found


def name_of(command: Seen) -> tuple[object, ...]:
    """What tells a command from every other."""
    return tuple(command.value[name] for name in ("evictionId", "revision", "attempt", "action"))


def instant(text: str) -> float:
    """Seconds since 1970 of an instant on a topic."""
    return dt.datetime.fromisoformat(text).timestamp()
