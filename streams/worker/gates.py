"""When firing waits. A closed gate delays an eviction and never drops one (docs/guarantees.md, "When firing waits").

| gate | closed while |
|---|---|
| owner | the group rebalances, or the lease is older than the session timeout less a margin |
| clock | the wall clock jumped forward, or differs from the brokers', or an append time lies ahead of both |
| caught-up | the inputs have not been read to the end that they had at takeover |
| fresh-view | everything in the log was last known to be applied too long ago |
| brakes | the brakes were last read to their end too long ago, or before the takeover, or one cannot be read |
| policies | the same of the policies |
| gap | input expired unread, and was neither listed again nor accepted |
| feed | (by cluster) the feed sends heartbeats, and the latest is too old |

`owner`, and `clock` except for times that lie ahead, are the same for all partitions of a worker. The timer service
calls `Gates.closed` for a partition right before it fires. The answers come from `streams.engine.core.lease`,
`clock_watch.py`, `freshness.py`, for `brakes` and `policies` from `steering_readers`, and for `gap` from `clusters.py`.
`feed` is not checked here: `partition.firing` sets the wake-ups of silent clusters aside.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from evictstream.models.steering.brakes import Brakes
    from evictstream.models.steering.policies import Policies
    from evictstream.streams.engine.core.lease import Lease
    from evictstream.streams.engine.core.ports import Clock, Group
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.clock_watch import ClockWatch
    from evictstream.streams.worker.freshness import Freshness
    from evictstream.streams.worker.served_partition import ServedPartition


REBALANCING = "the group rebalances; wait, and if this repeats, look for workers that restart"
CONFIRMED = "the group last confirmed this worker {} s ago; check the connection to the brokers"
NOT_CONFIRMED = "the group has not confirmed this worker yet; wait, then check the connection to the brokers"
CATCHING_UP = "the input from before the takeover is still being read; wait"
APPLIED = "this worker last reached the end of its input {} s ago; check its CPU and the brokers"
BEFORE_TAKEOVER = "they have not been read to their end since the takeover; wait"
NOT_APPLIED = "this worker has not reached the end of its input yet; wait, then check its CPU and the brokers"
"""Each reason says what to do. Reasons of the gates `clock`, `gap` and `feed` are made where these are checked."""


class Gate(enum.StrEnum):
    """Names of the gates, as logs and metrics show them."""

    OWNER = "owner"
    CLOCK = "clock"
    CAUGHT_UP = "caught-up"
    FRESH_VIEW = "fresh-view"
    BRAKES = "brakes"
    POLICIES = "policies"
    GAP = "gap"
    FEED = "feed"


PARTITION_GATES = tuple(gate for gate in Gate if gate is not Gate.FEED)
"""The gates that close a whole partition."""


class Closed(NamedTuple):
    """A gate that is closed, and why."""

    gate: Gate
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """Limits beyond which gates close; each is explained at the setting of its name."""

    lag_limit_seconds: float
    clock_skew_limit_seconds: float
    clock_jump_limit_seconds: float
    clock_jump_hold_seconds: float


class SteeringView(Protocol):
    """How fresh the view of a topic is; a `SteeringReader` reads it from Kafka."""

    def age_seconds(self) -> float:
        """Return how long ago all records are known to have been read."""

    def objection(self) -> str | None:
        """Return why nothing may be evicted now, or `None`."""


class BrakesView(SteeringView, Protocol):
    """What is known of the brakes."""

    @property
    def brakes(self) -> Brakes:
        """The newest that were read, the same object until they change."""


class PoliciesView(SteeringView, Protocol):
    """What is known of the policies."""

    @property
    def policies(self) -> Policies:
        """The newest that were read, the same object until they change."""


class Gates:
    """The gates in front of a worker's timers."""

    def __init__(
        self,
        *,
        lease: Lease,
        group: Group,
        clock_watch: ClockWatch,
        freshness: Freshness,
        brakes: SteeringView,
        policies: SteeringView,
        lag_limit_seconds: float,
        clock: Clock,
    ) -> None:
        self._lease = lease
        self._group = group
        self._clock_watch = clock_watch
        self._clock = clock
        self._freshness = freshness
        self._steering = ((Gate.BRAKES, brakes), (Gate.POLICIES, policies))
        self._lag_limit_seconds = lag_limit_seconds

    def note(self, writer: PartitionWriter[ServedPartition]) -> None:
        """Take in what a partition has committed and applied by now; call it before `closed`."""
        if writer.last_commit is not None:
            self._clock_watch.observe(writer.last_commit)
        self._freshness.note(writer)

    def closed(self, writer: PartitionWriter[ServedPartition]) -> Closed | None:
        """Return the first closed gate of a partition, or `None` when its timers may fire."""
        if self._group.is_rebalancing:
            return Closed(Gate.OWNER, REBALANCING)
        if not self._lease.valid:
            return Closed(Gate.OWNER, _since(self._lease.age_seconds, CONFIRMED, NOT_CONFIRMED))
        objection = self._clock_watch.objection(self._clock.monotonic()) or writer.logic.clock_objection()
        if objection is not None:
            return Closed(Gate.CLOCK, objection)
        if not writer.caught_up:
            return Closed(Gate.CAUGHT_UP, CATCHING_UP)
        age = self._freshness.age_seconds(writer.partition)
        if age > self._lag_limit_seconds:
            return Closed(Gate.FRESH_VIEW, _since(age, APPLIED, NOT_APPLIED))
        for gate, view in self._steering:
            objection = view.objection() or self._not_since_takeover(view, writer)
            if objection is not None:
                return Closed(gate, objection)
        gap = writer.logic.objection()
        if gap is not None:
            return Closed(Gate.GAP, gap)
        return None

    def _not_since_takeover(self, view: SteeringView, writer: PartitionWriter[ServedPartition]) -> str | None:
        """Object to a view that is older than the takeover: the owner before may have known a newer one."""
        read_at = self._clock.monotonic() - view.age_seconds()
        return BEFORE_TAKEOVER if read_at < writer.ends_asked_at else None


def _since(age_seconds: float, sentence: str, never: str) -> str:
    """Put an age into `sentence`; an infinite age, of what never happened, gives `never`."""
    return never if math.isinf(age_seconds) else sentence.format(f"{age_seconds:.1f}")
