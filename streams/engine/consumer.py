"""aiokafka's consumer, mended where its stop would break off."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer


class StoppableConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
    """A consumer whose stop comes to its end.

    aiokafka 0.14.0 cancels what it still fetches and lets the cancellation out where that waits to ask again, which it
    does while a leader is away: who stopped the consumer seems to be cancelled, and its connections stay open.
    """

    async def stop(self) -> None:
        """Leave the group and disconnect."""
        try:
            await super().stop()
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            for fetch in self._fetcher._pending_tasks:  # noqa: SLF001 - there is no public way
                fetch.cancel()
            await self._client.close()
