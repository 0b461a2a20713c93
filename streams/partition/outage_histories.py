"""Of which clusters the rows keep a history of their nodes' counts: those in which a policy holds in outages.

What such a policy has held is spread from the end of the outage on, which a new owner has to know. A row that has a
history says so itself: the next owner keeps it on from the first record, before it has read any policy. Where no policy
asks for it, a change of a node writes and encodes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.models.instants import SECOND_US
from evictstream.models.steering.node_counts import STILL

if TYPE_CHECKING:
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.steering.policies import ClusterPolicy, Policies
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.held import HeldEvictions


class OutageHistories:
    """Begins and ends the histories of the clusters of one partition."""

    __slots__ = ("_clusters", "_held", "_next_us", "_now_us", "_policies")

    def __init__(self, clusters: Clusters, held: HeldEvictions) -> None:
        """`held` has the policies of each turn."""
        self._clusters = clusters
        self._held = held
        self._policies: Policies | None = None  # of the last look
        self._next_us = STILL  # when the first of them asks no longer
        self._now_us = 0

    def turn(self, now_us: int, outbox: Outbox) -> None:
        """Look at all clusters if the policies are others, or one has ended. Nothing ends while one cannot be read."""
        self._now_us = now_us
        policies = self._held.policies
        if (policies is self._policies and now_us < self._next_us) or outbox.is_in_step or not self._held.is_current:
            return
        self._policies, self._next_us = policies, STILL
        for cluster in list(self._clusters.by_key.values()):
            until_us = self._until_us(cluster.name)
            if until_us > now_us:
                self._next_us = min(self._next_us, until_us)
                if cluster.nodes and cluster.state.history is None:
                    self._clusters.begin_history(cluster, now_us, outbox)
            elif cluster.state.history is not None:
                self._clusters.end_history(cluster, outbox)

    def see_new(self, cluster: Cluster, outbox: Outbox) -> None:
        """Take in that a cluster has a new node; it may be its first."""
        if cluster.state.history is None and self._until_us(cluster.name) > self._now_us:
            self._clusters.begin_history(cluster, self._now_us, outbox)

    def _until_us(self, cluster: str) -> int:
        """Return until when a policy may ask for outages of a cluster; 0 if none does."""
        if not self._held.policies.standing:
            return 0
        return max((_asks_until_us(policy) for policy in self._held.policies_of(cluster)), default=0)


def _asks_until_us(policy: ClusterPolicy) -> int:
    """Return until when a policy may ask: an earlier revision as long as what it has held is spread."""
    if policy.clauses is not None and policy.clauses.outage is not None:
        return STILL
    spread_us = policy.policy.spread_seconds * SECOND_US
    return max((ended_us + spread_us for ended_us, was in policy.earlier if was.outage is not None), default=0)
