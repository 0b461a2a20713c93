"""What the guards of one partition count, and the incidents that they hold (docs/policies.md#guard).

Counts are in memory: a new owner makes them from its rows, before anything of the cluster fires. Incidents are in the
row of their cluster, which is written in the transaction in which they begin. Where no policy guards, nothing is kept.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evictstream.models.eviction import EvictionState, NothingDue, decide
from evictstream.models.eviction.held_attempts import guarded_node
from evictstream.models.eviction.losing_owners import LosingOwners
from evictstream.models.eviction.transitions import OUTSTANDING
from evictstream.models.messages.incident import IncidentState
from evictstream.models.messages.policy_clauses import GuardMeasure
from evictstream.models.steering.guarded_nodes import ALL_NODES, ALWAYS, Covered, GuardedPart
from evictstream.models.steering.incidents import (
    MOST_INCIDENTS,
    begin_earlier,
    found_together,
    open_incident,
    standing_incidents,
)
from evictstream.models.steering.owner_counts import OwnerCount, guard_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evictstream.models.eviction import NodeAggregate, RuleParameters
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.eviction.levels import Move
    from evictstream.models.eviction.rule_parameters import ClusterRules
    from evictstream.models.steering.guards import Exceeded, GuardCount
    from evictstream.models.steering.incidents import OpenIncident, StandingIncident
    from evictstream.models.steering.policies import ClusterPolicy, Policies
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.held import HeldEvictions

_DONE = EvictionState.DONE  # see `evictstream.models.eviction` for this constant
_NODES_PER_TURN: Final = 2_000
"""Nodes that are counted in one turn, each some 3 µs, beside those of a cluster of which something is due."""

_PODS_LIKE_A_NODE: Final = 8
"""Pods whose owners are counted in the time of a node, where a guard counts owners."""

_MANY_IDLE: Final = 64  # from so many on it is looked which of them are still there


class Guard(NamedTuple):
    """A policy that guards a cluster, and what it counts there."""

    policy: ClusterPolicy
    counted: GuardCount


class Guarding:
    """Counts for guards, and opens and ends incidents.

    Attributes:
        idle: by cluster, by key and the nodes that are counted together, the policies whose guard allows fewer nodes
            than have a taint of this key, while no pod of these nodes has to leave for it: taints of nodes that start.
        counts_pods: whether a guard counts pods, or owners by their pods.
        is_on: whether a policy guards, or did and has left incidents.
        uncounted: clusters that are still to be counted.
    """

    __slots__ = (
        "_changed",
        "_clusters",
        "_forgets_at_us",
        "_guards",
        "_held",
        "_pods_changed",
        "_policies",
        "_repeated",
        "_rules",
        "counts_pods",
        "idle",
        "is_on",
        "uncounted",
    )

    def __init__(self, clusters: Clusters, held: HeldEvictions, rules: ClusterRules) -> None:
        """`held` has the policies of each turn."""
        self._rules = rules
        self.idle: dict[str, dict[tuple[str, GuardedPart], set[str]]] = {}
        self.counts_pods = False
        self.is_on = False
        self.uncounted: dict[str, None] = {}
        self._clusters = clusters
        self._held = held
        self._policies: Policies | None = None
        self._guards: dict[str, tuple[Guard, ...]] = {}
        self._changed: set[str] = set()  # clusters to be looked at
        self._repeated: tuple[str, str] | None = None  # a node, and the key for which a pod of it is to leave now
        self._forgets_at_us: dict[str, int] = {}  # by cluster, when a deleted node counts no longer
        self._pods_changed: dict[str, set[str]] = {}  # by cluster, nodes of which other pods leave than were counted

    @property
    def is_new(self) -> bool:
        """Whether it has had no turn, and so has not looked at incidents that its rows have."""
        return self._policies is None

    @property
    def has_work(self) -> bool:
        """Whether the next turn has something to do."""
        return bool(self._changed or self.uncounted)

    def see(self, aggregate: NodeAggregate) -> None:
        """Take in a node that has changed; only while `is_on`."""
        guards = self._guards.get(aggregate.cluster)
        if guards is None:
            self.uncounted[aggregate.cluster] = None
            return
        if not guards:
            return
        node = guarded_node(
            aggregate,
            counts_pods=any(one.counted.counts_pods for one in guards),
            rules=self._rules.of(aggregate.cluster),
        )
        is_other = False
        for guard in guards:
            is_other |= guard.counted.see(node)
            self._changed.add(aggregate.cluster)
        if is_other and isinstance(aggregate.workloads, LosingOwners):
            aggregate.workloads.look_again(aggregate.name)
        if is_other and aggregate.cluster in self.idle:  # its pods may have to leave among other nodes than before
            self._end_idle(aggregate, [(None, pod.eviction) for pod in aggregate.pods.values()])

    def moved(self, aggregate: NodeAggregate, moves: Sequence[Move]) -> None:
        """Take in what has become of evictions; only while `is_on`."""
        if self.counts_pods and any(
            before is None or after is None or before.due.taint.key != after.due.taint.key for before, after in moves
        ):
            self.look_at_pods(aggregate)
        if aggregate.cluster in self.idle:
            self._end_idle(aggregate, moves)

    def look_at_pods(self, aggregate: NodeAggregate) -> None:
        """Have the pods of a node counted with the next look, as some of them have come or are forgotten."""
        self._pods_changed.setdefault(aggregate.cluster, set()).add(aggregate.name)
        self._changed.add(aggregate.cluster)

    def _end_idle(self, aggregate: NodeAggregate, moves: Iterable[Move]) -> None:
        idle, node = self.idle[aggregate.cluster], aggregate.node
        parts = (ALL_NODES, GuardedPart("" if node is None else node.zone or ""), GuardedPart(node=aggregate.name))
        for key in {after.due.taint.key for _, after in moves if after is not None and after.state is not _DONE}:
            for part in parts:
                if idle.pop((key, part), None) is not None:
                    self._changed.add(aggregate.cluster)
                    for guard in self._guards.get(aggregate.cluster, ()):
                        guard.counted.look_again(key, part)
        if not idle:
            del self.idle[aggregate.cluster]

    def left(self, cluster: str) -> None:
        """Take in that a cluster has no node any more."""
        self.uncounted.pop(cluster, None)
        if self.is_on:
            self._changed.add(cluster)

    def turn(self, now_us: int, outbox: Outbox) -> None:
        """Take in the policies of the turn, and look at what has changed; call it before anything fires."""
        policies = self._held.policies
        if policies is not self._policies:
            self._take(policies)
        if not self.is_on:
            return
        left = _NODES_PER_TURN
        while self.uncounted and left > 0:
            name = next(iter(self.uncounted))
            cluster = self._clusters.named(name)
            if self._has_owners(name) and not self._losing(cluster).count(left * _PODS_LIKE_A_NODE):
                break  # the rest of its pods in later turns
            left -= 1 + len(cluster.nodes)
            self._count(name)
        changed = set(self._changed)
        self._changed.clear()  # and kept: owners are told to it
        changed.update([cluster for cluster, at_us in self._forgets_at_us.items() if at_us <= now_us])
        for name in sorted(changed.difference(self.uncounted)):
            self._look(self._clusters.named(name), now_us, outbox)

    def ensure(self, cluster: str, now_us: int, outbox: Outbox) -> None:
        """Count a cluster now if it is not counted yet: something of it fires."""
        if cluster in self.uncounted:
            self._count(cluster)
            self._changed.discard(cluster)
            self._look(self._clusters.named(cluster), now_us, outbox)

    def ask(self, aggregate: NodeAggregate, uid: str, *, rules: RuleParameters, now_us: int, outbox: Outbox) -> None:
        """Look first if an attempt may be repeated for another taint than it was issued for; only while one is `idle`.

        Its eviction goes on for what it was issued for, so it tells of the other taint only now.
        """
        pod = aggregate.pods.get(uid)
        eviction = None if pod is None else pod.eviction
        if pod is None or eviction is None or eviction.state not in OUTSTANDING:
            return
        due = decide(aggregate.node, pod, rules)
        if not isinstance(due, NothingDue) and due.taint.key != eviction.due.taint.key:
            self._repeated = aggregate.name, due.taint.key
            self._end_idle(aggregate, [(None, msgspec.structs.replace(eviction, due=due))])
            if aggregate.cluster in self._changed:
                self._changed.discard(aggregate.cluster)
                self._look(self._clusters.named(aggregate.cluster), now_us, outbox)
            self._repeated = None

    def of(self, cluster: str) -> Iterator[tuple[StandingIncident, GuardCount]]:
        """Yield the incidents of a cluster that is counted, with what its guard counts."""
        guards = {guard.policy.policy.name: guard for guard in self._guards.get(cluster, ())}
        incidents = self._clusters.named(cluster).state.incidents
        for standing in standing_incidents(incidents, (guard.policy for guard in guards.values())):
            yield standing, guards[standing.incident.policy].counted

    def standing(self) -> Iterator[tuple[str, OpenIncident]]:
        """Yield the incidents of all clusters, with the names of these."""
        for cluster in self._clusters.by_key.values():
            for incident in cluster.state.incidents:
                yield cluster.name, incident

    def waiting(self, cluster: str, now_us: int) -> tuple[str, ...]:
        """Return the ids of the incidents of a cluster that wait for a person, the oldest first."""
        waits = (one.incident for one, _ in self.of(cluster) if one.state(now_us) is IncidentState.WAITING)
        return tuple(incident.id for incident in sorted(waits, key=lambda one: one.opened_us))

    def _take(self, policies: Policies) -> None:
        """Count for other policies than before; what a guard that stays has counted stays."""
        self._policies = policies
        names = [cluster.name for cluster in self._clusters.by_key.values()]
        self.is_on = policies.has_guards or any(self._clusters.named(name).state.incidents for name in names)
        before, self._guards = self._guards, {}
        self.counts_pods = policies.counts_pods
        self.uncounted = dict.fromkeys(names) if self.is_on else {}
        for name in names:
            if self._clusters.named(name).losing is not None and not self._has_owners(name):
                self._clusters.named(name).leave_losing()
        if not self.is_on:  # no turn looks at what has changed
            self._changed.clear()
            self.idle.clear()
            return
        for cluster, guards in before.items():
            known = {guard.policy.policy.name: guard.counted for guard in guards}
            policies_now = [one for one in self._held.policies_of(cluster) if one.guard is not None]
            kept = tuple(
                Guard(one, known[one.policy.name])
                for one in policies_now
                if one.policy.name in known and known[one.policy.name].spec == one.policy.spec
            )
            if len(kept) == len(policies_now):
                self._guards[cluster] = kept
                self._changed.add(cluster)
                self.uncounted.pop(cluster, None)

    def _count(self, name: str) -> None:
        self.uncounted.pop(name, None)
        self.idle.pop(name, None)  # a policy may select other nodes now
        cluster = self._clusters.named(name)
        guards = tuple(
            Guard(one, guard_count(one.policy.spec, name))
            for one in self._held.policies_of(name)
            if one.guard is not None and one.policy.spec is not None
        )
        self._guards[name] = guards
        self._changed.add(name)
        counts_pods = any(one.counted.counts_pods for one in guards)
        for aggregate in cluster.nodes.values() if guards else ():
            node = guarded_node(aggregate, counts_pods=counts_pods, rules=self._rules.of(name))
            for guard in guards:
                guard.counted.see(node)
        if self._has_owners(name):
            losing = self._losing(cluster)
            for node_name in cluster.nodes:
                losing.look_again(node_name)

    def _has_owners(self, name: str) -> bool:
        """Whether a guard counts owners of a cluster."""
        guards = (one.guard for one in self._held.policies_of(name))
        return any(guard is not None and guard.of is GuardMeasure.OWNERS_LOSING_ALL for guard in guards)

    def _losing(self, cluster: Cluster) -> LosingOwners:
        """Return the owners of a cluster; not all of their pods are counted if they were not asked for before."""
        return cluster.count_losing(partial(self._changed.add, cluster.name))

    def _look(self, cluster: Cluster, now_us: int, outbox: Outbox) -> None:
        """Begin and end the incidents of a cluster."""
        self._count_pods(cluster)
        before = cluster.state.incidents
        covered: dict[str, dict[str, list[Covered]]] = {}
        kept: list[OpenIncident] = []
        for standing, count in self.of(cluster.name):
            incident, covers = standing.incident, standing.covered(now_us)
            answered_us = covers.span[1]
            if not count.has_any(incident.taint, covers):
                count.look_again(incident.taint, incident.part)
                continue
            if answered_us is not None and answered_us != incident.answered_us:
                count.look_again(incident.taint, incident.part)  # what came since is of no incident
                incident = msgspec.structs.replace(incident, answered_us=answered_us)
            if standing.answer is not None and not incident.by_person:
                incident = msgspec.structs.replace(incident, by_person=True)
            kept.append(incident)
            covered.setdefault(incident.policy, {}).setdefault(incident.taint, []).append(covers)
        self._begin(cluster, kept, covered, now_us)
        after = tuple(kept[:MOST_INCIDENTS])
        if len(after) < len(before) == MOST_INCIDENTS:  # there is room for what was left out
            for guard in self._guards.get(cluster.name, ()):
                guard.counted.look_at_all()
            self._changed.add(cluster.name)
        if after != before:
            self._clusters.keep_incidents(cluster, after, outbox)
            self._held.look_at_incidents(cluster.name)
        forgets = [guard.counted.forgets_at_us for guard in self._guards.get(cluster.name, ())]
        instants = [at_us for at_us in forgets if at_us is not None]
        self._forgets_at_us.pop(cluster.name, None)
        if instants:
            self._forgets_at_us[cluster.name] = min(instants)
        if not cluster.nodes:
            self._guards.pop(cluster.name, None)
            self.idle.pop(cluster.name, None)

    def _begin(
        self, cluster: Cluster, kept: list[OpenIncident], covered: dict[str, dict[str, list[Covered]]], now_us: int
    ) -> None:
        """Add the incidents that begin now to those that are kept, or let one of these begin earlier."""
        for policy, count in self._guards.get(cluster.name, ()):
            name = policy.policy.name
            found = [
                one
                for one in count.exceeded(now_us, covered.get(name, {}))
                if self._has_to_leave(cluster, name, one, count)
            ]
            found = [one for one in found if not begin_earlier(kept, policy, one)]
            found = found_together(found, MOST_INCIDENTS - len(kept))
            kept += [open_incident(cluster.name, policy, exceeded, now_us) for exceeded in found]

    def _count_pods(self, cluster: Cluster) -> None:
        """Count the pods of the nodes of which others leave than were counted."""
        counted = [guard.counted for guard in self._guards.get(cluster.name, ())]
        names = self._pods_changed.pop(cluster.name, ())
        of_pods = [one for one in counted if one.counts_pods]
        for name in names if of_pods else ():
            aggregate = cluster.nodes.get(name)
            if aggregate is not None:
                node = guarded_node(aggregate, counts_pods=True, rules=self._rules.of(cluster.name))
                for one in of_pods:
                    one.see(node)
        of_owners = [one for one in counted if isinstance(one, OwnerCount)]
        if of_owners:
            self._count_owners(cluster, of_owners, names)

    def _count_owners(self, cluster: Cluster, counted: Iterable[OwnerCount], names: Iterable[str]) -> None:
        losing = self._losing(cluster)
        losing.count(sys.maxsize)
        for name in names:
            losing.look_at_node(name)
        for owner, places in losing.look(cluster.nodes, self._rules.of(cluster.name)):
            for one in counted:
                one.see_owner(owner, places)

    def _has_to_leave(self, cluster: Cluster, policy: str, exceeded: Exceeded, count: GuardCount) -> bool:
        """Whether any pod has to leave for a taint; if not, it is looked for once, and `moved` tells of the first."""
        place = exceeded.taint, exceeded.part
        idle = self.idle.get(cluster.name, {})
        if policy in idle.get(place, ()):
            return False
        for name in count.of_span(exceeded.taint, Covered(exceeded.part, ALWAYS)):
            if (name, exceeded.taint) == self._repeated:
                return True
            for pod in cluster.nodes[name].pods.values() if name in cluster.nodes else ():
                eviction = pod.eviction
                if eviction is not None and eviction.state is not _DONE and eviction.due.taint.key == exceeded.taint:
                    return True
        if len(idle) >= _MANY_IDLE and not len(idle) & (len(idle) - 1):  # as often as their number has doubled
            self._forget_idle(cluster.name, idle)
        self.idle.setdefault(cluster.name, {}).setdefault(place, set()).add(policy)
        return False

    def _forget_idle(self, cluster: str, idle: dict[tuple[str, GuardedPart], set[str]]) -> None:
        """Forget the keys that no node has any more: a cluster's user may have as many as there were taints."""
        guards = self._guards.get(cluster, ())
        for key, part in list(idle):
            if not any(guard.counted.has_any(key, Covered(part, ALWAYS)) for guard in guards):
                del idle[key, part]
