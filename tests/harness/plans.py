"""What a partition of the service has to know, for tests that run one without Kafka, under a clock of their own."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping

from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.envelope import InputLimits
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.config import PartitionConfig
from evictstream.streams.partition.eviction_partition import EvictionPartition

FEED_SILENCE_SECONDS = 60


def one_partition(now_us: Callable[[], int]) -> PartitionConfig:
    """Make the plan of a service with one partition and the default rules."""
    return PartitionConfig(
        nodes_topic="nodes",
        pods_topic="pods",
        results_topic="results",
        commands_topic="commands",
        decisions_topic="decisions",
        dead_letters_topic="dead-letters",
        clusters_topic="clusters",
        fleet_topic="fleet",
        incidents_topic="incidents",
        partitions=1,
        rules=ClusterRules(RuleParameters()),
        limits=InputLimits(),
        record_limit_bytes=2_000_000,
        feed_silence_us=FEED_SILENCE_SECONDS * SECOND_US,
        now_us=now_us,
    )


def taken_over(plan: PartitionConfig, rows: Mapping[bytes, bytes]) -> tuple[EvictionPartition, Outbox]:
    """Take partition 0 over as the next owner does, from its rows; also gives what it has decided anew."""
    logic, outbox = EvictionPartition(0, plan), Outbox()
    for key, value in rows.items():
        logic.load(key, value)
    logic.loaded()
    collections.deque(logic.caught_up(plan.now_us(), outbox), maxlen=0)
    return logic, outbox
