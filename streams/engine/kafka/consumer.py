"""aiokafka's consumer, mended where its stop would break off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer

from evictstream.streams.engine.kafka.connection import use_broker_connections
from evictstream.streams.engine.kafka.fetched_batches import READING, BatchReading, use_fetched_batches
from evictstream.streams.engine.kafka.leader_epochs import use_leader_epochs


class StoppableConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
    """A consumer whose stop comes to its end.

    aiokafka 0.14.0 cancels what it still fetches, and while a leader is away lets that cancellation out: the caller of
    its stop seems to be cancelled, and its connections stay open.
    """

    def __init__(self, *, largest_batch_bytes: int, refuses_transactions: bool = False, **arguments: object) -> None:
        """Read batches up to a size; `refuses_transactions` leaves out the records of transactions."""
        use_broker_connections()
        use_fetched_batches()
        use_leader_epochs()
        super().__init__(**arguments)
        self._reading = BatchReading(largest_batch_bytes, refuses_transactions=refuses_transactions)

    async def start(self) -> None:
        """Connect, and let each poll know how this consumer reads."""
        await super().start()
        fetched_records = self._fetcher.fetched_records

        async def fetched_within_bound(*arguments: object, **more: object) -> object:
            self._reading.expanded_bytes = 0
            READING.set(self._reading)
            return await fetched_records(*arguments, **more)

        self._fetcher.fetched_records = fetched_within_bound

    async def learn(self, topics: Iterable[str]) -> None:
        """Ask who leads these topics. For their offsets, aiokafka would ask for one after another, 100 ms apart."""
        await self._client.set_topics({*self._client._topics, *topics})  # noqa: SLF001 - there is no public way

    async def stop(self) -> None:
        """Leave the group, if it is in one, and disconnect."""
        try:
            await super().stop()
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            for fetch in self._fetcher._pending_tasks:  # noqa: SLF001 - there is no public way
                fetch.cancel()
            await self._client.close()
