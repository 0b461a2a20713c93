"""What a partition is told once: topics, rules and limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from evictstream.models.eviction.cluster import EpochBegun
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.envelope import InputLimits
from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.policies import NO_POLICIES, Policies
from evictstream.streams.engine.core.timers import LEAN_FLOOR
from evictstream.streams.partition.counters import WorkerCounters


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartitionConfig:
    """Topics, rules and limits, the same for all partitions of a worker.

    Attributes:
        workloads_topic: of owners that lose pods; None if they are not published.
        record_limit_bytes: largest record that every topic of the service takes.
        feed_silence_us: the gate `feed` closes for a cluster when its feed's latest heartbeat is older.
        clock_skew_us: append times further ahead of all clocks lie in the future; `None` where they are the clock.
        now_us: reads the wall clock; tests and replays pass another.
        brakes: reads the brakes, the same object until they change. Nothing is held where nobody reads them.
        policies: reads the policies, in the same way.
        counters: counts of the worker, which all its partitions share.
        on_decided: gets the decisions of each step, or of one part, that made any.
        on_dead_letter: gets the cluster if it is known, topic, partition and offset, reason and detail of a record.
        on_epoch: is told of each epoch that a cluster begins.
        on_future_times: gets topic, partition and seconds when append times lie in the future.
        lean_floor: a partition's heap with fewer wake-ups is never replaced by a leaner one.
    """

    nodes_topic: str
    pods_topic: str
    results_topic: str
    commands_topic: str
    decisions_topic: str
    dead_letters_topic: str
    clusters_topic: str
    fleet_topic: str
    incidents_topic: str
    workloads_topic: str | None = None
    partitions: int
    rules: ClusterRules
    limits: InputLimits
    record_limit_bytes: int
    feed_silence_us: int
    now_us: Callable[[], int]
    clock_skew_us: int | None = 5 * SECOND_US
    brakes: Callable[[], Brakes] = lambda: NO_BRAKES
    policies: Callable[[], Policies] = lambda: NO_POLICIES
    counters: WorkerCounters = dataclasses.field(default_factory=WorkerCounters)
    on_decided: Callable[[Sequence[DecisionRecord]], None] = lambda _: None
    on_dead_letter: Callable[[str | None, tuple[str, int, int], str, str], None] = lambda *_: None
    on_epoch: Callable[[EpochBegun], None] = lambda _: None
    on_future_times: Callable[[str, int, float], None] = lambda *_: None
    lean_floor: int = LEAN_FLOOR
