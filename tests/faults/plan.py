"""What a run is made of: records to be produced at their times, and faults. All of it comes from one seed."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from evictstream.kit.oracle.records import InputTopic, KeyedRecord
from tests.faults.numbers import NUMBERS, Numbers

SECOND_US = 1_000_000


class FaultKind(enum.StrEnum):
    """What goes wrong."""

    WORKER_KILL = "worker-kill"
    """A worker ends at once (SIGKILL); a supervisor starts another one soon."""
    WORKER_TERM = "worker-term"
    """A worker is asked to stop (SIGTERM); a supervisor starts another one soon."""
    WORKER_STOP_CONT = "worker-stop-cont"
    """A worker stands still for the duration and then goes on (SIGSTOP, SIGCONT)."""
    WORKER_JOIN = "worker-join"
    """One more worker comes and leaves after the duration."""
    BROKER_KILL_RESTART = "broker-kill-restart"
    """A broker ends at once and is back after the duration."""
    BROKER_PAUSE = "broker-pause"
    """A broker stands still for the duration."""
    LEADER_MOVE = "leader-move"
    """Partitions change their leader."""
    NETWORK_SLOW = "network-slow"
    """Everything between a worker and the brokers takes `amount` seconds longer."""
    NETWORK_CUT = "network-cut"
    """Nothing passes between a worker and the brokers."""
    PRODUCE_REFUSED = "produce-refused"
    """An output topic refuses writes for good, as authorization does, until the duration is over."""
    RECORD_TOO_LARGE = "record-too-large"
    """A feed sends an object that is `amount` bytes above the limit."""
    ABSURD_RECORDS = "absurd-records"
    """A cluster has a node and pods with lists as long as an object can hold. On a real Kafka only: they would cost
    time, which costs nothing where it is virtual."""
    DISK_FULL = "disk-full"
    """Writes fail although the broker answers."""
    CLOCK_STEP = "clock-step"
    """A worker's wall clock jumps by `amount` seconds, forward or back, and back again after the duration."""


SIMULATED_KINDS = tuple(kind for kind in FaultKind if kind is not FaultKind.ABSURD_RECORDS)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        at_seconds: when, since the start of the run.
        duration_seconds: for how long; 0 where that has no meaning.
        amount: how much, in the unit that the kind says; else a number from 0 to 1 that picks a worker or a broker.
    """

    kind: FaultKind
    at_seconds: float
    duration_seconds: float = 0.0
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A record to be produced.

    Attributes:
        at_us: when, microseconds since 1970.
        partition: where; None for the partition of the key's hash (murmur2).
    """

    at_us: int
    topic: InputTopic
    key: bytes
    value: bytes | None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """Somebody writes a policy that guards, or deletes it.

    Attributes:
        at_us: as in `Change`.
        spec: what it does; None if it is deleted.
    """

    at_us: int
    name: str
    spec: dict[str, Any] | None
    spread_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a run is.

    Attributes:
        active_seconds: how long things change and faults begin.
        quiet_seconds: how long the run goes on after that, without faults; the actor still answers.
        largest_window_seconds: tolerations are at most that long, but for those that are meant to be very long.
        partitions: of each topic.
        faults: fewest and most faults in a run.
        kinds: faults to choose from.
    """

    active_seconds: float = 12.0
    quiet_seconds: float = 22.0
    largest_window_seconds: int = 8
    partitions: int = 2
    clusters: tuple[int, int] = (1, 3)
    nodes: tuple[int, int] = (1, 3)
    pods: tuple[int, int] = (1, 4)
    faults: tuple[int, int] = (1, 3)
    kinds: tuple[FaultKind, ...] = SIMULATED_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        start_at_us: when it starts, microseconds since 1970; the only thing that is not from the seed.
        changes: by time. The last ones are heartbeats up to the end of the run.
        faults: by time.
        brakes: records of the brakes topic, by time; those that stand for policies among them (`braking.as_policy`).
        policies: those that guard, by time.
    """

    seed: int
    shape: Shape
    start_at_us: int
    changes: tuple[Change, ...]
    faults: tuple[Fault, ...]
    numbers: Numbers = field(default=NUMBERS)
    brakes: tuple[KeyedRecord, ...] = ()
    policies: tuple[PolicyChange, ...] = ()

    @property
    def end_at_us(self) -> int:
        """When the run ends."""
        return self.start_at_us + int((self.shape.active_seconds + self.shape.quiet_seconds) * SECOND_US)
