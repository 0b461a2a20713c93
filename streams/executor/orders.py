"""Orders and options of an executor: its clusters, their modes, and their consumer groups."""

from __future__ import annotations

import dataclasses
from typing import Literal

from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.access import ClusterAccess

EventsOf = Literal["none", "evictions", "all"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOrder:
    """The order for one cluster.

    Attributes:
        name: as in commands.
        access: to its API server.
        mode: which write is allowed there.
    """

    name: str
    access: ClusterAccess
    mode: ExecutorMode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """Options for all clusters of a process.

    Attributes:
        group: prefix of the names of its consumer groups; no slash.
        instance: name of this process in its groups, for static membership; None without.
        rate: most evictions a second, for each cluster. What its API server bears limits them before.
        burst: evictions at once.
        start_us: where to begin, microseconds since 1970; None for where the group stopped, or an hour ago.
        delete_after_seconds: as for `PodEvictor`.
        events: which Kubernetes Events are written.
    """

    group: str
    instance: str | None = None
    rate: float = 1_000.0
    burst: int = 100
    start_us: int | None = None
    delete_after_seconds: float | None = None
    events: EventsOf = "evictions"


def group_of(order: ClusterOrder, options: ExecutionOptions) -> str:
    """Name the consumer group for one cluster.

    All members of a group can do each of its commands: executors that write are in one group, observers in another.
    The name of the observers' group has a slash, which neither a cluster nor `ExecutionOptions.group` has.
    """
    acting = f"{options.group}-{order.name}"
    return f"{acting}/observe" if order.mode is ExecutorMode.OBSERVE else acting
