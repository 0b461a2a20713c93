"""`evictstream release`: the end of a brake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evictstream.streams.cli.brake_writing import EndedBrake
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


def _release(settings: Settings, names: Sequence[str], why: str) -> list[EndedBrake]:
    from evictstream.streams.cli.brake_writing import end_brake
    from evictstream.streams.cli.brakes import open_brakes_writer

    with open_brakes_writer(settings) as writer:
        ended = [end_brake(writer, name, why) for name in names]
        if any(one.ended_at is not None for one in ended):
            writer.remove_old(writer.now_us())
    return ended
