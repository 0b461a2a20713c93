"""`evictstream release`: the end of a brake."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evictstream.streams.cli.brakes import BrakesWriter
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def release(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(help="As `evictstream holds` names them.", metavar="ID...")],
    why: Annotated[str, typer.Option(help="Why it is over.", metavar="TEXT")],
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """End brakes. What is overdue is spread over the time that the brake says, by default 60 s.

    A brake that cannot be read is removed, and everything that is overdue goes at once, unless another brake holds it:
    set that first. Exit code 1 says that one of them is not there, or was over before; with
    `regions` set, that no region had it, or that a region was not reached.

    Examples:

    * `evictstream release brake-3f9a1c --why "false alarm"`
    * `evictstream holds -o name | xargs evictstream release --why "power is back"`
    """
    from evictstream.streams.cli.regions import HERE, ask_regions, in_region, settings_of_regions
    from evictstream.streams.cli.steering_records import check_why

    check_why(why)
    names = tuple(dict.fromkeys(ids))
    answers = ask_regions(settings_of_regions(context), lambda settings: _release(settings, names, why))
    answers.warn_of_problems()
    ended = {
        region: {one.name: one.ended_at for one in found if one.ended_at is not None}
        for region, found in answers.found.items()
    }
    released = {name for found in ended.values() for name in found}
    for region, found in answers.found.items():
        for one in found:
            if one.ended_at is None and one.name not in released:
                warn(f"{in_region(region)}{one.sentence}")
            elif one.ended_at is not None and output is OutputFormat.TEXT:
                say(f"{in_region(region)}{one.sentence}")
    if output is OutputFormat.JSON:
        not_reached = {region: str(error) for region, error in answers.problems.items()}
        here = ended.get(HERE, {"regions": ended, "notReached": not_reached})
        not_released = [name for name in names if name not in released]
        print_json({"released": here, "notReleased": not_released})
    return ExitCode.DONE if answers.is_whole and released == set(names) else ExitCode.FOUND_PROBLEM


class _Released(NamedTuple):
    """What became of a brake in one Kafka.

    Attributes:
        name: its id.
        sentence: for people.
        ended_at: when it was released; None where nothing was to be done.
    """

    name: str
    sentence: str
    ended_at: str | None = None


def _release(settings: Settings, names: Sequence[str], why: str) -> list[_Released]:
    from evictstream.streams.cli.brakes import open_brakes_writer

    with open_brakes_writer(settings) as writer:
        released = [_end(writer, name, why) for name in names]
        writer.remove_old(time.time_ns() // 1_000)
    return released


def _end(writer: BrakesWriter, name: str, why: str) -> _Released:
    import msgspec

    from evictstream.models.instants import instant_text
    from evictstream.streams.cli.steering_records import who

    now_us = time.time_ns() // 1_000
    if name in writer.brakes.unreadable:
        writer.remove(name)
        sentence = f"removed brake {name}, which could not be read; what nothing else holds goes at once"
        return _Released(name, sentence, instant_text(now_us))
    standing = writer.brakes.all.get(name)
    if standing is None:
        return _Released(name, f"there is no brake {name}; `evictstream holds` shows them")
    if standing.brake.is_released or standing.is_over(now_us):
        return _Released(name, f"brake {name} ended at {instant_text(standing.end_us or now_us)}")
    ended = writer.write(msgspec.structs.replace(standing.brake, released_by=who(), released_why=why))
    at, seconds = instant_text(ended.appended_us), ended.brake.spread_seconds
    overdue = f"within {seconds} s" if seconds else "at once"
    return _Released(name, f"released brake {name} at {at}; what is overdue goes {overdue}", at)
