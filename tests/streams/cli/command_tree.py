"""Every command of the command line with its parameters, as they are declared."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import cast

import typer
from typer.core import TyperGroup

from evictstream.streams.cli.main import COMMANDS, AnyCommand, _load, app


@functools.cache
def commands() -> tuple[tuple[tuple[str, ...], AnyCommand], ...]:
    """List each command that does something, with the words that call it; the program itself has none."""
    return (
        ((), cast("AnyCommand", typer.main.get_command(app))),
        *(found for name in COMMANDS for found in _below((name,), _load(name))),
    )


def _below(words: tuple[str, ...], command: AnyCommand) -> Iterator[tuple[tuple[str, ...], AnyCommand]]:
    if not isinstance(command, TyperGroup):
        yield words, command
        return
    for name, sub in command.commands.items():
        yield from _below((*words, name), cast("AnyCommand", sub))


def options_of(command: AnyCommand) -> frozenset[str]:
    """Name what can be typed after a command, `--output` and `-o` alike."""
    return frozenset(name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts))
