"""What a guard counts in a view: nodes, pods that leave these, or owners that lose all (docs/policies.md#guard)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from evictstream.kit.oracle.cluster_views import Arrival, ClusterView
from evictstream.kit.oracle.guard_parts import OWNERS, CountedPart, measure_of
from evictstream.kit.oracle.leaving import GuardedPods
from evictstream.kit.oracle.limits import SECOND_US, Stretch
from evictstream.kit.oracle.owner_losses import possible_losses, sure_losses
from evictstream.kit.oracle.reading import Json


class CountedCluster(NamedTuple):
    """A cluster as guards count it.

    Attributes:
        views: of its nodes, in the order of the records.
        pods: that leave these.
    """

    views: Sequence[ClusterView] = ()
    pods: GuardedPods = GuardedPods({})

    def most_since(
        self, view: ClusterView, key: str, part: CountedPart, guard: Json, *, from_us: int, span: Stretch
    ) -> int:
        """Say how much a guard counts at most within its time, of what came since an instant.

        Args:
            view: where.
            key: of the taint.
            part: the nodes that are counted.
            guard: which.
            from_us: since when.
            span: as `GuardedPods.least` has it; of single pods, each state before its end may be known.
        """
        if measure_of(guard) == OWNERS:
            return self._most_owners(view, key, guard, from_us, span)
        found = [(one, view.nodes[one.node]) for one in view.arrivals(key, part)]
        found += [(one, gone.node) for one, gone in view.gone(key, part)]
        there = [one for one, _ in found if one.since_us >= from_us]
        within_us, is_nodes = guard["withinSeconds"] * SECOND_US, measure_of(guard) == "nodes"
        weights = {one.node: 1 if is_nodes else self.pods.most(one.node, node, key, span[1]) for one, node in found}
        return max(
            (
                sum(weights[one.node] for one in there if 0 <= one.since_us - first.since_us <= within_us)
                for first in there
            ),
            default=0,
        )

    def _most_owners(self, view: ClusterView, key: str, guard: Json, from_us: int, span: Stretch) -> int:
        within_us = guard["withinSeconds"] * SECOND_US
        owners = [
            [loss.since_us for loss in losses if loss.taint == key and loss.since_us >= from_us]
            for losses in possible_losses(self.pods, view, guard, span)
        ]
        return max(
            (
                sum(any(0 <= one_us - first_us <= within_us for one_us in instants) for instants in owners)
                for first_us in {one_us for instants in owners for one_us in instants}
            ),
            default=0,
        )

    def may_leave(self, view: ClusterView, key: str, part: CountedPart, by_us: int) -> bool:
        """Tell whether any pod of these nodes may have to leave for a taint."""
        return any(self.pods.most(one.node, view.nodes[one.node], key, by_us) for one in view.arrivals(key, part))

    def has_to_leave(self, view: ClusterView, key: str, part: CountedPart, span: Stretch) -> bool:
        """Tell whether one of them surely has to."""
        there = view.arrivals(key, part)
        return any(self.pods.is_any_due(one.node, view.nodes[one.node], key, span) for one in there)

    def first_excess_us(
        self,
        view: ClusterView,
        key: str,
        part: CountedPart,
        guard: Json,
        *,
        span: Stretch,
        counts: Callable[[Arrival], bool] = lambda _: True,
    ) -> int | None:
        """Say when the first of more than a guard allows got the taint; None if there are surely not more.

        Args:
            view: where.
            key: of the taint.
            part: the nodes that are counted.
            guard: which.
            span: as `GuardedPods.least` has it.
            counts: which taints count.
        """
        allowed, within_us = allowed_by(guard, view, part), guard["withinSeconds"] * SECOND_US
        if measure_of(guard) == OWNERS:
            losses = [loss for loss in sure_losses(self.pods, view, guard, span) if loss.taint == key]
            found = [(Arrival(loss.since_us, loss.node), view.nodes[loss.node], span) for loss in losses]
        else:
            found = [(one, view.nodes[one.node], span) for one in view.arrivals(key, part)]
            for one, gone in view.gone(key, part, span[1]):  # as its pods were at the deletion, whenever that was read
                found.append((one, gone.node, (gone.append_us - (span[1] - span[0]), span[1])))
        found = sorted((one for one in found if counts(one[0])), key=lambda one: one[0])
        is_pods = measure_of(guard) == "pods"
        weights = [self.pods.least(one.node, node, key, known) if is_pods else 1 for one, node, known in found]
        there = [one for one, _, _ in found]
        begin = counted = 0
        for end, last in enumerate(there):
            counted += weights[end]
            while last.since_us - there[begin].since_us > within_us:
                counted -= weights[begin]
                begin += 1
            # Deleted nodes alone begin no incident.
            if counted > allowed and any(one.node in view.nodes for one in there[begin : end + 1]):
                return there[begin].since_us
        return None


def allowed_by(guard: Json, view: ClusterView, part: CountedPart) -> int:
    """Say how much a guard allows: a share is rounded down, the lower of count and share counts."""
    limits = [guard["count"]] if "count" in guard else []
    if "sharePercent" in guard:
        limits.append(view.known(part) * guard["sharePercent"] // 100)
    return int(min(limits))


NO_CLUSTER: Final = CountedCluster()
