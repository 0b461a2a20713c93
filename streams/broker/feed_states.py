"""What is kept of each cluster that is fed: on the topic `feeds`, compacted, with one partition and the cluster as key.

The feed writes it and reads it when it starts again; an executor reads it to know that it talks to the same cluster.
"""

from __future__ import annotations

import time
from typing import Final

import msgspec
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import open_consumer
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

    The highest epoch counts: a feed that was frozen, or cut off, may write its own, earlier one behind it.

    Raises:
        BrokerError: the topic cannot be read.
    """
    partition = TopicPartition(settings.feeds_topic, 0)
    found: FeedState | None = None
    with our_errors(settings, f"read {settings.feeds_topic}"):
        consumer = open_consumer(settings, is_of_inputs=True, group_id=None, auto_offset_reset="earliest")
        try:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            give_up_at = time.monotonic() + settings.request_timeout_seconds
            while consumer.position(partition) < end:
                if time.monotonic() > give_up_at:
                    raise KafkaTimeoutError
                for records in consumer.poll(timeout_ms=POLL_MS).values():
                    give_up_at = time.monotonic() + settings.request_timeout_seconds
                    for record in records:
                        if record.key == cluster.encode():
                            state = msgspec.json.decode(record.value, type=FeedState)
                            found = state if found is None or state.epoch >= found.epoch else found
        finally:
            consumer.close()
    return found
