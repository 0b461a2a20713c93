"""Asks an operator before a command that cannot be undone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from evictstream.streams.cli.output import warn
from evictstream.streams.errors import ExitCode, WrongUseError
from evictstream.streams.printing import one_line

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
"""Declare it as `yes: YesOption = False`."""


def is_confirmed(question: str, yes: bool) -> bool:
    """Ask on the terminal, unless `--yes` was given; a no is printed, so that logs show it.

    Only `y` and `yes` are a yes. The question goes to stderr, because stdout is for results. Show before what it is
    about: an operator without a terminal, as in `kubectl exec`, has to see that too.

    Raises:
        WrongUseError: there is no terminal, and no `--yes`.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise WrongUseError(
            "nothing was sent: this needs a confirmation, and there is no terminal to ask on", next_step="add --yes"
        )
    typer.echo(f"{one_line(question)} [y/N]: ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    warn("nothing was sent")
    return False


DECLINED = ExitCode.FOUND_PROBLEM
"""The exit code of a command after a no."""
