"""Names of a run's own on a Kafka that others use too: its topics and groups, and their removal."""

from __future__ import annotations

import contextlib

from kafka.errors import KafkaError

from evictstream.streams.broker.admin import present_topics
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.settings import Settings


def named(settings: Settings, name: str) -> Settings:
    """Give settings with the topics and the group of the run of that name."""
    return settings.model_copy(update={"topic_prefix": f"{name}.", "application_id": name})


def delete_own(settings: Settings) -> None:
    """Delete the topics of these settings, and the groups whose names begin as theirs; what is not there is fine.

    Raises:
        BrokerError: Kafka did not answer, or said no.
    """
    with admin_client(settings, "delete the topics of a run") as client:
        if ours := present_topics(client, [spec.name for spec in topic_specs(settings)]):
            client.delete_topics(sorted(ours))
        with contextlib.suppress(KafkaError):  # a group that still has members expires by itself
            groups = [group["group_id"] for group in client.list_groups()]
            client.delete_groups([group for group in groups if group.startswith(settings.application_id)])
