"""The command `evictstream`: finds the command that is asked for, and turns every error into one line and an exit code.

To add a command `accept-gap`:

1. write `streams/cli/accept_gap.py` with `app = typer.Typer(rich_markup_mode="markdown", add_completion=False)`. One
   function with `@app.command()` makes a plain command; two or more make sub-commands (as in `topics`). The docstring
   is the help; end it with examples. Take `context: typer.Context` first and get settings from
   `global_options(context).settings`, which also sets up logs. Return nothing, or an `ExitCode`. Import what is heavy
   inside the function. What no service needs is written in `kit/cli`, and its name is in `KIT` too.
2. add its name and one sentence to `COMMANDS` here. Its module is imported when it runs, so `--help` stays fast.
3. raise errors of `streams.errors`; print results to stdout with `streams.cli.output`, and nothing else.

Exit codes: 0 done, 1 a found problem, 2 wrong use, 70 an internal failure (a bug in evictstream), 130 stopped by
Ctrl-C, 143 by SIGTERM before the work was done.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import keyword
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._click import Command, Context  # typer carries click inside and shows only part of it
from typer.core import TyperCommand, TyperGroup

from evictstream.streams.cli.global_options import GlobalOptions, global_options
from evictstream.streams.cli.output import say, warn
from evictstream.streams.errors import EvictstreamError, ExitCode
from evictstream.streams.printing import PrintableStream

COMMANDS = {
    "broker": "Run an embedded Kafka for trying out.",
    "demo": "Play a recorded outage to two workers, kill one, and check every command.",
    "config": "Show the effective settings and where each comes from.",
    "worker": "Run a worker: keep deadlines and send commands.",
    "execute": "Carry out eviction commands in clusters.",
    "feed": "Watch nodes and pods of clusters and write them to the topics.",
    "topics": "Declare the topics, or check them.",
    "accept-gap": "Resume evictions although input expired before it was read.",
    "cluster": "Forget a cluster that is gone.",
    "commands": "Follow the eviction commands.",
    "import": "Play a recording into the topics.",
    "explain": "Show why a pod was or was not evicted.",
    "record": "Record the topics into a folder, for a later replay.",
    "replay": "Replay a recording without Kafka, and compare runs.",
    "what-if": "Show which pods would leave if nodes were tainted, and where they could go.",
    "conformance": "Test any feed or executor against the contract and report rule by rule.",
    "rules": "Apply the rules of Kubernetes to nodes and pods in files.",
}

# What reads, replays, judges or explains: the commands in `kit/cli`.
KIT = frozenset({"demo", "import", "explain", "record", "replay", "what-if", "conformance", "rules"})


class LazyGroup(TyperGroup):
    """Has name and help of every command, and imports only the command that is run."""

    def __init__(self, **attributes: Any) -> None:
        """Make a stub for each command, enough for help and suggestions."""
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=sentence) for name, sentence in COMMANDS.items()}

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Replace the stub of the named command by the command."""
        name, stub, rest = super().resolve_command(ctx, args)
        return name, None if stub is None or name is None else _load(name), rest


@functools.cache  # for programs that run several command lines, such as tests
def _load(name: str) -> Command:
    # The module of a command named like a Python keyword ends with an underscore.
    suffix = "_" if keyword.iskeyword(name) else ""
    room = "kit" if name in KIT else "streams"
    module = importlib.import_module(f"evictstream.{room}.cli.{name.replace('-', '_')}{suffix}")
    command = typer.main.get_command(module.app)
    command.name = name
    return command


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(importlib.metadata.version("evictstream"))
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with settings; default: EVICTSTREAM_CONFIG.", metavar="FILE"),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option("--bootstrap-servers", "-b", help="Addresses of Kafka brokers.", metavar="HOST:PORT,..."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="Any setting; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal failure.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Evict pods from tainted Kubernetes nodes, with durable timers on Kafka.

    Settings come from flags, then the environment (EVICTSTREAM_...), then the file, then defaults.

    Examples:

    * `evictstream broker` runs a Kafka for trying out
    * `evictstream -b localhost:9092 topics declare` creates the topics
    * `evictstream --set partitions=64 config` shows the effective settings
    """
    del version
    global_options(context).take_flags(config, bootstrap_servers, assignments or [], debug=debug)


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit code; raises only `SystemExit`."""
    state = GlobalOptions()
    try:
        result = typer.main.get_command(app).main(
            list(arguments) or ["--help"],
            prog_name="evictstream",
            standalone_mode=False,
            obj=state,
        )
    except EvictstreamError as error:
        return _fail(state, error, str(error), error.exit_code)
    except typer.TyperException as error:  # the command line itself is wrong
        return _fail(state, error, f"{error.format_message()} Try --help.", ExitCode.WRONG_USE)
    except typer.Abort as error:
        return _fail(state, error, "no input to read the answer from", ExitCode.WRONG_USE)
    except Exception as error:  # noqa: BLE001 - the last place that can turn a bug into one line
        line = f"internal failure, {type(error).__name__}: {error}"
        return _fail(state, error, line if state.debug else f"{line}; --debug shows where", ExitCode.INTERNAL_FAILURE)
    return result if isinstance(result, int) else ExitCode.DONE


def _fail(state: GlobalOptions, error: BaseException, line: str, code: ExitCode) -> ExitCode:
    if state.debug:
        traceback.print_exception(error)
    warn(" ".join(line.split()))
    return code


def main() -> None:
    """Entry point of the installed command."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is not None:  # a supervisor may start it without
            setattr(sys, name, PrintableStream(stream))
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
