"""The table of `evictstream holds`."""

from __future__ import annotations

from collections.abc import Callable

from evictstream.kit.cli.see_tables import NOTHING, since_words, until_words
from evictstream.kit.see.brakes import ListedBrake, SeenBrakeState
from evictstream.models.steering.selection import selection_text
from evictstream.streams.cli.fitting import cut_end
from evictstream.streams.cli.lists import ListColumn, ListKind


def brakes_kind(present_us: Callable[[], int], *, is_counted: bool, has_regions: bool = False) -> ListKind[ListedBrake]:
    """Describe the table of brakes; `is_counted` adds how many evictions each holds, `has_regions` the region."""
    regions: tuple[ListColumn[ListedBrake], ...] = ()
    if has_regions:
        regions = (ListColumn("REGION", lambda one: one.region, usual=6),)
    counted = (ListColumn("EVICTIONS", _evictions),) if is_counted else ()
    return ListKind(
        name="Brake",
        columns=(
            *regions,
            ListColumn("ID", lambda one: one.id, usual=12),
            ListColumn("STATE", lambda one: one.state, usual=7),
            *counted,
            ListColumn("WHAT", _what, usual=30, least=12, cut=cut_end),
            ListColumn("SINCE", lambda one: since_words(one.since, present_us()), usual=9, rank=3),
            ListColumn("ENDS IN", lambda one: _ends_in(one, present_us()), usual=10),
            ListColumn("BY", _by, usual=12, least=6, rank=2),
            ListColumn("WHY", _why, usual=20, least=10, rank=1, cut=cut_end),
            ListColumn("ENDS", lambda one: one.ends_at or NOTHING, is_wide=True),
            ListColumn("SPREAD ENDS", lambda one: one.spread_ends_at or NOTHING, is_wide=True),
        ),
        name_of=lambda one: one.id,
        is_alarming=lambda one: one.state is SeenBrakeState.UNREADABLE,
    )


def _evictions(one: ListedBrake) -> str:
    return NOTHING if one.evictions is None else str(one.evictions)


def _what(one: ListedBrake) -> str:
    return "all evictions" if one.brake is None else selection_text(one.brake)


def _ends_in(one: ListedBrake, now_us: int) -> str:
    if one.state is SeenBrakeState.SPREADS and one.spread_ends_at is not None:
        return f"spread {until_words(one.spread_ends_at, now_us)}"
    if one.state is not SeenBrakeState.HOLDS:
        return NOTHING
    return "when released" if one.ends_at is None else until_words(one.ends_at, now_us)


def _by(one: ListedBrake) -> str:
    return NOTHING if one.brake is None else one.brake.released_by or one.brake.by


def _why(one: ListedBrake) -> str:
    return one.problem if one.brake is None else one.brake.released_why or one.brake.why
