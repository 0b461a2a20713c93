"""The timers of one partition: which are due, which wait for a silent feed or a hold, and what fires.

A timer is only a wake-up: when one comes, the aggregate decides with its newest state whether anything is due.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from evictstream.models.eviction import fire, wakeups, weight_of
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.vocabulary import DecisionKind
from evictstream.models.steering.holds import holder_of, is_of_policy
from evictstream.streams.partition.outage_wakes import OutageWakes
from evictstream.streams.partition.overdue import NONE_WAITING, Waiting, overdue, owed_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evictstream.models.eviction import NodeAggregate
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.engine.core.timers import TimerHeap, Wakeup
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.partition.overdue import Overdue
    from evictstream.streams.partition.step_effects import StepEffects

LOOK_AGAIN_US = 200_000  # longest time until a heartbeat of a silent feed, or another brake or policy, is noticed
FORGOTTEN_PODS_PER_COST = 40  # forgetting this many deleted pods takes as long as evicting one pod, which costs 1
_ISSUED = DecisionKind.ISSUED


class Firing:
    """Fires the due timers of a partition, in deadline order.

    Attributes:
        held: what is due and held by brakes or policies.
        guarding: what guards count.
        waiting_for_feed: due wake-ups of clusters whose feed is silent, by cluster, then by node key and pod UID.
    """

    def __init__(
        self,
        config: PartitionConfig,
        nodes: dict[bytes, NodeAggregate],
        clusters: Clusters,
        *,
        timers: TimerHeap,
        effects: StepEffects,
    ) -> None:
        """`nodes` are all of the partition, by the keys of their timers; an empty one is dropped here."""
        self.waiting_for_feed: dict[str, dict[tuple[bytes, str], Wakeup]] = {}
        self._look_again_at_us = 0
        self._has_to_look = False
        self._config = config
        self._nodes = nodes
        self._clusters = clusters
        self._timers = timers
        self._effects = effects
        self.held = effects.held
        self.guarding = effects.guarding
        self._outages = OutageWakes()

    def next_due_at_us(self) -> int | None:
        """When to fire next: at the earliest timer, and soon while wake-ups wait for a silent feed or a hold.

        At once when a guard has to count, or may be exceeded.
        """
        if self.held.has_changed or self.guarding.has_work or self._has_to_look:
            return 0
        look_again_at_us = self._look_again_at_us if self.waiting_for_feed or self.held.by_cluster else None
        instants = (self._timers.next_at_us(), self.held.limits.next_at_us(), look_again_at_us)
        return min((at_us for at_us in instants if at_us is not None), default=None)

    def fire(self, now_us: int, limit: int, outbox: Outbox) -> int:
        """Handle due wake-ups until their cost reaches `limit`; returns the cost. Most cost 1.

        Wake-ups of pods in a cluster whose feed is silent wait in `waiting_for_feed` until it sends a heartbeat. Brakes
        and policies are those of now for the whole turn.
        """
        self.held.begin_turn(now_us)
        self._has_to_look = False
        self._effects.histories.turn(now_us, outbox)
        self.guarding.turn(now_us, outbox)
        self._wake_recovered(now_us)
        silent = {cluster.name for cluster in self._clusters.silent(now_us - self._config.feed_silence_us)}
        self._wake_heard(silent)
        self._look_again_at_us = now_us + LOOK_AGAIN_US
        cost = 0
        while cost < limit and (wakeup := self._timers.pop_due(now_us)) is not None:
            cost += 1
            _, key, uid = wakeup
            aggregate = self._nodes.get(key)
            if aggregate is None or self._timers.keeps(wakeup):
                continue
            if uid and aggregate.cluster in silent:
                self.waiting_for_feed.setdefault(aggregate.cluster, {})[key, uid] = wakeup
                continue
            cost += self._wake(aggregate, uid, now_us, outbox)
        return cost

    def _wake_recovered(self, now_us: int) -> None:
        """Let what a policy has held in an outage that is over be looked at again, some in each turn."""
        self._outages.forget(set(self.held.by_cluster))
        for cluster, places in self.held.by_cluster.items():
            known = self._clusters.named(cluster).known
            has_ended = self._outages.look(cluster, self.held.holders_of(cluster), known, now_us)
            if has_ended is not None:
                self.held.let_look(
                    place for place, by in places.items() if has_ended(holder_of(by), self._zone_of(place[0]))
                )

    def _zone_of(self, key: bytes) -> str | None:
        node = self._nodes[key].node
        return None if node is None else node.zone

    def _wake(self, aggregate: NodeAggregate, uid: str, now_us: int, outbox: Outbox) -> int:
        """Let an aggregate decide; returns what that cost beyond 1."""
        cluster = self._clusters.named(aggregate.cluster)
        if self.guarding.uncounted:
            self.guarding.ensure(cluster.name, now_us, outbox)
        rules = self._config.rules.of(cluster.name)
        if aggregate.cluster in self.guarding.idle:
            self.guarding.ask(aggregate, uid, rules=rules, now_us=now_us, outbox=outbox)
        state, held, place = cluster.state, self.held, (aggregate.timer_key, uid)
        changes = fire(
            aggregate,
            uid,
            now_us,
            rules,
            heard_us=state.heard_at_us,
            queue=state.queue,
            holders=held.holders_of(cluster.name),
            held_by=held.holds(cluster.name, place),
            limits=held.limits,
        )
        if changes.hold is not None or held.by_cluster:
            held.note(cluster.name, place, None if changes.hold is None else changes.hold.by)
        pod = aggregate.pods.get(uid)
        cost = len(changes.rows) // FORGOTTEN_PODS_PER_COST if pod is None else weight_of(aggregate.node, pod) - 1
        self._effects.put(changes, aggregate, outbox)
        if not uid and self.guarding.counts_pods:  # it may have forgotten pods that have left
            self.guarding.look_at_pods(aggregate)
        if changes.decisions and changes.decisions[-1].decision is _ISSUED:
            late_us = max(0, now_us - owed_us(aggregate, uid, now_us))
            self._config.counters.lateness.observe(late_us / SECOND_US)
        if aggregate.is_empty:
            del self._nodes[aggregate.timer_key], cluster.nodes[aggregate.name]
            if not cluster.nodes:
                del self._effects.pending[cluster.name]
                self._effects.levels.pop(cluster.name, None)
                self.guarding.left(cluster.name)
                self._clusters.drop_empty(cluster, outbox)
        return cost

    def look_at_policies(self) -> None:
        """Have the next turn come at once if there are other policies: an incident is found before it is due."""
        self._has_to_look = self.held.is_behind or self.guarding.is_new

    def overdue(self, now_us: int, limit: int) -> Iterator[Overdue]:
        """Yield evictions that are due, have not fired, and are not held, those that wait for their feed first.

        Reads at most `limit` wake-ups of each silent feed, and `limit` others.
        """
        for kept in self.waiting_for_feed.values():
            some = itertools.islice(kept.values(), limit)
            yield from overdue(self._nodes, some, now_us, waits_for_feed=True)
        yield from overdue(self._nodes, self._timers.due(now_us, limit), now_us, waits_for_feed=False)

    def held_back(self) -> dict[tuple[str, str], Waiting]:
        """Return how many evictions each brake or policy holds, by cluster, and since when the first is due.

        A policy counts as one, whatever its revision and clause.
        """
        return {(by, cluster): waits for cluster in self.held.by_cluster for by, waits in self.held_of(cluster).items()}

    def held_of(self, cluster: str) -> dict[str, Waiting]:
        """Return the same of one cluster, by what holds."""
        return self.held_by_clause(cluster)[0]

    def held_by_clause(self, cluster: str) -> tuple[dict[str, Waiting], dict[str, dict[str, int]]]:
        """Return the same of one cluster, by what holds; and how many each clause of each policy holds."""
        found: dict[str, Waiting] = {}
        clauses: dict[str, dict[str, int]] = {}
        if cluster not in self.held.by_cluster:
            return found, clauses
        for by, (count, (key, uid)) in self.held.counts(cluster).items():
            eviction = self._nodes[key].pods[uid].eviction
            due_us = 0 if eviction is None else eviction.held_since_us
            holder = holder_of(by)
            found[holder] = found.get(holder, NONE_WAITING).joined(Waiting(count, due_us))
            if is_of_policy(by):
                of_policy, clause = clauses.setdefault(holder, {}), by.rpartition("/")[-1]
                of_policy[clause] = of_policy.get(clause, 0) + count
        return found, clauses

    def held_in_zones(self, cluster: str) -> Counter[str]:
        """Count what is held of one cluster, by zone; 2 ms for 45,000."""
        nodes = Counter(key for key, _ in self.held.by_cluster.get(cluster, ()))
        found: Counter[str] = Counter()
        for key, count in nodes.items():
            found[self._nodes[key].counted_in] += count
        return found

    def _wake_heard(self, silent: set[str]) -> None:
        for cluster in [name for name in self.waiting_for_feed if name not in silent]:
            for wakeup in self.waiting_for_feed.pop(cluster).values():
                self._timers.push(wakeup)


def wanted_wakeups(nodes: Mapping[bytes, NodeAggregate]) -> Iterator[list[Wakeup]]:
    """Yield the wake-ups that each of these nodes needs, to make all timers from nothing."""
    for aggregate in list(nodes.values()):
        yield [(at_us, aggregate.timer_key, uid) for at_us, uid in wakeups(aggregate)]
