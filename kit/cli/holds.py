"""`evictstream holds`: the brakes that there are."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.get import WatchOption
from evictstream.kit.cli.seeing import COMPARE_SECONDS, present_us, read_known_cluster
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter, changes
from evictstream.streams.cli.output import warn
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, WrongUseError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from evictstream.kit.see.brakes import ListedBrake
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

    With `regions` set and without `-b` the brakes of each region are shown; exit code 1 says that one was not reached.

    `--count` reads the rows as `evictstream get` does, half a second for 100,000 pods.

    Examples:

    * `evictstream holds`
    * `evictstream holds --count -o wide`
    * `evictstream holds --watch`
    """
    from evictstream.kit.cli.brake_table import brakes_kind
    from evictstream.streams.cli.brakes import open_brakes
    from evictstream.streams.cli.regions import HERE, ask_regions, settings_of_regions

    if count and watch:
        raise WrongUseError("--count and --watch exclude one another", next_step="give one of them")
    regions = settings_of_regions(context)
    with StopSignals() as stop_signals, contextlib.ExitStack() as stack:
        opened = ask_regions(regions, lambda settings: stack.enter_context(open_brakes(settings)))
        opened.warn_of_problems()
        counted, is_whole = _counted(regions, opened.found) if count and opened.found else ({}, True)
        kind = brakes_kind(present_us, is_counted=count, has_regions=HERE not in regions)
        printer = ListPrinter(kind, output)
        known = _listed(opened.found, counted)
        if watch:
            printer.begin_watch(known.values())
        elif known or output not in (ListFormat.TABLE, ListFormat.WIDE):
            printer.whole(known.values())
        else:
            warn("no brakes")
        while watch and not stop_signals.is_stopped():
            time.sleep(COMPARE_SECONDS)
            seen = _listed(opened.found, {})
            for what, item in changes(known, seen, lambda one: one):
                printer.change(what, item)
            known = seen
    return ExitCode.DONE if opened.is_whole and is_whole else ExitCode.FOUND_PROBLEM


def _listed(
    readers: Mapping[str, BrakesReader], counted: Mapping[str, Counter[str]]
) -> dict[tuple[str, str], ListedBrake]:
    """List the brakes by region and id."""
    import msgspec

    from evictstream.kit.see.brakes import listed_brakes

    now_us = present_us()
    return {
        (region, one.id): msgspec.structs.replace(one, region=region)
        for region, reader in readers.items()
        for one in listed_brakes(reader.brakes, now_us, counted.get(region))
    }


def _counted(
    regions: Mapping[str, Settings], readers: Mapping[str, BrakesReader]
) -> tuple[dict[str, Counter[str]], bool]:
    """Count what brakes hold, by region; whether the state of each region could be read. Warns of the others."""
    from evictstream.kit.see.brakes import count_held
    from evictstream.streams.cli.regions import ask_regions

    read = ask_regions({name: regions[name] for name in readers}, lambda settings: read_known_cluster(settings, None))
    read.warn_of_problems()
    now_us = present_us()
    counted = {name: count_held(readers[name].brakes, one.state, now_us) for name, one in read.found.items()}
    return counted, read.is_whole
