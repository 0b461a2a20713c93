"""What the oracle is given, and what it gives: inputs as they were appended, outputs as read, violations.

A real Kafka, a simulated one and a recorded incident under virtual time fill in the same two kinds of records, so one
oracle judges all three.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

InputTopic: TypeAlias = Literal["nodes", "pods", "results"]
OutputTopic: TypeAlias = Literal["commands", "decisions", "dead-letters"]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRecord:
    """A record of an input topic, topic names without prefix.

    Attributes:
        append_at_us: the broker's append time, microseconds since 1970; a real broker tells whole milliseconds.
    """

    topic: InputTopic
    partition: int
    offset: int
    append_at_us: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRecord:
    """A record of the topic of brakes, of policies or of incidents; of the last as a `read_committed` reader got it.

    Attributes:
        append_at_us: as for `InputRecord`.
        known_at_us: when its writer heard that it stands there. Readers have it by then, and perhaps not before:
            several brokers show a record only once those in step have it. 0 if that is not later than its append.
    """

    append_at_us: int
    known_at_us: int = 0
    key: bytes
    value: bytes | None

    @property
    def settled_us(self) -> int:
        """Since when who reads the topic to its end has it."""
        return max(self.append_at_us, self.known_at_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """A record of an output topic as a `read_committed` reader got it.

    Attributes:
        append_at_us: as for `InputRecord`. Output topics too use the broker's append time.
    """

    topic: OutputTopic
    partition: int
    offset: int
    append_at_us: int
    key: bytes
    headers: Mapping[str, bytes]
    value: bytes


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be.

    Attributes:
        rule: a few words that name the rule, always the same for the same rule, for counting.
        text: the observed and the required behaviour.
        cluster: empty if it is about none.
        node: its name, as `cluster`; or the place in the log that it is about.
        pod_uid: as `cluster`.
    """

    rule: str
    text: str
    _: KW_ONLY
    cluster: str = ""
    node: str = ""
    pod_uid: str = ""

    def __str__(self) -> str:
        """One line."""
        return f"{self.rule}: {self.cluster}/{self.node} {self.pod_uid}: {self.text}"


def shown(at_us: int) -> str:
    """Write an instant for people: RFC 3339 with microseconds; one beyond the calendar as its number."""
    try:
        return (EPOCH + dt.timedelta(microseconds=at_us)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except OverflowError:
        return f"{at_us} us"
