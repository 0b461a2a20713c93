"""How commands print results: a table for people, JSON for programs, both on stdout."""

from __future__ import annotations

import enum
import itertools
import json
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

from evictstream.streams.cli.columns import Columns
from evictstream.streams.printing import one_line, printable_json

LOOK_AHEAD_ROWS = 200
"""Rows of a long table that set the widths before the first is printed; enough that few later rows widen a column."""


class OutputFormat(enum.StrEnum):
    """The values of `-o`."""

    TEXT = "text"
    JSON = "json"


OUTPUT_FORMATS = "|".join(OutputFormat)
"""For the help of an option."""

OutputOption = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="text for people, json for programs.", metavar=OUTPUT_FORMATS),
]
"""Declare it as `output: OutputOption = OutputFormat.TEXT`."""


def say(line: str = "", *, err: bool = False) -> None:
    """Print one line for people; whatever in it cannot be printed, or would begin another line, is a question mark."""
    typer.echo(one_line(line), err=err)


def warn(what: object) -> None:
    """Print one line on stderr, with the name of the program before it: stdout is for the answer."""
    say(f"evictstream: {what}", err=True)


def warn_of_end(line: str, code: int, error: BaseException | None = None) -> None:
    """Say why a service ends: as a line of its log, if that is JSON. `error` is shown with its traceback."""
    from evictstream.streams.logs import logs_are_json

    if logs_are_json():
        import structlog

        structlog.get_logger(__name__).critical("process ended", error=line, exit_code=int(code), exc_info=error)
        return
    if error is not None:
        traceback.print_exception(error)
    warn(line)


def say_title(line: str) -> None:
    """Print one line for people, bold on a terminal."""
    from rich.text import Text

    from evictstream.streams.cli.consoles import PrintableConsole

    PrintableConsole(highlight=False, soft_wrap=True).print(Text(one_line(line), style="bold"))


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON object, indented on a terminal, else in one line. Names are camelCase, as in Kubernetes."""
    typer.echo(printable_json(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under column titles, aligned; breaks lines only on a terminal, and pads none in a pipe."""
    if not sys.stdout.isatty():
        print_long_table(columns, rows)
        return
    from rich.table import Table
    from rich.text import Text

    from evictstream.streams.cli.consoles import PrintableConsole

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))  # Text: brackets in a value are not markup
    PrintableConsole(highlight=False).print(table)


def print_long_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under column titles as they come, the first `LOOK_AHEAD_ROWS` together; breaks no line."""
    coming, table = iter(rows), Columns(columns)
    first = list(itertools.islice(coming, LOOK_AHEAD_ROWS))
    lines = table.lines(first)
    say_title(next(lines, None) or table.titles())
    for line in lines:
        print(line)  # noqa: T201 - typer would flush each line
    for row in coming:
        for line in table.lines([row]):
            print(line)  # noqa: T201 - as above
    sys.stdout.flush()


def print_long_json(head: Mapping[str, object], name: str, items: Iterable[object]) -> None:
    """Print one JSON object piece by piece: the fields of `head`, then the list `name` with an item in each line."""
    import msgspec

    encode = msgspec.json.Encoder().encode
    write = sys.stdout.write
    write(printable_json(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "{name}": ['))
    for number, item in enumerate(items):
        write(f"{',' if number else ''}\n{printable_json(encode(item).decode())}")
    write("\n]}\n")
    sys.stdout.flush()
