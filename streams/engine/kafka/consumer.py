"""aiokafka's consumer, mended where its stop would break off, and where nobody sees an error."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer
from aiokafka import errors as kafka_errors
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest

import evictstream.streams.engine.kafka.connection  # noqa: F401 - how long its connections wait
from evictstream.streams.engine.core.permit import Permit


class StoppableConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
    """A consumer whose stop comes to its end, and whose commits may be given up.

    aiokafka 0.14.0 goes on with a commit that who asked for it has given up. When the connection ends, its error is
    seen by nobody, which asyncio reports, perhaps after the last words of a worker.

    It also cancels what it still fetches and lets the cancellation out where that waits to ask again, which it
    does while a leader is away: who stopped the consumer seems to be cancelled, and its connections stay open.

    Attributes:
        permit: without it, the group is not asked to join.
        confirmed_at: when the newest heartbeat was sent that the group has answered well (``time.monotonic``).

    """

    confirmed_at = float("-inf")
    _leaving: asyncio.Task[None] | None = None

    def __init__(self, **arguments: object) -> None:
        """Take what `AIOKafkaConsumer` takes."""
        super().__init__(**arguments)
        self.permit = Permit()

    async def start(self) -> None:
        """Connect."""
        await super().start()
        if self._group_id is None:
            return
        coordinator = self._coordinator
        send = coordinator._send_req  # noqa: SLF001 - there is no public way

        async def send_permitted(request: object) -> object:
            if isinstance(request, JoinGroupRequest):
                await self.permit.granted()
            return await send(request)

        coordinator._send_req = send_permitted  # noqa: SLF001
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

    def begin_to_leave(self) -> None:
        """Leave the group from within the consumer's loop, a static member too, whatever else is asked or waited for.

        aiokafka leaves only after the rebalance that is on, and never for a static member: it is to come back. Brokers
        take the member's id of both. Who has none yet, or is out by now, has nothing to leave.
        """
        self._leaving = asyncio.ensure_future(self._leave())

    async def _leave(self) -> None:
        coordinator = self._coordinator
        with contextlib.suppress(kafka_errors.KafkaError):  # the session times out instead
            await coordinator.ensure_coordinator_known()
            # Not over the group's connection: a broker answers one after another, and a JoinGroup may wait there.
            await self._client.send(
                coordinator.coordinator_id, LeaveGroupRequest(coordinator.group_id, coordinator.member_id)
            )

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
