"""The table of `evictstream status`."""

from __future__ import annotations

from collections.abc import Callable

from evictstream.kit.cli.see_tables import NOTHING, since_words
from evictstream.kit.see.fleet import ListedStanding, SeenScope
from evictstream.streams.cli.fitting import cut_end
from evictstream.streams.cli.lists import ListColumn, ListKind


def standings_kind(present_us: Callable[[], int]) -> ListKind[ListedStanding]:
    """Describe the table of the fleet."""
    return ListKind(
        name="FleetStanding",
        columns=(
            ListColumn("CLUSTER", lambda one: one.name, usual=16, least=10),
            ListColumn("NODES", lambda one: str(_nodes(one)), rank=6),
            ListColumn("SICK", lambda one: str(one.nodes.unhealthy), rank=2),
            ListColumn("PODS", lambda one: str(one.pods), usual=6, rank=7),
            ListColumn("OPEN", lambda one: str(one.evictions.open), usual=5),
            ListColumn("DUE", lambda one: str(one.evictions.due), usual=5),
            ListColumn("ISSUED", lambda one: str(one.evictions.issued + one.evictions.retrying), rank=3),
            ListColumn("FAILING", lambda one: str(one.evictions.failing), rank=1),
            ListColumn("HELD", lambda one: str(one.evictions.held), rank=1),
            ListColumn("WAITS", _waits, usual=4, least=4, cut=cut_end),
            ListColumn("SAID", lambda one: since_words(one.at, present_us()), usual=7, rank=4),
            ListColumn("UNKNOWN", lambda one: str(one.nodes.unknown), is_wide=True),
            ListColumn("TAINTED", lambda one: str(one.nodes.tainted), is_wide=True),
            ListColumn("SCHEDULED", lambda one: str(one.evictions.scheduled), is_wide=True),
            ListColumn("RETRYING", lambda one: str(one.evictions.retrying), is_wide=True),
            ListColumn("OBSERVED", lambda one: str(one.evictions.observed), is_wide=True),
            ListColumn("OLDEST DUE", lambda one: since_words(one.evictions.oldest_due_at, present_us()), is_wide=True),
            ListColumn("BUILT-IN AT", lambda one: one.evictions.built_in_at or NOTHING, is_wide=True),
            ListColumn("HELD BY", _holders, is_wide=True, cut=cut_end),
            ListColumn("BRAKES", lambda one: ",".join(one.brakes) or NOTHING, is_wide=True),
            ListColumn("INCIDENTS", lambda one: ",".join(one.incidents) or NOTHING, is_wide=True),
            ListColumn("LABELS", _labels, is_wide=True),
            ListColumn("UID", lambda one: one.cluster_uid or NOTHING, is_wide=True),
        ),
        name_of=lambda one: one.name,
        is_alarming=lambda one: one.scope is not SeenScope.FLEET and _is_alarming(one, present_us()),
    )


def _nodes(one: ListedStanding) -> int:
    """Count the nodes, whatever is known of them."""
    return one.nodes.healthy + one.nodes.unhealthy + one.nodes.unknown


def _waits(one: ListedStanding) -> str:
    """Say which gates of a cluster are closed, and whether an incident waits; of the fleet, how many."""
    gates = (
        *((gate, one.clusters) for gate in one.unreadable),
        ("feed", one.silent_feeds),
        ("gap", one.gaps),
        ("incident", len(one.incidents)),
    )
    if one.scope is SeenScope.FLEET:
        return " ".join(f"{name} {count}" for name, count in gates if count) or NOTHING
    return ",".join(name for name, count in gates if count) or NOTHING


def _is_alarming(one: ListedStanding, now_us: int) -> bool:
    """Whether somebody should look: evictions fail or wait for a feed, input or a person, or no worker reports."""
    waits = one.unreadable or one.silent_feeds or one.gaps or one.incidents
    return bool(waits or one.evictions.failing) or one.is_old(now_us)


def _holders(one: ListedStanding) -> str:
    return ",".join(f"{holder.by}: {holder.evictions}" for holder in one.evictions.held_by) or NOTHING


def _labels(one: ListedStanding) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(one.labels.items())) or NOTHING
