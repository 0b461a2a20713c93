"""The table of `evictstream incidents list`, and what `show` says of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from evictstream.kit.cli.see_tables import NOTHING, since_words
from evictstream.models.messages.incident import Incident, IncidentState
from evictstream.streams.cli.fitting import cut_end
from evictstream.streams.cli.lists import ListColumn, ListKind

NO_ZONE: Final = "<none>"
"""How kubectl shows a label that an object lacks."""


def incidents_kind(present_us: Callable[[], int]) -> ListKind[Incident]:
    """Describe the table of incidents."""
    return ListKind(
        name="Incident",
        columns=(
            ListColumn("ID", lambda one: one.id),
            ListColumn("CLUSTER", lambda one: one.cluster, usual=12, least=8),
            ListColumn("TAINT", lambda one: one.taint, usual=24, least=10, cut=cut_end),
            ListColumn("ZONE", lambda one: NO_ZONE if one.zone == "" else one.zone or NOTHING, usual=6, rank=7),
            ListColumn("STATE", lambda one: str(one.state)),
            ListColumn("NODES", lambda one: str(one.nodes), rank=1),
            ListColumn("EVICTIONS", lambda one: str(one.evictions), rank=2),
            ListColumn("DUE", lambda one: str(one.due), rank=3),
            ListColumn("LOSING ALL", lambda one: str(one.losing_all), rank=4),
            ListColumn("SINCE", lambda one: since_words(one.since, present_us()), usual=7, rank=5),
            ListColumn("POLICY", lambda one: one.policy, usual=10, least=6, rank=6),
            ListColumn("NODE", lambda one: one.node or NOTHING, is_wide=True),
            ListColumn("ALLOWED", _allowed, is_wide=True),
            ListColumn("BY", lambda one: one.answered_by or NOTHING, is_wide=True),
            ListColumn("EXPIRES", lambda one: one.expires_at or NOTHING, is_wide=True),
            ListColumn("WHY", lambda one: one.answered_why or NOTHING, is_wide=True, cut=cut_end),
        ),
        name_of=lambda one: one.id,
        is_alarming=_waits,
    )


def nodes_words(nodes: int, zone: str | None, node: str | None) -> str:
    """Say on which nodes the taint of an incident is."""
    if node is not None:
        return f"node {node}"
    if zone is None:
        return f"{nodes} nodes"
    return f"{nodes} nodes of zone {zone}" if zone else f"{nodes} nodes without a zone"


def _waits(one: Incident) -> bool:
    """Whether evictions of it wait: what is over may have left the taint."""
    return one.state is IncidentState.WAITING and one.held > 0


def _allowed(one: Incident) -> str:
    if one.of == "nodes":
        return f"{one.allowed} of {one.known}"
    return f"{one.allowed} pods" if one.of == "pods" else f"{one.allowed} owners that lose all"


def incident_lines(one: Incident) -> Iterator[str]:
    """Yield what is known of an incident, for people."""
    yield f"incident {one.id} in {one.cluster}: {_STATES[one.state]}"
    yield (
        f"taint {one.taint} is on {nodes_words(one.nodes, one.zone, one.node)} since {one.since};"
        f" policy {one.policy} allows {_allowed(one)}"
    )
    yield f"{one.evictions} evictions, {one.due} of them due; {one.losing_all} owners lose all of their pods"
    if one.selected is not None:
        yield f"policy {one.policy} selects {one.selected} of these evictions; no others wait"
    for owner in one.owners:
        yield f"  {owner.namespace}/{owner.owner} loses all {owner.pods}"
    if one.losing_all > len(one.owners):
        yield f"  and {one.losing_all - len(one.owners)} more"
    more = f" and {one.nodes - len(one.first_nodes)} more" if one.nodes > len(one.first_nodes) else ""
    if one.first_nodes:
        yield f"nodes: {', '.join(one.first_nodes)}{more}"
    if one.answered_by is not None:
        until = "" if one.expires_at is None else f", until {one.expires_at}"
        yield f"answered by {one.answered_by} at {one.answered_at}{until}: {one.answered_why}"
    if one.releases_at is not None:
        yield f"lets evictions go by itself at {one.releases_at}"
    if one.state is IncidentState.WAITING and not one.held:
        yield "nothing waits now; it ends when the taints are gone"
    elif _waits(one) and one.releases_at is None:
        yield f"waits for a person: evictstream incidents approve {one.id} --why TEXT, or reject"


_STATES = {
    IncidentState.WAITING: "its evictions wait",
    IncidentState.APPROVED: "approved, its evictions go",
    IncidentState.REJECTED: "rejected, its evictions wait until the taints are gone",
    IncidentState.RELEASED: "its time is over, its evictions go",
}
