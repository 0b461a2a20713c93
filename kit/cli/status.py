"""`evictstream status`: the fleet from above."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from evictstream.kit.cli.get import WatchOption
from evictstream.kit.cli.seeing import COMPARE_SECONDS, present_us
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.lists import ListFormat, ListKind, ListOption, ListPrinter, changes
from evictstream.streams.cli.output import warn
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from evictstream.kit.see.fleet import FleetView, ListedStanding
    from evictstream.kit.see.steering import Steering

_MOST_NAMED = 5
"""Clusters that a warning names; the others are counted."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def status(
    context: typer.Context,
    cluster: Annotated[
        str | None,
        typer.Argument(help="Only this cluster. Default: all.", metavar="CLUSTER", parser=check_cluster_name),
    ] = None,
    *,
    policies: Annotated[bool, typer.Option("--policies", help="Show policies, with what each of them holds.")] = False,
    watch: WatchOption = False,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show how the fleet stands: its clusters, their nodes, what is about to be evicted, and what waits.

    `*` is all clusters together. `SICK` are nodes with a `NoExecute` taint of node health. `OPEN` are all evictions
    that have not ended, `DUE` those whose deadline has come and that were not issued, `ISSUED` those that were, `HELD`
    those that a brake or policy holds. `WAITS` names what nobody wished: `feed`, the feed is silent; `gap`, input
    expired unread; `incident`, a guard waits for a person; `brakes` or `policies`, a record of them cannot be read,
    and nothing is evicted in any cluster. `SAID` is when a worker said it last, which it does each minute though
    nothing changes. The counts are of that moment: `HELD` follows a brake or a policy with the worker's next line.

    With `--policies` it shows policies instead: how many evictions each holds, since when the oldest is due, and which
    of its clauses they wait for; `spread` is what an earlier revision has held.

    It reads the topics that evictstream publishes for everyone, brakes and policies: what it costs grows with the
    number of clusters, not of pods. Without the right to read brakes or policies it says so, and shows the rest.

    Examples:

    * `evictstream status`
    * `evictstream status prod-eu-1 -o wide`, with its zones
    * `evictstream status --watch`
    * `evictstream status --policies`
    * `evictstream status -o json | jq '.items[] | select(.scope == "cluster") | .evictions.open'`
    """
    from evictstream.kit.cli.known_steering import known_steering, tell_unreadable
    from evictstream.kit.see.fleet import OLDEST_LEVEL_SECONDS
    from evictstream.kit.see.fleet_topics import FleetReader
    from evictstream.kit.see.names import check_known

    settings = global_options(context).settings
    reader = FleetReader(settings, warn)
    with contextlib.ExitStack() as stack, StopSignals() as stop_signals:
        reader.read()
        check_known("cluster", cluster, reader.view.names())
        steering = stack.enter_context(known_steering(settings, is_timed=False))
        steered = steering()
        view = (_policies_view if policies else _fleet_view)(steering, reader.view, cluster)
        printer = ListPrinter(view.kind, output)
        standings = reader.view.standings(cluster)
        if old := [one.name for one in standings if one.cluster is not None and one.is_old(present_us())]:
            for_long = f"for {OLDEST_LEVEL_SECONDS:g} s by this machine's clock"
            warn(f"no worker has said {for_long} how {_listed(old)} stands: it is shown as it was")
        known = view.look()
        if watch:
            printer.begin_watch(known.values())
        elif known or output not in (ListFormat.TABLE, ListFormat.WIDE):
            printer.whole(known.values())
        else:
            warn("no policies" if policies else "no clusters are published")
        if not watch:
            return ExitCode.DONE
        next_look_at = time.monotonic()
        for _ in reader.follow(stop_signals.is_stopped):
            if time.monotonic() < next_look_at:
                continue
            seen = view.look()
            for what, one in changes(known, seen, view.same):
                printer.change(what, one)
            known, next_look_at = seen, time.monotonic() + COMPARE_SECONDS
            now_steered = steering()
            tell_unreadable(now_steered, steered)
            steered = now_steered
    return ExitCode.DONE


class _View(NamedTuple):
    """What is listed: the kind of its items, a look at all of them by name, and what of an item counts."""

    kind: ListKind[Any]
    look: Callable[[], dict[str, Any]]
    same: Callable[[Any], object]


def _fleet_view(steering: Callable[[], Steering], view: FleetView, cluster: str | None) -> _View:
    from evictstream.kit.cli.status_table import standings_kind

    def look() -> dict[str, Any]:
        return {f"{one.scope} {one.name}": one for one in view.standings(cluster, steering().unreadable)}

    return _View(standings_kind(present_us), look, _same)


def _policies_view(steering: Callable[[], Steering], view: FleetView, cluster: str | None) -> _View:
    from evictstream.kit.cli.status_policies import policy_standings_kind
    from evictstream.kit.see.fleet_policies import policy_standings

    def look() -> dict[str, Any]:
        return {one.name: one for one in policy_standings(view, steering().policies, cluster)}

    return _View(policy_standings_kind(present_us), look, lambda one: one)


def _same(one: ListedStanding) -> object:
    """Leave out what each new record changes, whatever it says."""
    return msgspec.structs.replace(one, at="", sequence=None, heard_at=None)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
