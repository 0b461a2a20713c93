"""`evictstream holds`: the brakes that there are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.get import WatchOption
from evictstream.kit.cli.seeing import COMPARE_SECONDS, present_us, read_known_cluster
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter, changes
from evictstream.streams.cli.output import warn
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, WrongUseError

if TYPE_CHECKING:
    from collections import Counter

    from evictstream.streams.broker.steering_readers import BrakesReader
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def holds(
    context: typer.Context,
    count: Annotated[
        bool, typer.Option("--count", help="Also how many evictions each holds; this reads the state.")
    ] = False,
    watch: WatchOption = False,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show the brakes: what is held, by whom, why, and until when.

    `Spreads`: the brake has ended, and what was due before goes little by little. `Unreadable`: nobody knows what that
    record holds, so nothing is evicted at all until it is removed by `evictstream release`.

    `--count` reads the rows as `evictstream get` does, half a second for 100,000 pods.

    Examples:

    * `evictstream holds`
    * `evictstream holds --count -o wide`
    * `evictstream holds --watch`
    """
    from evictstream.kit.cli.brake_table import brakes_kind
    from evictstream.kit.see.brakes import listed_brakes
    from evictstream.streams.cli.brakes import open_brakes

    if count and watch:
        raise WrongUseError("--count and --watch exclude one another", next_step="give one of them")
    settings = global_options(context).settings
    with StopSignals() as stop_signals, open_brakes(settings) as reader:
        counted = _counted(settings, reader) if count else None
        printer = ListPrinter(brakes_kind(present_us, is_counted=count), output)
        known = {one.id: one for one in listed_brakes(reader.brakes, present_us(), counted)}
        if watch:
            printer.begin_watch(known.values())
        elif known or output not in (ListFormat.TABLE, ListFormat.WIDE):
            printer.whole(known.values())
        else:
            warn("no brakes")
        while watch and not stop_signals.is_stopped():
            time.sleep(COMPARE_SECONDS)
            seen = {one.id: one for one in listed_brakes(reader.brakes, present_us())}
            for what, item in changes(known, seen, lambda one: one):
                printer.change(what, item)
            known = seen
    return ExitCode.DONE


def _counted(settings: Settings, reader: BrakesReader) -> Counter[str]:
    from evictstream.kit.see.brakes import count_held

    read = read_known_cluster(settings, None)
    return count_held(reader.brakes, read.state, present_us())
