"""Changes topics as an operator would, while everything runs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from evictstream.streams.settings import Settings

Configs = Mapping[str, Mapping[str, str]]
"""Settings of Kafka's by topic and name, values as Kafka writes them."""

APPLY_SECONDS = 60
LOOK_SECONDS = 0.01

# How long a deleted file stays. A value that no topic has yet, so that each change is one.
HARMLESS = "file.delete.delay.ms"
_unused_values = itertools.count(60_001)


def alter_topics(settings: Settings, configs: Configs) -> None:
    """Give topics other settings, and return when the broker (of one node) acts by them.

    It answers a change before it applies it, and applies changes one after the other: while topics are being created
    that took up to a second. A change can be seen before it is applied, but not before the last one is.
    """
    after = {topic: {HARMLESS: str(next(_unused_values))} for topic in configs}
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    try:
        for change in (configs, after):
            client.alter_configs([_resource(topic, dict(named)) for topic, named in change.items()])
            _wait_until_visible(client, change)
    finally:
        client.close()


def _wait_until_visible(client: KafkaAdminClient, change: Configs) -> None:
    give_up_at = time.monotonic() + APPLY_SECONDS
    asked = [_resource(topic, dict.fromkeys(named)) for topic, named in change.items()]
    while True:
        seen = client.describe_configs(asked, config_filter="dynamic")["topic"]
        if all(seen[topic][name]["value"] == value for topic, named in change.items() for name, value in named.items()):
            return
        assert time.monotonic() < give_up_at, f"not applied after {APPLY_SECONDS} s: {change}"
        time.sleep(LOOK_SECONDS)


def _resource(topic: str, named: Mapping[str, str | None]) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, topic, dict(named))
