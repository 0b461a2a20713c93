"""How commands print results: a table for people, JSON for programs, both on stdout."""

from __future__ import annotations

import enum
import itertools
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

from evictstream.streams.cli.columns import Columns

# A pipe has no width; with rich's 80 columns it would break lines that scripts search.
PIPE_WIDTH = 1_000

LOOK_AHEAD_ROWS = 200
"""Rows of a long table that set the widths before the first is printed; enough that few later rows widen a column."""


class OutputFormat(enum.StrEnum):
    """The values of `-o`."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="For people, or for programs."),
]
"""Declare it as `output: OutputOption = OutputFormat.TEXT`."""


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON object, indented on a terminal, else in one line. Names are camelCase, as in Kubernetes."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under column titles, aligned; breaks lines only on a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: brackets in a value are not markup
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)
    console.print(table)


def print_long_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under column titles as they come, the first `LOOK_AHEAD_ROWS` together; breaks no line."""
    coming = iter(rows)
    first = list(itertools.islice(coming, LOOK_AHEAD_ROWS))
    lines = Columns([len(title) for title in columns])
    for row in first:
        lines.make_room(row)
    typer.secho(lines.line(columns), bold=True)
    for row in itertools.chain(first, coming):
        print(lines.line(row))  # noqa: T201 - typer would flush each line
    sys.stdout.flush()


def print_long_json(head: Mapping[str, object], name: str, items: Iterable[Mapping[str, object]]) -> None:
    """Print one JSON object piece by piece: the fields of `head`, then the list `name` with an item in each line."""
    import msgspec

    encode = msgspec.json.Encoder().encode
    write = sys.stdout.write
    write(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "{name}": [')
    for number, item in enumerate(items):
        write(f"{',' if number else ''}\n{encode(item).decode()}")
    write("\n]}\n")
    sys.stdout.flush()
