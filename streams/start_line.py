"""The first line of a service's log: what runs here, and on which Kafka."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from evictstream.streams.broker.first_contact import KafkaFacts
    from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)


def log_start(
    event: Literal["feed starting", "worker starting", "executor starting"],
    settings: Settings,
    kafka: KafkaFacts,
    **own: object,
) -> None:
    """Log it once Kafka has answered; `own` is what only this service has, such as its clusters."""
    log.info(
        event,
        version=importlib.metadata.version("evictstream"),
        kafka_version=kafka.version,
        brokers=kafka.brokers,
        kafka_cluster=kafka.cluster_id,
        bootstrap_servers=settings.bootstrap_servers,
        security_protocol=settings.security_protocol,
        application=settings.application_id,
        topic_prefix=settings.topic_prefix,
        partitions=settings.partitions,
        **own,
    )
