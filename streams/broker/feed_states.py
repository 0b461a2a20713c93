"""What is kept of each cluster that is fed: on the topic `feeds`, compacted, with one partition and the cluster as key.

The feed writes it and reads it when it starts again; an executor reads it to know that it talks to the same cluster.
"""

from __future__ import annotations

from typing import Final

import msgspec
from kafka import KafkaConsumer, TopicPartition

from evictstream.streams.broker.clients import client_arguments, our_errors
from evictstream.streams.settings import Settings

POLL_MS: Final = 1_000


class FeedState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is kept of one cluster.

    Attributes:
        cluster_uid: UID of its namespace `kube-system`.
        epoch: of its resource versions.
        resource_version: the highest one that its feed has seen in this epoch.
    """

    cluster_uid: str
    epoch: int
    resource_version: int


def read_state(settings: Settings, cluster: str) -> FeedState | None:
    """Read what is kept of a cluster; None if nothing is.

    Raises:
        BrokerError: the topic cannot be read.
    """
    partition = TopicPartition(settings.feeds_topic, 0)
    found = None
    with our_errors(settings, f"read {settings.feeds_topic}"):
        consumer = KafkaConsumer(
            **client_arguments(settings), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        try:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                for records in consumer.poll(timeout_ms=POLL_MS).values():
                    for record in records:
                        if record.key == cluster.encode():
                            found = record.value
        finally:
            consumer.close()
    return None if found is None else msgspec.json.decode(found, type=FeedState)
