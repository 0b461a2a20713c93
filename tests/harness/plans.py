"""What a partition of the service has to know, for tests that run one without Kafka, under a clock of their own."""

from __future__ import annotations

from collections.abc import Callable

from models.eviction import Rules
from models.messages.envelope import Limits
from streams.service.clock import SECOND_US
from streams.service.plan import ServicePlan

FEED_SILENCE_SECONDS = 60


def one_partition(now_us: Callable[[], int]) -> ServicePlan:
    """Make the plan of a service with one partition and the default rules."""
    return ServicePlan(
        nodes_topic="nodes",
        pods_topic="pods",
        results_topic="results",
        commands_topic="commands",
        decisions_topic="decisions",
        dead_letters_topic="dead-letters",
        application="test",
        partitions=1,
        rules=Rules(),
        limits=Limits(),
        record_limit_bytes=2_000_000,
        feed_silence_us=FEED_SILENCE_SECONDS * SECOND_US,
        now_us=now_us,
    )
