"""How the rules' commands print objects that the API server would refuse, and the option they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.output import OutputFormat, print_json, print_table, say, warn
from evictstream.streams.errors import ExitCode, ObjectFileError

if TYPE_CHECKING:
    from evictstream.kit.cli.rules.checked_objects import ObjectErrors
    from evictstream.kit.cli.rules.object_files import FoundObject

ComparisonOption = Annotated[
    bool,
    typer.Option(
        "--comparison-operators",
        help="As with the feature gate TaintTolerationComparisonOperators: Gt and Lt are valid and compared.",
    ),
]
"""Declare it as `comparison_operators: ComparisonOption = False`."""

_MOST_NAMED = 10
"""Objects that the line on stderr names; the table and `-o json` have all."""


def show_problems(wrong: Sequence[ObjectErrors], output: OutputFormat) -> ExitCode:
    """Print every broken rule with its field, where there is nothing else to print; returns the exit code."""
    if output is OutputFormat.JSON:
        print_json({"errors": errors_json(wrong)})
    else:
        _print_problems(wrong)
    return ExitCode.FOUND_PROBLEM


def errors_json(wrong: Sequence[ObjectErrors]) -> list[dict[str, object]]:
    """Return every broken rule for JSON, beside what is said of the other objects."""
    return [
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


def end_with_problems(wrong: Sequence[ObjectErrors], output: OutputFormat) -> ExitCode:
    """Say, behind what was printed of the other objects, which ones were left out; returns the exit code."""
    if not wrong:
        return ExitCode.DONE
    is_shown = output is OutputFormat.TEXT
    if is_shown:
        say()
        _print_problems(wrong)
    names = ", ".join(
        each.subject if is_shown else f"{each.subject} ({each.errors[0]})" for each in wrong[:_MOST_NAMED]
    )
    more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    warn(f"skipped, because the API server or kubectl would refuse it: {names}{more}")
    return ExitCode.FOUND_PROBLEM


def _print_problems(wrong: Sequence[ObjectErrors]) -> None:
    print_table(
        ["file", "object", "field", "problem"],
        (
            [each.source, each.subject, error.field, str(error).removeprefix(f"{error.field}: ")]
            for each in wrong
            for error in each.errors
        ),
    )


def require(subjects: Iterable[object], kind: str, source: str, objects: Iterable[FoundObject]) -> None:
    """Refuse a file without any object of the needed kind.

    Raises:
        ObjectFileError: it has none; the message names the kinds that it has.
    """
    from evictstream.kit.cli.rules.checked_objects import kinds_of

    if not list(subjects):
        there = ", ".join(kinds_of(objects)) or "nothing"
        raise ObjectFileError(source, f"it has no v1 {kind}, only {there}")
