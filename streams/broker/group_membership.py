"""What kafka-python 3.0.12 gets wrong when a consumer joins a group, and how its users avoid it."""

from __future__ import annotations

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener

from evictstream.streams.broker.clients import partitions_of


def subscribe(consumer: KafkaConsumer, topic: str, listener: AsyncConsumerRebalanceListener | None = None) -> None:
    """Subscribe to a topic that the consumer knows by then.

    A leader of the group that learns of the topic while it joins assigns nothing, and nobody joins again for five
    minutes, until metadata is refreshed (`_assignment_snapshot` of coordinator/consumer.py).

    Raises:
        TopicsDifferError: the topic is missing.
    """
    partitions_of(consumer, topic)
    consumer.subscribe([topic], listener=listener)


def finish_joining(consumer: KafkaConsumer) -> None:
    """Have the library end a join that it has begun and forgotten. Call it before each `poll`.

    A join that outlasts a `poll` ends between two of them. If only new metadata had asked for it, nothing asks any more
    by then: heartbeats stay off, offsets are not committed, each `poll` returns at once, and after its session the
    consumer is out of the group (`join_group_async` of coordinator/base.py).
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - none is public
    if coordinator.rejoining and not coordinator.need_rejoin():
        coordinator.request_rejoin()
