"""The order of things between an assignment and the next: the same for Faust's recovery and for the simulation.

After each rebalance: stop all repairs, take over what is assigned, seek and let batches flow, commit group offsets. To
leave: write what was stepped, commit group offsets, close. The runner of the engine brings the assignment, `resume`
(seeks, then lets batches flow) and `commit`; it cancels `take_over` when the next rebalance begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evictstream.streams.errors import PartitionLostError, TakeoverFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock, Group, Place

    Resume = Callable[[int], Awaitable[object]]
    Commit = Callable[[], Awaitable[object]]


class Ownership:
    """Brings the partitions of one worker in line with its membership in the group."""

    def __init__(self, partitions: Partitions[Any], group: Group, clock: Clock) -> None:
        self._partitions = partitions
        self._group = group
        self._monotonic = clock.monotonic
        self._failures = 0
        self._failed_at = 0.0

    async def take_over(self, numbers: set[int], generation: int, *, resume: Resume, commit: Commit) -> None:
        """Take over what the group has assigned, and begin to work.

        Raises:
            PartitionLostError: fenced, or a broker is away; count it with `count_failure`, then try again.
        """
        partitions = self._partitions
        await partitions.revoked()
        # A worker that was thrown out gets no confirmation, and so does not fence the new owner again. The group
        # confirms by taking offsets of assigned partitions: without any, the worker would wait forever.
        if self._failures and any(number in numbers for _, number in partitions.durable_positions()):
            await partitions.confirmed_since(self._failed_at)
        await partitions.assign(numbers, generation)
        await resume(generation)
        self._failures = 0
        if not self._group.is_rebalancing:
            partitions.note_owned()
        # The first commit of group offsets renews the lease: firing need not wait for the next regular one.
        await commit()

    def count_failure(self, error: PartitionLostError) -> None:
        """Count a takeover that has failed.

        Raises:
            TakeoverFailedError: as many in a row as the configuration allows have failed.
        """
        self._failures, self._failed_at = self._failures + 1, self._monotonic()
        if self._failures >= self._partitions.config.takeover_attempts:
            raise TakeoverFailedError(partition=error.partition, attempts=self._failures) from error

    async def confirm(self, send: Callable[[Mapping[Place, int]], Awaitable[bool]]) -> bool:
        """Commit the positions of committed transactions by `send`; a success renews the lease."""
        asked_at = self._monotonic()
        positions = self._partitions.durable_positions()
        if not positions or not await send(positions):
            return False
        self._partitions.lease.renew(asked_at)
        self._partitions.waits.heartbeat.progress(asked_at)
        return True

    async def let_go(self, commit: Commit) -> None:
        """Write what was stepped, tell the group how far it got, and close all partitions for good."""
        await self._partitions.flush()
        await commit()
        await self._partitions.close()
