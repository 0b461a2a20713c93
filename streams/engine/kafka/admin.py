"""Questions to the brokers that no producer or consumer answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.admin import AIOKafkaAdminClient

from evictstream.streams.engine.kafka.connection import use_broker_connections
from evictstream.streams.engine.kafka.errors import translated_errors

if TYPE_CHECKING:
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.ports import Place


async def committed_offsets(
    config: EngineConfig, places: Sequence[Place], new_admin: Callable[..., Any] = AIOKafkaAdminClient
) -> dict[Place, int]:
    """Ask for the offsets that the group has committed; -1 where it has none. Raises `KafkaClientError`."""
    use_broker_connections()
    admin = new_admin(bootstrap_servers=config.bootstrap_servers, **config.security)
    asked = [TopicPartition(*place) for place in places]
    with translated_errors():
        await admin.start()
        try:
            found = await admin.list_consumer_group_offsets(config.application, partitions=asked)
        finally:
            await admin.close()
        # aiokafka 0.14.0 takes the error of a coordinator that has moved, or is loading, for an answer without
        # partitions: to believe it would mean to begin with an empty state.
        if not found.keys() >= set(asked):
            raise kafka_errors.GroupCoordinatorNotAvailableError
    return {(place.topic, place.partition): found[place].offset for place in asked}
