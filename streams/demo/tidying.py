"""Removes what a run has made on a Kafka that is not its own: topics and consumer group, by this run's names."""

from __future__ import annotations

import contextlib

from kafka.errors import KafkaError

from streams.broker.admin import admin_client
from streams.broker.topics import topic_specs
from streams.settings import Settings


def delete_own(settings: Settings) -> None:
    """Delete the topics and the group of these settings; those that are not there count as deleted.

    Raises:
        BrokerError: Kafka did not answer, or said no.

    """
    with admin_client(settings, "delete the demo's topics") as client:
        present = set(client.list_topics())
        ours = [spec.name for spec in topic_specs(settings) if spec.name in present]
        if ours:
            client.delete_topics(ours)
        with contextlib.suppress(KafkaError):  # a group that never formed; an empty one expires by itself
            client.delete_groups([settings.group_id])
