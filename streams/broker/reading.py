"""How far the service has read an input, by the offsets that its group has committed."""

from __future__ import annotations

import time

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from streams.broker.admin import admin_client
from streams.settings import Settings

LOOK_SECONDS = 0.5


def wait_until_read(
    settings: Settings, topic: str, partitions: tuple[int, ...], patience_seconds: float
) -> tuple[int, ...]:
    """Wait until what partitions of an input hold now has been read and its effect committed; return those not read.

    Workers commit about each second, and nothing before it is durable. Without any worker all come back, late.

    Raises:
        BrokerUnreachableError: nobody answered in time.
        BrokerRefusedError: Kafka said no.

    """
    give_up_at = time.monotonic() + patience_seconds
    places = [TopicPartition(topic, number) for number in partitions]
    with admin_client(settings, "tell how far the service has read") as client:
        ends = client.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        while True:
            read = client.list_group_offsets({settings.faust_app_id: places})[settings.faust_app_id]
            unread = tuple(p.partition for p in places if p not in read or read[p].offset < ends[p].offset)
            if not unread or time.monotonic() + LOOK_SECONDS > give_up_at:
                return unread
            time.sleep(LOOK_SECONDS)
