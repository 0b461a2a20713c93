"""Runs the executors of several clusters in one process, each with its own thread, consumer group and connection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from evictstream.streams.broker.admin import check_topics
from evictstream.streams.broker.missing_topics import wait_for_topics
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.executor.cluster_brakes import UNBRAKED, KnownBrakes
from evictstream.streams.executor.cluster_life import ClusterLife
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.executor_health import ExecutorHealth
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.health.endpoint import Endpoint
from evictstream.streams.kafka_reach import REACH
from evictstream.streams.settings import Settings
from evictstream.streams.start_line import log_start

log = structlog.get_logger(__name__)

_LONGEST_OUTAGE_SECONDS: Final = 86_400.0
"""How long a result may wait for Kafka."""

_LOOK_SECONDS: Final = 0.1
"""Between two checks whether to stop, and whether any cluster can be served."""

END_SECONDS: Final = 20.0
"""For a served cluster to end running evictions, send results and leave; Kubernetes gives a container 30 s."""

UNSERVED_END_SECONDS: Final = 1.0
"""For a cluster that is not served: it has nothing to end, and a plugin or its API server may hang."""


def execute_commands(
    orders: Sequence[ClusterOrder], options: ExecutionOptions, *, settings: Settings, is_stopped: Callable[[], bool]
) -> None:
    """Carry out commands until stopped, then let running evictions end, and leave the groups.

    A cluster that fails is tried again, while the others are served. It ends with an error if no cluster is served and
    each of them needs a change: a right, a file, another name.

    Args:
        orders: one for each cluster.
        options: for all clusters.
        settings: Kafka, topics, address of the health endpoint, and `comparison_operators`.
        is_stopped: called several times a second.

    Raises:
        CredentialsError: the configuration cannot be read, for every cluster.
        MissingRightsError: the mode needs more rights, in every cluster.
        ClusterNameTakenError: another cluster is fed under the name, for every cluster.
        AddressTakenError: the health endpoint cannot be opened.
        BrokerError: Kafka refuses.
        TopicsDifferError: topics are missing or differ.
    """
    acts = any(order.mode is not ExecutorMode.OBSERVE for order in orders)
    read = (settings.commands_topic, settings.feeds_topic, *([settings.brakes_topic] if acts else ()))
    specs = [spec for spec in topic_specs(settings) if spec.name in {*read, settings.results_topic}]
    report = check_topics(settings, specs)
    modes = {order.name: str(order.mode) for order in orders}
    log_start("executor starting", settings, report.kafka, modes=modes, group=options.group, instance=options.instance)
    found = wait_for_topics(
        settings, specs, report, is_stopped=is_stopped, but="partitions", whole=(settings.brakes_topic,)
    )
    if found is None:
        log.info("executor stopped", outcomes={})
        return
    found.raise_if_forbidden("READ", read)
    found.raise_if_forbidden("WRITE", (settings.results_topic,))
    REACH.watch()
    health = ExecutorHealth()
    endpoint = Endpoint(settings.health_host, settings.health_port, health, health)
    endpoint.start()
    log.info("health endpoint started", host=settings.health_host, port=endpoint.port)
    with contextlib.ExitStack() as stack:
        brakes: KnownBrakes = stack.enter_context(BrakesReader(settings)) if acts else UNBRAKED
        producer = stack.enter_context(open_producer(settings, delivery_seconds=_LONGEST_OUTAGE_SECONDS))
        lives = [ClusterLife(order, options, settings=settings, producer=producer, brakes=brakes) for order in orders]
        health.lives = lives
        for life in lives:
            life.start()
        try:
            while not is_stopped():
                if all(life.refusal is not None for life in lives):
                    raise next(life.refusal for life in lives if life.refusal is not None)
                time.sleep(_LOOK_SECONDS)
        finally:
            _end(lives)
    counts = {
        life.order.name: {str(outcome): count for outcome, count in life.answers.outcomes.items()}
        for life in lives
        if life.answers is not None
    }
    log.info("executor stopped", outcomes=counts)


def _end(lives: Sequence[ClusterLife]) -> None:
    for life in lives:
        life.stop()
    end_at = time.monotonic() + END_SECONDS
    unserved_end_at = time.monotonic() + UNSERVED_END_SECONDS
    for life in lives:
        life.join(max(0.0, (end_at if life.is_served else unserved_end_at) - time.monotonic()))
