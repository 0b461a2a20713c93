"""Dead letters: exactly one for each record that cannot be read, none for others (docs/messages.md#dead-letters)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from evictstream.kit.oracle.records import InputRecord, MessageRecord, Violation

RecordPlace = tuple[str, int, int]


def check_letters(
    unreadable: Mapping[RecordPlace, InputRecord], messages: Sequence[MessageRecord]
) -> Iterator[Violation]:
    """Compare the dead letters with the records that had to become one."""
    letters: Counter[RecordPlace] = Counter()
    for message in messages:
        if message.topic != "dead-letters":
            continue
        topic = message.headers["originTopic"].decode().rpartition(".")[2]
        origin = (topic, int(message.headers["originPartition"]), int(message.headers["originOffset"]))
        letters[origin] += 1
        record = unreadable.get(origin)
        if record is None:
            yield _wrong("needless dead letter", origin, f"{message.headers.get('reason')!r}: the record is good")
        elif record.value is not None and message.headers["sha256"].decode() != _hash(record.value):
            yield _wrong("wrong dead letter", origin, "its hash is of something else")
    for origin in unreadable:
        if not letters[origin]:
            yield _wrong("no dead letter", origin, "there has to be one")
        elif letters[origin] > 1:
            yield _wrong("dead letters", origin, f"{letters[origin]} instead of one")


def _hash(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def _wrong(rule: str, origin: RecordPlace, text: str) -> Violation:
    topic, partition, offset = origin
    return Violation(rule, text, node=f"{topic}/{partition}/{offset}")
