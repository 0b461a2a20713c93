"""Whether a command line is one that `evictstream` takes: parsed as far as it goes without running anything."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from evictstream.streams.cli.global_options import GlobalOptions
from evictstream.streams.cli.main import app


def parse(arguments: Sequence[str]) -> None:
    """Find the command and read its arguments.

    Raises:
        typer.TyperException: there is no such command or option, or a value does not fit.
    """
    command = typer.main.get_command(app)
    context = command.make_context("evictstream", list(arguments), obj=GlobalOptions())
    while isinstance(command, typer.core.TyperGroup):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name, rest, parent=context)
