"""Whose hold has ended because an outage of a zone is over: that alone has no wake-up of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evictstream.models.steering.policies import ClusterPolicy
from evictstream.models.steering.zone_holds import ANY_ZONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evictstream.models.steering.holds import Holder
    from evictstream.models.steering.node_counts import KnownNodes

_Held = frozenset[tuple[str, str | None]]


class _Seen(NamedTuple):
    """What was so at the last look: counts of nodes, policies, and the zones in which each policy holds."""

    changes: int
    holders: Sequence[Holder]
    held: _Held


class OutageWakes:
    """Looks at the clusters of which something is held, once a turn; without such a policy that costs next to nothing.

    What a turn decides, it decides by the counts of its beginning. So whatever is held by an outage was held when this
    has looked, or is looked at in the next turn for the first time.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def forget(self, clusters: set[str]) -> None:
        """Forget all clusters but these."""
        for cluster in [one for one in self._seen if one not in clusters]:
            del self._seen[cluster]

    def look(
        self, cluster: str, holders: Sequence[Holder], known: KnownNodes, now_us: int
    ) -> Callable[[str, str | None], bool] | None:
        """Return which holds may have ended since the last look, by holder and zone; None if none has.

        Where a node's zone is not known (None), each zone counts.
        """
        policies = [one for one in holders if isinstance(one, ClusterPolicy) and any(one.outages())]
        if not policies:
            self._seen.pop(cluster, None)
            return None
        known.advance(now_us)
        before = self._seen.get(cluster)
        if before is not None and before.changes == known.changes and before.holders == policies:
            return None
        held: _Held = frozenset(
            (policy.holder, zone)
            for policy in policies
            for outage in policy.outages()
            for zone in outage.zones_held(known, now_us)
        )
        self._seen[cluster] = _Seen(known.changes, policies, held)
        if before is not None and before.holders == policies:
            ended = before.held - held
            return (lambda holder, zone: _is_among(ended, holder, zone)) if ended else None
        names = {policy.holder for policy in policies}
        return lambda holder, zone: holder in names and not _is_among(held, holder, zone)


def _is_among(held: _Held, holder: str, zone: str | None) -> bool:
    if zone is None:
        return any(one == holder for one, _ in held)
    return (holder, zone) in held or (holder, ANY_ZONE) in held
