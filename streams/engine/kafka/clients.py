"""Makes all Kafka clients of a worker: `engine.core.ports.Kafka`, and the member of the consumer group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.kafka import admin
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.engine.kafka.group_member import GroupMember, group_member
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.engine.kafka.transactional_producer import TransactionalProducer

if TYPE_CHECKING:
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.ports import Clock, Isolation, Place


class ClientClasses(NamedTuple):
    """Which client classes to use: aiokafka's, repaired. The simulation passes its own."""

    producer: Callable[..., Any] = TransactionalProducer
    consumer: Callable[..., Any] = StoppableConsumer
    admin: Callable[..., Any] = AIOKafkaAdminClient


class KafkaClients:
    """Makes the clients of one worker.

    Attributes:
        permit: a client needs it to join the group or to fence.
    """

    def __init__(
        self,
        config: EngineConfig,
        permit: Permit | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        classes: ClientClasses | None = None,
    ) -> None:
        self.permit = permit or Permit(clock.monotonic)
        self._config = config
        self._clock = clock
        self._classes = classes or ClientClasses()

    def producer(self, partition: int) -> PartitionProducer:
        """Make the producer of a partition number; it is not started."""
        return PartitionProducer(
            partition,
            self._config,
            self.permit,
            clock=self._clock,
            new_client=self._classes.producer,
            new_reader=self.reader,
        )

    def reader(
        self, on_progress: Callable[[], None] = lambda: None, *, isolation: Isolation = "read_committed"
    ) -> KafkaLogReader:
        """Make a reader; it calls `on_progress` each time that rows have come."""
        return KafkaLogReader(
            self._config, on_progress, isolation=isolation, clock=self._clock, new_consumer=self._classes.consumer
        )

    async def committed_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask for the offsets that the group has committed in these partitions; -1 where it has none."""
        return await admin.committed_offsets(self._config, places, self._classes.admin)

    def group_member(self, assignor: object) -> GroupMember:
        """Make the member of the consumer group."""
        return group_member(self._config, self.permit, assignor)
