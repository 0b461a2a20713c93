"""Changes topics as an operator would, while everything runs."""

from __future__ import annotations

from collections.abc import Mapping

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from evictstream.streams.settings import Settings


def alter_topics(settings: Settings, configs: Mapping[str, Mapping[str, str]]) -> None:
    """Give topics settings of Kafka's, by topic and name, values as Kafka writes them."""
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, dict(c)) for name, c in configs.items()])
    client.close()
