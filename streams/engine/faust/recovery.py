"""Faust's table manager and recovery, with the takeover in place of the record-by-record replay.

Faust decides when a recovery starts, cancels it at the next rebalance, pauses, resumes and controls the flow. The
engine differs in three things: the group does not subscribe to changelogs, because the takeover reads them; a recovery
ends when the end offset of the changelog is reached; and an error ends the process instead of being logged.
"""

from __future__ import annotations

import logging
from typing import cast

from faust.tables.manager import TableManager
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP
from mode import Service

from evictstream.streams.engine.faust.host import host_of
from evictstream.streams.errors import AssignmentBrokenError, PartitionLostError, TakeoverFailedError

_LOG = logging.getLogger("faust.engine")  # for Faust's messages through these classes, at the level of its own loggers

_RETRY_PAUSE_SECONDS = 1.0


class TakeoverRecovery(Recovery):
    """Runs one takeover after each rebalance and resumes the streams when it is done."""

    logger = _LOG

    _assigned: frozenset[TP] = frozenset()

    def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Nothing to flush: rows are written by the partition writers."""

    async def on_stop(self) -> None:
        """Nothing is buffered here."""

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Remember the assignment and start a takeover; a running one is cancelled."""
        del revoked, newly_assigned  # `assigned` is complete
        self._assigned = frozenset(assigned)
        self._generation_id = generation_id
        self.signal_recovery_start.set()

    @Service.task
    async def _restart_recovery(self) -> None:
        ownership = host_of(self.app).ownership
        while not self.should_stop:
            if await self.wait_for_stopped(self.signal_recovery_start):  # type: ignore[arg-type]  # asyncio's Event works
                break
            self.signal_recovery_start.clear()
            generation_id = self._generation_id
            self._set_recovery_started()
            try:
                await self._wait(
                    ownership.take_over(
                        self._numbers(),
                        generation_id,
                        resume=self._resume,
                        commit=self.app.consumer.commit,
                    )
                )
            except RebalanceAgain:
                continue
            except ServiceStopped:
                break
            except PartitionLostError as error:
                # Fenced while taking over: the group has assigned again, or the broker is away. Try again, a few times.
                try:
                    ownership.count_failure(error)
                except TakeoverFailedError as failure:
                    await self.app.crash(failure)
                    break
                self.log.warning("takeover failed, retrying: %s", error)
                await self.sleep(_RETRY_PAUSE_SECONDS)
                self.signal_recovery_start.set()
            except Exception as error:  # noqa: BLE001 - a worker without its state must not go on
                await self.app.crash(error)
                break

    async def _resume(self, generation_id: int) -> None:
        # `_wait` cancels an outdated takeover only at its next `await`. This keeps batches from flowing for it.
        self._refuse_outdated()
        await self.on_recovery_completed(generation_id)
        self._refuse_outdated()

    def _refuse_outdated(self) -> None:
        if self.signal_recovery_start.is_set():
            raise RebalanceAgain

    def _numbers(self) -> set[int]:
        """Return the partition numbers of the assignment; it must have every input of each of them."""
        inputs = host_of(self.app).config.inputs
        numbers = {tp.partition for tp in self._assigned}
        missing = [f"{topic}-{n}" for n in numbers for topic in inputs if TP(topic, n) not in self._assigned]
        if missing:
            raise AssignmentBrokenError(missing=tuple(sorted(missing)))
        return numbers

    @Service.task
    async def _slurp_changelogs(self) -> None:
        """Nothing: changelogs are read in bulk by the takeover."""

    @Service.task
    async def _publish_stats(self) -> None:
        """Nothing: the takeover logs what it read."""


class EngineTableManager(TableManager):
    """Registers tables with Faust without subscribing their changelogs."""

    logger = _LOG

    @property
    def recovery(self) -> TakeoverRecovery:
        """The one recovery service."""
        if self._recovery is None:
            self._recovery = TakeoverRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return cast("TakeoverRecovery", self._recovery)

    async def on_start(self) -> None:
        """Start the recovery service; tables were all declared when the app was built."""
        await self._update_channels()
        await self.recovery.start()

    async def _update_channels(self) -> None:
        self._tables_finalized.set()
        self._tables_registered.set()
