"""What a partition publishes of owners that are about to lose pods (docs/messages.md#workloads).

Once a second, with what else is published, the owners whose pods have changed get a record each, those that lose most
first. What does not fit waits for the next turn, and `workloadsUpTo` of the cluster's level stays until then.

What stands of the owner of the partition before is not known, and not asked for. Its records have earlier sequences,
and the level says from which one on they count.
"""

from __future__ import annotations

import dataclasses
import heapq
from typing import TYPE_CHECKING, Final

from evictstream.models.instants import instant_text
from evictstream.models.messages.codec import encode
from evictstream.models.messages.vocabulary import API_VERSION
from evictstream.models.messages.workload import (
    MOST_NAMES_OF_WORKLOAD,
    WORKLOAD_KIND,
    FleetWorkload,
    LossStep,
    PodLosses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.eviction.workloads import LeavingPods
    from evictstream.models.kubernetes.traits import Owner
    from evictstream.streams.engine.core.outbox import Headers, Outbox
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.partition.held import HeldEvictions

MOST_WORKLOADS_IN_TURN: Final = 200
"""Records of one cluster in a turn, some 100 KB. Readers that place pods do not place more in a second."""

_IN_SLICE: Final = 40  # each some 50 µs

# Nobody may change this list: see `streams.partition.messages`.
WORKLOAD_HEADERS: Final[Headers] = [
    ("type", b"io.evictstream.fleet-workload.v1"),
    ("content-type", b"application/json"),
]


@dataclasses.dataclass(slots=True)
class _PublishedCluster:
    """What this owner of the partition has published of a cluster.

    Attributes:
        first: sequence from which on records count.
        up_to_us: when all that had changed until then was published; None before the first time.
        standing: what each record says.
    """

    first: int
    up_to_us: int | None = None
    standing: dict[Owner, LeavingPods] = dataclasses.field(default_factory=dict)


class PublishedWorkloads:
    """Publishes the owners of the clusters of one partition."""

    __slots__ = ("_clusters", "_held", "_next_sequence", "_topic")

    def __init__(
        self,
        config: PartitionConfig,
        held: HeldEvictions,
        next_sequence: Callable[[Cluster, int, Outbox], int],
    ) -> None:
        """`next_sequence` gives that of the next record of a cluster, at an instant."""
        self._topic = config.workloads_topic
        self._held = held
        self._next_sequence = next_sequence
        self._clusters: dict[str, _PublishedCluster] = {}

    def begin(self, cluster: Cluster, now_us: int, outbox: Outbox) -> None:
        """Let the records of a cluster count from now on, if this owner of the partition has written none."""
        workloads = cluster.workloads
        if workloads is not None and cluster.name not in self._clusters:
            self._clusters[cluster.name] = _PublishedCluster(self._next_sequence(cluster, now_us, outbox))
            workloads.changed.update(workloads.owners())

    def look(self, cluster: Cluster, now_us: int, outbox: Outbox) -> Iterator[None]:
        """Publish what has changed of a cluster that has begun; between two slices, of 2 ms, others may run."""
        workloads, published = cluster.workloads, self._clusters.get(cluster.name)
        if workloads is None or published is None:
            return
        for key, uid in self._held.take_touched(cluster.name):
            node = cluster.nodes.get(key[len(cluster.key) + 1 :].decode())  # a timer's key is `<cluster>/<node>`
            if node is not None:
                workloads.look_at(node, (uid,))
        if not workloads.changed and published.up_to_us is not None:
            return
        for number, (_, owner) in enumerate(heapq.nsmallest(MOST_WORKLOADS_IN_TURN, workloads.losses()), start=1):
            workloads.changed.discard(owner)
            found = workloads.leaving(owner, self._held.by_cluster.get(cluster.name, {}))
            self._publish(cluster, published.standing, owner, found, now_us=now_us, outbox=outbox)
            if number % _IN_SLICE == 0:
                yield
                if outbox.is_in_step:
                    return
        if not workloads.changed:
            published.up_to_us = now_us

    def _publish(
        self,
        cluster: Cluster,
        standing: dict[Owner, LeavingPods],
        owner: Owner,
        found: LeavingPods | None,
        *,
        now_us: int,
        outbox: Outbox,
    ) -> None:
        """Write the record of an owner if it says something new."""
        assert self._topic is not None  # noqa: S101 - the caller has looked
        if found == standing.get(owner):
            return
        key = workload_key(cluster.name, owner)
        if found is None:
            del standing[owner]
            outbox.retract(self._topic, key)
            return
        standing[owner] = found
        sequence = self._next_sequence(cluster, now_us, outbox)
        outbox.send(self._topic, key, encode(_record(cluster.name, owner, found, sequence, now_us)), WORKLOAD_HEADERS)

    def marks(self, cluster: str) -> tuple[int | None, int | None]:
        """Return from which sequence on records of a cluster count, and up to when all is told (microseconds)."""
        published = self._clusters.get(cluster)
        return (None, None) if published is None else (published.first, published.up_to_us)

    def take_back(self, cluster: Cluster, outbox: Outbox) -> None:
        """Write tombstones for a cluster that is forgotten, or of which nothing is left."""
        published = self._clusters.pop(cluster.name, None)
        if published is not None and self._topic is not None:
            for owner in published.standing:
                outbox.retract(self._topic, workload_key(cluster.name, owner))


def workload_key(cluster: str, owner: Owner) -> bytes:
    """Return the key of an owner's record."""
    return "/".join((cluster, *owner)).encode()


def _record(cluster: str, owner: Owner, found: LeavingPods, sequence: int, now_us: int) -> FleetWorkload:
    namespace, kind, name = owner
    loses_all = found.leaving == found.bound
    return FleetWorkload(
        api_version=API_VERSION,
        kind=WORKLOAD_KIND,
        cluster=cluster,
        namespace=namespace,
        owner_kind=kind,
        owner_name=name,
        sequence=sequence,
        at=instant_text(now_us),
        pods=PodLosses(bound=found.bound, leaving=found.leaving, held=found.held),
        first_deadline=instant_text(found.first_us),
        loses_all_at=instant_text(found.last_us) if loses_all else None,
        steps=tuple(
            LossStep(
                at=instant_text(step.at_us),
                until=None if step.until_us == step.at_us else instant_text(step.until_us),
                left=step.left,
            )
            for step in found.descent
        ),
        zones=tuple(found.zones)[:MOST_NAMES_OF_WORKLOAD],
        taints=tuple(found.taints)[:MOST_NAMES_OF_WORKLOAD],
    )
