"""aiokafka's consumer, mended where its stop would break off, and where nobody sees an error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer

import streams.engine.connection  # noqa: F401 - how long its connections wait


class StoppableConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
    """A consumer whose stop comes to its end, and whose commits may be given up.

    aiokafka 0.14.0 goes on with a commit that who asked for it has given up. When the connection ends, its error is
    seen by nobody, which asyncio reports, perhaps after the last words of a worker.

    It also cancels what it still fetches and lets the cancellation out where that waits to ask again, which it
    does while a leader is away: who stopped the consumer seems to be cancelled, and its connections stay open.

    Attributes:
        confirmed_at: when the newest heartbeat was sent that the group has answered well (``time.monotonic``).

    """

    confirmed_at = float("-inf")

    async def start(self) -> None:
        """Connect."""
        await super().start()
        if self._group_id is None:
            return
        coordinator = self._coordinator
        commit = coordinator._do_commit_offsets  # noqa: SLF001 - there is no public way

        def commit_seen(*arguments: object) -> asyncio.Task[None]:
            task: asyncio.Task[None] = asyncio.ensure_future(commit(*arguments))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            return task

        coordinator._do_commit_offsets = commit_seen  # noqa: SLF001
        heartbeat = coordinator._do_heartbeat  # noqa: SLF001

        async def heartbeat_noted() -> bool:
            asked_at = time.monotonic()
            is_confirmed: bool = await heartbeat()
            if is_confirmed:
                self.confirmed_at = asked_at
            return is_confirmed

        coordinator._do_heartbeat = heartbeat_noted  # noqa: SLF001

    async def learn(self, topics: Iterable[str]) -> None:
        """Ask who leads these topics. For their offsets, aiokafka would ask for one after another, 100 ms apart."""
        await self._client.set_topics({*self._client._topics, *topics})  # noqa: SLF001 - there is no public way

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
