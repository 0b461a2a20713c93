"""The configuration of the service, its gates and the engine, made from the settings once at the start."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from evictstream.models.eviction import RuleParameters
from evictstream.models.messages.envelope import InputLimits
from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.timers import LEAN_FLOOR
from evictstream.streams.service.clock_watch import SECOND_US
from evictstream.streams.service.counters import WorkerCounters
from evictstream.streams.service.epoch_news import EpochNews
from evictstream.streams.service.gates import GateLimits
from evictstream.streams.service.messages import MessageWriter
from evictstream.streams.settings import Settings

# The least limit of a record. A topic whose own limit is smaller is misconfigured, perhaps for minutes only. When it
# refuses a record, the worker ends and loses nothing; a smaller limit here would make dead letters of good records.
LEAST_LIMIT_BYTES = 262_144


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """Topics, rules and limits of one service.

    Attributes:
        record_limit_bytes: largest record that every topic of the service takes.
        feed_silence_us: the gate `feed` closes for a cluster when its feed's latest heartbeat is older.
        clock_skew_us: append times further ahead of all clocks lie in the future; `None` where they are the clock.
        now_us: reads the wall clock; tests and replays pass another.
        counters: counts of the worker, which all its partitions share.
        epochs: says that a cluster has begun a new epoch, which all partitions notice.
        lean_floor: a partition's heap with fewer wake-ups is never replaced by a leaner one.
    """

    nodes_topic: str
    pods_topic: str
    results_topic: str
    commands_topic: str
    decisions_topic: str
    dead_letters_topic: str
    partitions: int
    rules: RuleParameters
    limits: InputLimits
    record_limit_bytes: int
    feed_silence_us: int
    clock_skew_us: int | None = 5 * SECOND_US
    now_us: Callable[[], int] = SYSTEM_CLOCK.now_us
    counters: WorkerCounters = dataclasses.field(default_factory=WorkerCounters)
    epochs: EpochNews = dataclasses.field(default_factory=EpochNews)
    lean_floor: int = LEAN_FLOOR

    def message_writer(self) -> MessageWriter:
        """Make the writer of a partition's commands and decisions."""
        return MessageWriter(self.commands_topic, self.decisions_topic)


def rules_of(settings: Settings) -> RuleParameters:
    """Convert the settings to the numbers of the eviction rules."""
    return RuleParameters(
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


def service_config(settings: Settings, record_limit_bytes: int) -> ServiceConfig:
    """Convert the settings; `record_limit_bytes` is the largest record that every topic of the service takes."""
    return ServiceConfig(
        nodes_topic=settings.nodes_topic,
        pods_topic=settings.pods_topic,
        results_topic=settings.results_topic,
        commands_topic=settings.commands_topic,
        decisions_topic=settings.decisions_topic,
        dead_letters_topic=settings.dead_letters_topic,
        partitions=settings.partitions,
        rules=rules_of(settings),
        limits=InputLimits(settings.max_object_bytes, int(settings.max_event_delay_seconds * SECOND_US)),
        record_limit_bytes=min(settings.max_record_bytes, max(record_limit_bytes, LEAST_LIMIT_BYTES)),
        feed_silence_us=int(settings.feed_silence_limit_seconds * SECOND_US),
        clock_skew_us=int(settings.clock_skew_limit_seconds * SECOND_US),
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
        security=settings.security_arguments(),
        inputs=settings.input_topics,
        outputs=(settings.commands_topic, settings.decisions_topic, settings.dead_letters_topic),
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
