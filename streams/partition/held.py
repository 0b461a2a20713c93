"""Evictions of one partition that are due and that brakes or policies hold (docs/messages.md#brakes).

In memory only: a new owner of the partition looks at everything that is due, and finds the same. What is held has a
wake-up where its hold has an end, and gets one when what holds it changes. A step of a pod decides what that means.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Final

from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.models.steering.holds import holder_of, policy_holder
from evictstream.models.steering.incidents import standing_incidents
from evictstream.models.steering.limits import Limits
from evictstream.models.steering.policies import NO_POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evictstream.models.steering.brakes import Brakes
    from evictstream.models.steering.holds import Holder, Subject
    from evictstream.models.steering.in_flight import PodPlace
    from evictstream.models.steering.policies import ClusterPolicy, Policies
    from evictstream.streams.engine.core.timers import TimerHeap
    from evictstream.streams.partition.clusters import Clusters

WOKEN_PER_TURN: Final = 1_000
"""Wake-ups for evictions whose hold has changed, about 2 ms; all at once would delay other clusters."""


class HeldEvictions:
    """Keeps what is held by what, and the view of brakes and policies that a turn uses.

    Attributes:
        by_cluster: what holds, by node and pod, by cluster, in the order in which they were first held.
        limits: the buckets of the policies that limit.
    """

    __slots__ = (
        "_brakes",
        "_changed",
        "_clusters",
        "_now_us",
        "_policies",
        "_policies_of",
        "_read_brakes",
        "_read_policies",
        "_standing",
        "_timers",
        "_touched",
        "by_cluster",
        "limits",
    )

    def __init__(
        self,
        read_brakes: Callable[[], Brakes],
        read_policies: Callable[[], Policies],
        timers: TimerHeap,
        clusters: Clusters,
        flying_in: Callable[[str], Iterable[tuple[PodPlace, Subject]]] = lambda _: (),
        *,
        is_followed: bool = False,
    ) -> None:
        """`read_brakes` and `read_policies` give the newest ones: the same object until they change.

        `flying_in` gives what is in flight in a cluster. `is_followed` keeps what begins or ends to be held, for
        `take_touched`.
        """
        self._touched: dict[str, set[PodPlace]] | None = {} if is_followed else None
        self.by_cluster: dict[str, dict[PodPlace, str]] = {}
        self.limits = Limits(flying_in)
        self._read_brakes = read_brakes
        self._read_policies = read_policies
        self._timers = timers
        self._clusters = clusters
        self._brakes = NO_BRAKES
        self._policies = NO_POLICIES
        self._policies_of: dict[str, tuple[ClusterPolicy, ...]] = {}  # until they change
        self._changed: dict[PodPlace, str] = {}  # each once, however often what holds it changes
        self._standing: dict[str, Sequence[Holder]] = {}  # of this turn
        self._now_us = 0

    @property
    def policies(self) -> Policies:
        """Those of this turn."""
        return self._policies

    @property
    def is_behind(self) -> bool:
        """Whether other policies can be read than those of the last turn."""
        policies = self._read_policies()
        return policies is not self._policies and not policies.unreadable

    @property
    def is_current(self) -> bool:
        """Whether the policies of the last turn are the newest: all that can be read, and no other that cannot."""
        return self._read_policies() is self._policies

    @property
    def has_changed(self) -> bool:
        """Whether evictions are left whose hold has changed and that have no wake-up yet."""
        return bool(self._changed)

    def begin_turn(self, now_us: int) -> None:
        """Take the newest brakes and policies for one turn, and let what they no longer hold be looked at again.

        While a record cannot be read, those of before hold on. The gate is closed then, unless it was read just now.
        """
        self._now_us = now_us
        brakes, policies = self._read_brakes(), self._read_policies()
        is_known = not (brakes.unreadable or policies.unreadable)
        if is_known and (brakes is not self._brakes or policies is not self._policies):
            changed = _changed(self._brakes.standing, brakes.standing)
            changed |= {policy_holder(name) for name in _changed(self._policies.standing, policies.standing)}
            self._brakes, self._policies = brakes, policies
            self._policies_of.clear()
            for places in self.by_cluster.values():
                self._changed.update(held for held in places.items() if holder_of(held[1]) in changed)
            self.let_look(self.limits.count_anew())
        self._standing.clear()
        for _ in range(min(len(self._changed), WOKEN_PER_TURN)):
            (key, uid), by = self._changed.popitem()
            self._timers.push((self._wake_us(by, uid), key, uid))
        self.limits.begin(now_us)
        for key, uid in self.limits.call(now_us, WOKEN_PER_TURN):
            self._timers.push((now_us, key, uid))

    def _wake_us(self, by: str, uid: str) -> int:
        standing = self._brakes.standing.get(by)
        until_us = None if standing is None or not standing.brake.is_released else standing.until_us(uid)
        return self._now_us if until_us is None else max(self._now_us, until_us)

    def holders_of(self, cluster: str) -> Sequence[Holder]:
        """Return the brakes and policies that may hold evictions of a cluster in this turn."""
        if not (self._brakes.standing or self._policies.standing):
            return ()
        standing = self._standing.get(cluster)
        if standing is None:
            policies, incidents = self.policies_of(cluster), self._clusters.named(cluster).state.incidents
            guarded = standing_incidents(incidents, policies) if incidents else ()
            standing = (*self._brakes.of_cluster(cluster, self._now_us), *policies, *guarded)
            self._standing[cluster] = standing
        return standing

    def policies_of(self, cluster: str) -> tuple[ClusterPolicy, ...]:
        """Return the policies that may hold evictions of a cluster in this turn."""
        policies = self._policies_of.get(cluster)
        if policies is None:
            policies = self._policies_of[cluster] = self._policies.of_cluster(cluster)
        return policies

    def look_at_incidents(self, cluster: str) -> None:
        """Take in that the incidents of a cluster are others than before."""
        self._standing.pop(cluster, None)

    def holds(self, cluster: str, place: PodPlace) -> str | None:
        """Return what has held an eviction until now."""
        places = self.by_cluster.get(cluster)
        return None if places is None else places.get(place)

    def note(self, cluster: str, place: PodPlace, by: str | None) -> None:
        """Take in what holds an eviction now; None if nothing does, or if the eviction has ended."""
        if by is None or not by.endswith("/limit"):
            self.limits.leave(place)
        places = self.by_cluster.get(cluster)
        if self._touched is not None and (by is None) == (places is not None and place in places):
            self._touched.setdefault(cluster, set()).add(place)
        if by is not None:
            self.by_cluster.setdefault(cluster, {})[place] = by
        elif places is not None and places.pop(place, None) is not None and not places:
            del self.by_cluster[cluster]

    def take_touched(self, cluster: str) -> Iterable[PodPlace]:
        """Return what has begun or ended to be held in a cluster since the last call."""
        return () if self._touched is None else self._touched.pop(cluster, ())

    def look_again(self, cluster: str, key: bytes, uids: Iterable[str]) -> None:
        """Let what is held on a node be decided again: its reason may be another now, which nothing holds."""
        places = self.by_cluster.get(cluster, {})
        for uid in uids if places else ():
            if (key, uid) in places:
                self._timers.push((self._now_us, key, uid))

    def let_look(self, places: Iterable[PodPlace]) -> None:
        """Let these be looked at again, some in each turn: what has held them does not any more."""
        self._changed.update((place, "") for place in places)

    def counts(self, cluster: str) -> dict[str, tuple[int, PodPlace]]:
        """Count what is held of a cluster, by what, with the one that was held first; 2 ms for 45,000."""
        found: dict[str, tuple[int, PodPlace]] = {}
        places = self.by_cluster.get(cluster, {})
        counts = collections.Counter(places.values())
        for place, by in places.items():
            if by not in found:
                found[by] = counts.pop(by), place
                if not counts:
                    break
        return found


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Return the names whose records differ."""
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}
