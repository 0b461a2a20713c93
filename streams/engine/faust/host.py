"""What the engine's Faust classes find on the app that they belong to, beside what Faust gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from faust.types import AppT

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.ownership import Ownership
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.kafka.clients import KafkaClients


class EngineHost(Protocol):
    """The app, as transport and recovery see it.

    Attributes:
        config: names, limits and times.
        partitions: gets batches.
        ownership: gets assignments.
        clients: makes the member of the group.
    """

    config: EngineConfig
    partitions: Partitions[Any]
    ownership: Ownership
    clients: KafkaClients


def host_of(app: AppT) -> EngineHost:
    """Give the engine's side of a Faust app."""
    return cast("EngineHost", app)
