"""What a run leaves behind, in the form that the oracle reads: the inputs as they were appended, the outputs as read.

A run on a real Kafka and a simulated one fill in the same two kinds of records, so one oracle judges both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

InputTopic: TypeAlias = Literal["nodes", "pods", "results"]
OutputTopic: TypeAlias = Literal["commands", "decisions", "dead-letters"]


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record of an input topic, topic names without prefix.

    Attributes:
        append_at_us: the broker's append time, whole milliseconds in microseconds since 1970.
    """

    topic: InputTopic
    partition: int
    offset: int
    append_at_us: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
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
