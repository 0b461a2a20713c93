"""How far the service has read an input, by the offsets that its group has committed."""

from __future__ import annotations

import contextlib
import time

from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import RetriableError

from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.settings import Settings

_LOOK_SECONDS = 0.5
NEXT_STEP = "give this user the right to describe the group, or do not wait"


def wait_until_read(
    settings: Settings, topic: str, partitions: tuple[int, ...], patience_seconds: float
) -> tuple[int, ...]:
    """Wait until what partitions of an input hold now has been read and its effect committed; return those not read.

    Workers commit about each second, and nothing before it is durable. Without any worker all come back, late.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
    """
    give_up_at = time.monotonic() + patience_seconds
    places = [TopicPartition(topic, number) for number in partitions]
    with admin_client(settings, "read the end offsets of a topic") as client:
        ends = client.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    unread = partitions
    while True:
        # A new client each time: a client keeps the group's coordinator forever, and the coordinator may move.
        operation = "read the service's offsets"
        with admin_client(settings, operation, next_step=NEXT_STEP) as client, contextlib.suppress(RetriableError):
            read = client.list_group_offsets({settings.faust_app_id: places})[settings.faust_app_id]
            # -1 where the group has never committed; an input that is empty then counts as read.
            positions = {place: max(0, committed.offset) for place, committed in read.items()}
            unread = tuple(p.partition for p in places if positions.get(p, 0) < ends[p].offset)
        if not unread or time.monotonic() + _LOOK_SECONDS > give_up_at:
            return unread
        time.sleep(_LOOK_SECONDS)
