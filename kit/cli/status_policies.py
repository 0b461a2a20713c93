"""The table of `evictstream status --policies`."""

from __future__ import annotations

from collections.abc import Callable

from evictstream.kit.cli.see_tables import NOTHING, since_words
from evictstream.kit.see.fleet_policies import PolicyStanding
from evictstream.streams.cli.fitting import cut_end
from evictstream.streams.cli.lists import ListColumn, ListKind


def policy_standings_kind(present_us: Callable[[], int]) -> ListKind[PolicyStanding]:
    """Describe the table of policies with what they hold."""
    return ListKind(
        name="PolicyStanding",
        columns=(
            ListColumn("POLICY", lambda one: one.name, usual=16),
            ListColumn("HELD", lambda one: str(one.held), usual=5),
            ListColumn("OLDEST", lambda one: since_words(one.oldest_due_at, present_us()), usual=7),
            ListColumn("CLUSTERS", lambda one: str(one.clusters), rank=3),
            ListColumn("WAITS FOR", _waits, usual=14, least=8, cut=cut_end),
            ListColumn("DOES", _does, usual=30, least=12, rank=1, cut=cut_end),
            ListColumn("FOR", lambda one: one.selected or NOTHING, is_wide=True, cut=cut_end),
            ListColumn("REVISION", lambda one: NOTHING if one.revision is None else str(one.revision), is_wide=True),
            ListColumn("SINCE", lambda one: since_words(one.since, present_us()), is_wide=True),
            ListColumn("BY", lambda one: one.by or NOTHING, is_wide=True),
            ListColumn("WHY", lambda one: one.why or NOTHING, is_wide=True, cut=cut_end),
        ),
        name_of=lambda one: one.name,
        is_alarming=lambda one: bool(one.problem),
    )


def _waits(one: PolicyStanding) -> str:
    """Say which clauses let evictions wait, with how many where there are several."""
    if one.problem:
        return "it cannot be read"
    if len(one.waits_for) == 1:
        return next(iter(one.waits_for))
    return ",".join(f"{clause} {count}" for clause, count in one.waits_for.items()) or NOTHING


def _does(one: PolicyStanding) -> str:
    return one.problem or one.does or "deleted"
