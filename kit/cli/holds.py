"""`evictstream holds`: the brakes that there are."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evictstream.kit.cli.get import WatchOption
from evictstream.kit.cli.seeing import COMPARE_SECONDS, present_us, read_known_cluster
from evictstream.streams.cli.backstop import outlasted_text, warn_not_known
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter, changes
from evictstream.streams.cli.output import warn
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import EvictstreamError, ExitCode, WrongUseError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from evictstream.kit.cli.kafka_clock import KafkaClock
    from evictstream.kit.see.brakes import ListedBrake
    from evictstream.models.eviction.backstop import Outlasted
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

    `ENDS IN` and `ENDS` are the end of the brake; what is due then goes little by little, until `SPREAD ENDS`.
    `Spreads`: the brake has ended, and `ENDS IN` says when its spread does. `Unreadable`: it is not known what that
    record holds, so nothing is evicted at all until it is removed by `evictstream release`.

    Where Kubernetes' own controller goes on with a pod before its brake ends, stderr says when, and `builtInAt` in JSON
    and YAML. This reads the state, for a table after it is printed; `--watch` does not.

    With `regions` set and without `-b` the brakes of each region are shown; exit code 1 says that one was not reached.

    `--count` reads the rows as `evictstream get` does, half a second for 100,000 pods.

    Examples:

    * `evictstream holds`
    * `evictstream holds --count -o wide`
    * `evictstream holds --watch`
    """
    from evictstream.kit.cli.brake_table import brakes_kind
    from evictstream.streams.cli.regions import HERE, ask_regions, settings_of_regions

    if count and watch:
        raise WrongUseError("--count and --watch exclude one another", next_step="give one of them")
    regions, is_for_people = settings_of_regions(context), output in (ListFormat.TABLE, ListFormat.WIDE)
    with StopSignals() as stop_signals, contextlib.ExitStack() as stack:
        opened = ask_regions(regions, lambda settings: _opened(stack, settings))
        opened.warn_of_problems()
        known_brakes = opened.found
        looks = not watch and output is not ListFormat.NAME
        looks = looks and any(one.reader.brakes.standing for one in known_brakes.values())
        seen = _looked(regions, known_brakes, is_counted=count) if count or (looks and not is_for_people) else _Looks()
        printer = ListPrinter(
            brakes_kind(lambda: _now_us(known_brakes), is_counted=count, has_regions=HERE not in regions), output
        )
        known = _listed(known_brakes, seen)
        if watch:
            printer.begin_watch(known.values())
        elif known or not is_for_people:
            printer.whole(known.values())
        else:
            warn("no brakes")
        if looks and is_for_people:  # the table stands before the rows are read
            _tell_outlasted(seen if count else _looked(regions, known_brakes, is_counted=False))
        while watch and not stop_signals.is_stopped():
            time.sleep(COMPARE_SECONDS)
            later = _listed(known_brakes, _Looks())
            for what, item in changes(known, later, lambda one: one):
                printer.change(what, item)
            known = later
    return ExitCode.DONE if opened.is_whole and (seen.is_whole or not count) else ExitCode.FOUND_PROBLEM


class _Known(NamedTuple):
    """What reads the brakes of a region, and the time by which they end."""

    reader: BrakesReader
    clock: KafkaClock


def _opened(stack: contextlib.ExitStack, settings: Settings) -> _Known:
    from evictstream.kit.cli.kafka_clock import KafkaClock
    from evictstream.streams.cli.brakes import open_brakes

    reader = stack.enter_context(open_brakes(settings))
    clock = KafkaClock(settings, reader)
    clock.look(reader.brakes)
    return _Known(reader, clock)


class _Looks(NamedTuple):
    """What the rows say of brakes, by region.

    Attributes:
        counted: how many evictions each holds; without the regions whose rows could not be read.
        outlasted: what each holds for longer than Kubernetes' own controller waits.
        is_whole: whether the rows of each region could be read.
    """

    counted: Mapping[str, Counter[str]] = {}
    outlasted: Mapping[str, Mapping[str, Outlasted]] = {}
    is_whole: bool = True


def _listed(known: Mapping[str, _Known], looks: _Looks) -> dict[tuple[str, str], ListedBrake]:
    """List the brakes by region and id."""
    import msgspec

    from evictstream.kit.see.brakes import listed_brakes

    found = {}
    for region, (reader, clock) in known.items():
        brakes = reader.brakes
        of_rows = looks.counted.get(region), looks.outlasted.get(region)
        for one in listed_brakes(brakes, clock.look(brakes), *of_rows):
            found[region, one.id] = msgspec.structs.replace(one, region=region)
    return found


def _now_us(known: Mapping[str, _Known]) -> int:
    return min((one.clock.now_us() for one in known.values()), default=present_us())


def _looked(regions: Mapping[str, Settings], known: Mapping[str, _Known], *, is_counted: bool) -> _Looks:
    """Look at what brakes hold, by the rows of each region; warns of those that could not be read.

    Raises:
        EvictstreamError: they are to be counted, and there is only one Kafka, whose rows cannot be read.
    """
    from evictstream.kit.see.brakes import count_held
    from evictstream.models.eviction.backstop import outlasted_by
    from evictstream.streams.cli.regions import ask_regions
    from evictstream.streams.worker.service_config import cluster_rules

    try:
        read = ask_regions({name: regions[name] for name in known}, lambda settings: read_known_cluster(settings, None))
    except EvictstreamError as error:
        if is_counted:
            raise
        warn_not_known(error)
        return _Looks(is_whole=False)
    if is_counted:
        read.warn_of_problems()
    else:
        for region, problem in read.problems.items():
            warn_not_known(problem, region)
    counted, outlasted = {}, {}
    for name, one in read.found.items():
        now_us = known[name].clock.now_us()
        brakes, nodes = known[name].reader.brakes, [stored.aggregate for stored in one.state.nodes()]
        if is_counted:
            counted[name] = count_held(brakes, one.state, now_us)
        holders_of = functools.partial(brakes.of_cluster, now_us=now_us)
        outlasted[name] = outlasted_by(holders_of, nodes, now_us, cluster_rules(regions[name]).usual)
    return _Looks(counted, outlasted, read.is_whole)


def _tell_outlasted(looks: _Looks) -> None:
    for region, found in looks.outlasted.items():
        for brake_id, outlasted in found.items():
            warn(outlasted_text(f"brake {brake_id}", outlasted, region))
