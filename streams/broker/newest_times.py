"""The time of the newest record of a partition, which only newer brokers' answers tell (KIP-734)."""

from __future__ import annotations

from collections.abc import Iterable

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from evictstream.models.instants import MILLISECOND_US
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.settings import Settings


def newest_times_us(settings: Settings, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Ask for the largest append time in each of some partitions (topic, number); empty ones are left out.

    Blocks, so call it in a thread.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused, or is older than 3.0.
    """
    wanted = {TopicPartition(topic, number): OffsetSpec.MAX_TIMESTAMP for topic, number in places}
    with admin_client(settings, "read the times of the newest records", is_told=False) as client:
        offsets = client.list_partition_offsets(wanted)
    return {(tp.topic, tp.partition): at.timestamp * MILLISECOND_US for tp, at in offsets.items() if at.timestamp >= 0}
