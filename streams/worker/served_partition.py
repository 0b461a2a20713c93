"""What a worker asks of a partition beyond what the engine does: why its timers wait, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evictstream.streams.engine.core.logic import PartitionLogic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.streams.partition.overdue import Overdue, Waiting
    from evictstream.streams.partition.published import PublishedFleet


class ServedPartition(PartitionLogic, Protocol):
    """A partition as gates, timers, snapshots and metrics see it; `EvictionPartition` is the one that is served.

    Times are microseconds UTC. All methods only read, and run on the event loop's thread.

    Attributes:
        published: what of its clusters anyone may read.
    """

    published: PublishedFleet

    def clock_objection(self) -> str | None:
        """Return why the times of the log are not to be trusted, or `None`."""

    def open_evictions(self) -> dict[str, int]:
        """Count open evictions by cluster, with 0 for a cluster that has none."""

    def unanswered(self, now_us: int) -> dict[str, Waiting]:
        """Return how many evictions of each cluster were issued and not answered since, and since when the oldest."""

    def issued_since_us(self) -> dict[str, int]:
        """Return since when the oldest eviction is due that was issued and has not ended, by cluster."""

    def silent_since_us(self, now_us: int) -> dict[str, int]:
        """Return since when each feed is silent that is silent for too long."""

    def overdue(self, now_us: int, limit: int) -> Iterator[Overdue]:
        """Yield evictions that are due, have not fired and are not held, those that wait for their feed first.

        Reads at most `limit` wake-ups of each silent feed, and `limit` others.
        """

    def held_back(self) -> dict[tuple[str, str], Waiting]:
        """Count the evictions each brake and policy holds, by name and cluster, and since when the first is due."""
