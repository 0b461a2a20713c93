"""How engine, gates and partitions of a simulated run are configured: topics, and the numbers of its plan."""

from __future__ import annotations

import dataclasses

from evictstream.kit.oracle.records import InputTopic, OutputTopic
from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.messages.envelope import InputLimits
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.partition.config import PartitionConfig
from evictstream.streams.worker.gates import GateLimits
from tests.faults.people import INCIDENTS
from tests.faults.plan import Plan
from tests.faults.simulated.world import SECOND_US, World
from tests.harness.plans import one_partition

INPUTS: tuple[InputTopic, ...] = ("nodes", "pods", "results")
OUTPUTS: tuple[OutputTopic, ...] = ("commands", "decisions", "dead-letters")
CHANGELOG = "changelog"
RECORD_LIMIT_BYTES = 100_000
LEAN_FLOOR = 8  # a cluster is small, and the heap of wake-ups is to be replaced again and again


def engine_config(plan: Plan) -> EngineConfig:
    """Give the engine times that fit into a run of some seconds."""
    return EngineConfig(
        application="simulated",
        bootstrap_servers="nowhere:1",
        security={},
        inputs=INPUTS,
        outputs=(*OUTPUTS, "clusters", "fleet", "workloads", INCIDENTS),
        changelog=CHANGELOG,
        partitions=plan.shape.partitions,
        session_timeout_seconds=3.0,
        rebalance_timeout_seconds=4.0,
        heartbeat_seconds=1.0,
        lease_margin_seconds=0.6,
        commit_interval_seconds=1.0,
        linger_seconds=0.1,
        max_rows_per_transaction=30,
        transaction_timeout_seconds=3.0,
        position_interval_seconds=2.0,
        takeover_timeout_seconds=3.0,
        takeover_attempts=4,
    )


def gate_limits(plan: Plan) -> GateLimits:
    """Translate the numbers for the gates."""
    numbers = plan.numbers
    return GateLimits(
        lag_limit_seconds=numbers.lag_limit_seconds,
        clock_skew_limit_seconds=numbers.clock_skew_limit_seconds,
        clock_jump_limit_seconds=numbers.clock_jump_limit_seconds,
        clock_jump_hold_seconds=numbers.clock_jump_hold_seconds,
    )


def partition_config(plan: Plan, world: World) -> PartitionConfig:
    """Translate the numbers for the service."""
    numbers = plan.numbers

    def us(seconds: float) -> int:
        return int(seconds * SECOND_US)

    return dataclasses.replace(
        one_partition(lambda: world.now_us),
        workloads_topic="workloads",
        partitions=plan.shape.partitions,
        rules=ClusterRules(
            RuleParameters(
                outage_gap_us=us(numbers.outage_gap_seconds),
                retry_base_us=us(numbers.retry_base_seconds),
                retry_ceiling_us=us(numbers.retry_ceiling_seconds),
                silence_us=us(numbers.result_silence_seconds),
                success_grace_us=us(numbers.success_grace_seconds),
                accepted_silence_us=us(numbers.accepted_silence_seconds),
                accepted_limit_us=us(numbers.accepted_limit_seconds),
                remember_deleted_us=us(numbers.remember_deleted_seconds),
            ),
            () if numbers.built_in is None else numbers.built_in.split(","),
        ),
        limits=InputLimits(numbers.max_object_bytes, us(numbers.max_event_delay_seconds)),
        record_limit_bytes=RECORD_LIMIT_BYTES,
        lean_floor=LEAN_FLOOR,
        clock_skew_us=us(numbers.clock_skew_limit_seconds),
        feed_silence_us=us(numbers.feed_silence_limit_seconds),
    )
