"""The configuration of the service, its gates and the engine, made from the settings once at the start."""

from __future__ import annotations

import structlog

from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.cluster import EpochBegun
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.envelope import InputLimits
from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.kafka.token_provider import AiokafkaTokens
from evictstream.streams.partition.config import PartitionConfig
from evictstream.streams.settings import Settings
from evictstream.streams.worker.gates import GateLimits

# The least limit of a record. A topic whose own limit is smaller is misconfigured, perhaps for minutes only. When it
# refuses a record, the worker ends and loses nothing; a smaller limit here would make dead letters of good records.
LEAST_LIMIT_BYTES = 262_144

log = structlog.get_logger(__name__)


def cluster_rules(settings: Settings) -> ClusterRules:
    """Convert the settings to the rules of each cluster."""
    usual = RuleParameters(
        outage_gap_us=int(settings.outage_gap_seconds * SECOND_US),
        retry_base_us=int(settings.retry_base_seconds * SECOND_US),
        retry_ceiling_us=int(settings.retry_ceiling_seconds * SECOND_US),
        silence_us=int(settings.result_silence_seconds * SECOND_US),
        success_grace_us=int(settings.success_grace_seconds * SECOND_US),
        accepted_silence_us=int(settings.accepted_silence_seconds * SECOND_US),
        accepted_limit_us=int(settings.accepted_limit_seconds * SECOND_US),
        remember_deleted_us=int(settings.remember_deleted_seconds * SECOND_US),
        comparison_operators=settings.comparison_operators,
    )
    return ClusterRules(usual, settings.clusters_with_built_in)


def partition_config(settings: Settings, record_limit_bytes: int) -> PartitionConfig:
    """Convert the settings; `record_limit_bytes` is the largest record that every topic of the service takes."""
    return PartitionConfig(
        nodes_topic=settings.nodes_topic,
        pods_topic=settings.pods_topic,
        results_topic=settings.results_topic,
        commands_topic=settings.commands_topic,
        decisions_topic=settings.decisions_topic,
        dead_letters_topic=settings.dead_letters_topic,
        clusters_topic=settings.clusters_topic,
        fleet_topic=settings.fleet_topic,
        incidents_topic=settings.incidents_topic,
        workloads_topic=settings.workloads_topic if settings.publish_workloads else None,
        partitions=settings.partitions,
        rules=cluster_rules(settings),
        limits=InputLimits(settings.max_object_bytes, int(settings.max_event_delay_seconds * SECOND_US)),
        record_limit_bytes=min(settings.max_record_bytes, max(record_limit_bytes, LEAST_LIMIT_BYTES)),
        feed_silence_us=int(settings.feed_silence_limit_seconds * SECOND_US),
        clock_skew_us=int(settings.clock_skew_limit_seconds * SECOND_US),
        now_us=SYSTEM_CLOCK.now_us,
        on_epoch=log_epoch,
        on_future_times=log_future_times,
    )


def gate_limits(settings: Settings) -> GateLimits:
    """Convert the settings to the limits of the gates."""
    return GateLimits(
        lag_limit_seconds=settings.lag_limit_seconds,
        clock_skew_limit_seconds=settings.clock_skew_limit_seconds,
        clock_jump_limit_seconds=settings.clock_jump_limit_seconds,
        clock_jump_hold_seconds=settings.clock_jump_hold_seconds,
    )


def engine_config(settings: Settings, record_limit_bytes: int | None = None) -> EngineConfig:
    """Convert the settings to the engine's.

    `record_limit_bytes` is the largest record that every topic of the service takes. It limits whole batches too.
    """
    most = settings.max_batch_bytes
    return EngineConfig(
        application=settings.faust_app_id,
        bootstrap_servers=settings.required_bootstrap_servers(),
        security=settings.security_arguments(AiokafkaTokens),
        inputs=settings.input_topics,
        outputs=settings.written_topics,
        changelog=settings.changelog_topic,
        partitions=settings.partitions,
        instance_id=settings.group_instance_id,
        session_timeout_seconds=settings.session_timeout_seconds,
        rebalance_timeout_seconds=settings.rebalance_timeout_seconds,
        heartbeat_seconds=settings.heartbeat_interval_seconds,
        lease_margin_seconds=settings.lease_margin_seconds,
        commit_interval_seconds=settings.commit_interval_seconds,
        linger_seconds=settings.commit_linger_seconds,
        max_rows_per_transaction=settings.max_rows_per_transaction,
        max_batch_bytes=most if record_limit_bytes is None else min(most, record_limit_bytes),
        max_record_bytes=settings.max_record_bytes,
        transaction_timeout_seconds=settings.transaction_timeout_seconds,
        max_poll_records=settings.max_poll_records,
        max_fetch_bytes=settings.max_fetch_bytes,
        largest_batch_bytes=settings.largest_batch_bytes,
        position_interval_seconds=settings.position_interval_seconds,
        takeover_timeout_seconds=settings.takeover_timeout_seconds,
        takeover_attempts=settings.takeover_attempts,
    )


def log_epoch(begun: EpochBegun) -> None:
    """Log it with its own time: a backlog, or a takeover, may be hours behind it."""
    log.warning(
        "cluster started a new epoch",
        cluster=begun.cluster,
        epoch=begun.epoch,
        uid=begun.cluster_uid,
        begun_at=instant_text(begun.at_us),
    )


def log_future_times(topic: str, partition: int, ahead_seconds: float) -> None:
    """Log that records of a partition count as appended now."""
    log.warning(
        "append times are in the future and count as now: check the brokers' clocks",
        topic=topic,
        partition=partition,
        ahead_seconds=ahead_seconds,
    )
