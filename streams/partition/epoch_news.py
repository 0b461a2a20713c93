"""Says that a cluster has begun a new epoch: once in a process, though each of its partitions notices it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evictstream.models.instants import instant_text


class EpochBegun(NamedTuple):
    """A new epoch of a cluster (docs/messages.md#epochs).

    Attributes:
        cluster_uid: of its namespace `kube-system` from now on; empty if the feed does not say.
        at_us: event time of the first record that was read of it, microseconds since 1970.
    """

    cluster: str
    epoch: int
    cluster_uid: str
    at_us: int

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.cluster} begins epoch {self.epoch} of its resource versions at {instant_text(self.at_us)}"


class EpochNews:
    """Keeps the newest epoch of each cluster that was said."""

    def __init__(self, say: Callable[[EpochBegun], None] = lambda _: None) -> None:
        self._say = say
        self._newest: dict[str, int] = {}

    def take(self, begun: EpochBegun) -> None:
        """Say it, unless this or a later one of the cluster was said."""
        if begun.epoch > self._newest.get(begun.cluster, 0):
            self._newest[begun.cluster] = begun.epoch
            self._say(begun)
