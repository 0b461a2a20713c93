"""`evictstream release`: the end of a brake."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.streams.cli.brakes import BrakesWriter

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def release(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(help="As `evictstream holds` names them.", metavar="ID...")],
    why: Annotated[str, typer.Option(help="Why it is over.", metavar="TEXT")],
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """End brakes. What is overdue is spread over the time that the brake says, by default 60 s.

    A brake that cannot be read is removed. Exit code 1 says that one of them is not there, or was over before.

    Examples:

    * `evictstream release brake-3f9a1c --why "false alarm"`
    * `evictstream holds -o name | xargs evictstream release --why "power is back"`
    """
    from evictstream.models.instants import instant_text
    from evictstream.streams.cli.brakes import open_brakes_writer
    from evictstream.streams.cli.steering_records import check_why

    check_why(why)
    settings = global_options(context).settings
    ended: dict[str, str] = {}
    with open_brakes_writer(settings) as writer:
        for name in dict.fromkeys(ids):
            ended_us = _end(writer, name, why)
            if ended_us is not None:
                ended[name] = instant_text(ended_us)
                if output is OutputFormat.TEXT:
                    say(_sentence(writer, name, ended[name]))
        writer.remove_old(time.time_ns() // 1_000)
    if output is OutputFormat.JSON:
        print_json({"released": ended, "notReleased": [name for name in ids if name not in ended]})
    return ExitCode.DONE if len(ended) == len(set(ids)) else ExitCode.FOUND_PROBLEM


def _end(writer: BrakesWriter, name: str, why: str) -> int | None:
    """End a brake; returns when it ended, microseconds since 1970. None where nothing was to be done."""
    import msgspec

    from evictstream.models.instants import instant_text
    from evictstream.streams.cli.steering_records import who

    now_us = time.time_ns() // 1_000
    if name in writer.brakes.unreadable:
        writer.remove(name)
        return now_us
    standing = writer.brakes.standing.get(name)
    if standing is None:
        warn(f"there is no brake {name}; `evictstream holds` shows them")
        return None
    if standing.brake.is_released or standing.is_over(now_us):
        warn(f"brake {name} ended at {instant_text(standing.end_us or now_us)}")
        return None
    return writer.write(msgspec.structs.replace(standing.brake, released_by=who(), released_why=why)).appended_us


def _sentence(writer: BrakesWriter, name: str, at: str) -> str:
    standing = writer.brakes.standing.get(name)
    if standing is None:
        return f"removed brake {name}, which could not be read"
    seconds = standing.brake.spread_seconds
    return f"released brake {name} at {at}; what is overdue goes {f'within {seconds} s' if seconds else 'at once'}"
