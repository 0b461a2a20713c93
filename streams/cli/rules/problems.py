"""How the rules' commands print objects that the API server would refuse, and the option they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.output import OutputFormat, print_json, print_table
from evictstream.streams.errors import ExitCode, ObjectFileError

if TYPE_CHECKING:
    from evictstream.streams.cli.rules.checked_objects import ObjectErrors
    from evictstream.streams.cli.rules.object_files import FoundObject

ComparisonOption = Annotated[
    bool,
    typer.Option(
        "--comparison-operators",
        help="As in a cluster whose gate TaintTolerationComparisonOperators is on: Gt and Lt are legal and compare.",
    ),
]
"""Declare it as `comparison_operators: ComparisonOption = False`."""


def show_problems(wrong: Sequence[ObjectErrors], output: OutputFormat) -> ExitCode:
    """Print every broken rule with its field; returns the exit code."""
    if output is OutputFormat.JSON:
        print_json(
            {
                "errors": [
                    {
                        "source": each.source,
                        "object": each.subject,
                        "field": error.field,
                        "type": error.type,
                        "value": error.bad_value,
                        "rule": error.detail or error.type.text,
                    }
                    for each in wrong
                    for error in each.errors
                ]
            }
        )
    else:
        print_table(
            ["file", "object", "field", "problem"],
            (
                [each.source, each.subject, error.field, str(error).removeprefix(f"{error.field}: ")]
                for each in wrong
                for error in each.errors
            ),
        )
    return ExitCode.FOUND_PROBLEM


def require(found: Iterable[object], kind: str, source: str, objects: Iterable[FoundObject]) -> None:
    """Refuse a file without any object of the needed kind.

    Raises:
        ObjectFileError: it has none; the message names the kinds that it has.
    """
    from evictstream.streams.cli.rules.checked_objects import kinds_of

    if not list(found):
        there = ", ".join(kinds_of(objects)) or "nothing"
        raise ObjectFileError(source, f"it holds no v1 {kind}, only {there}")
