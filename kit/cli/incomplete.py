"""How commands say that something is missing in an answer: on stderr at the end, and by their exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.recordings.shortfalls import ShortfallKind
from evictstream.streams.cli.output import warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.kit.recordings.shortfalls import Shortfall

AllowOption = Annotated[
    list[ShortfallKind] | None,
    typer.Option(
        "--allow",
        help="Exit with 0 although this is missing, as reported on stderr; repeatable.",
        metavar="|".join(ShortfallKind),
    ),
]
"""Declare it as `allow: AllowOption = None`."""


def refused(records: int) -> Iterator[Shortfall]:
    """Give the shortfall that records are which the service does not take."""
    from evictstream.kit.recordings.shortfalls import Shortfall

    if records:
        yield Shortfall(
            ShortfallKind.REFUSED,
            records,
            f"{records:,} records are invalid; the service ignores them and writes dead letters",
        )


def tell_shortfalls(shortfalls: Iterable[Shortfall], allowed: Iterable[ShortfallKind] | None) -> ExitCode:
    """Say what is missing, each kind once; returns the exit code that follows from it."""
    missing = list(shortfalls)
    refused_kinds = list(dict.fromkeys(one.kind for one in missing if one.kind not in (allowed or ())))
    with contextlib.suppress(BrokenPipeError):  # without a reader of stderr the exit code still tells
        for one in missing:
            warn(one.text)
        if refused_kinds:
            options = " ".join(f"--allow {kind}" for kind in refused_kinds)
            warn(f"the answer may be wrong, so the exit code is 1; {options} accepts this")
    return ExitCode.FOUND_PROBLEM if refused_kinds else ExitCode.DONE
