"""How commands print results: a table for people, JSON for programs, both on stdout."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

# A pipe has no width; rich would take 80 columns and break what scripts search for.
PIPE_WIDTH = 1_000


class OutputFormat(enum.StrEnum):
    """What `-o` takes."""

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
