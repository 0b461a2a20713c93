"""The command `evictstream`: finds the command that is asked for, and turns every error into one line and an exit code.

To add a command `accept-gap`:

1. write `streams/cli/accept_gap.py` with `app = typer.Typer(rich_markup_mode="markdown", add_completion=False)`. One
   function with `@app.command()` makes a plain command; two or more make sub-commands (as in `topics`). The docstring
   is the help; end it with examples. Take `context: typer.Context` first and get settings from
   `global_options(context).settings`, which also sets up logs. Return nothing, or an `ExitCode`. Import what is heavy
   inside the function. What no service needs is written in `kit/cli`, and its name is in `KIT` too.
2. add its name and one sentence to `COMMANDS` here. Its module is imported when it runs, so `--help` stays fast. The
   sentence is also the help of a command that has sub-commands.
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
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from evictstream.streams.cli.global_options import (
    AssignmentsOption,
    ConfigOption,
    DebugOption,
    GlobalOptions,
    ServersOption,
)
from evictstream.streams.cli.output import say, warn, warn_of_end
from evictstream.streams.errors import EvictstreamError, ExitCode
from evictstream.streams.printing import PrintableStream

COMMANDS = {
    "broker": "Run an embedded Kafka for trying out.",
    "demo": "Play a recorded outage to two workers, kill one, and check every command.",
    "config": "Show the effective settings and where each comes from.",
    "version": "Show the versions of evictstream, Python and the clients.",
    "worker": "Run a worker: keep deadlines and send commands.",
    "execute": "Carry out eviction commands in clusters.",
    "feed": "Watch nodes and pods of clusters and write them to the topics.",
    "topics": "Declare the topics, or check them.",
    "accept-gap": "Resume evictions although input expired before it was read.",
    "cluster": "Forget a cluster that is gone.",
    "commands": "Follow the eviction commands.",
    "schema": "Print the JSON Schema of a message.",
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


HELP_OPTIONS = ["-h", "--help"]

AnyCommand = TyperCommand | TyperGroup


class LazyGroup(TyperGroup):
    """Has name and help of every command, and imports only the command that is run."""

    def __init__(self, **attributes: Any) -> None:
        """Make a stub for each command, enough for help and suggestions."""
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=sentence) for name, sentence in COMMANDS.items()}
        _hide_types_of_flags(self)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, AnyCommand | None, list[str]]:
        """Replace the stub of the named command by the command.

        `help topics` is `topics --help`, and so is `topics` alone, which has sub-commands.
        """
        if args[0] == "help":
            args = [*args[1:], "--help"]
        name, stub, rest = super().resolve_command(ctx, args)
        if stub is None or name is None:
            return name, None, rest
        command = _load(name)
        return name, command, rest or (["--help"] if isinstance(command, TyperGroup) else [])


@functools.cache  # for programs that run several command lines, such as tests
def _load(name: str) -> AnyCommand:
    # The module of a command named like a Python keyword ends with an underscore.
    suffix = "_" if keyword.iskeyword(name) else ""
    room = "kit" if name in KIT else "streams"
    module = importlib.import_module(f"evictstream.{room}.cli.{name.replace('-', '_')}{suffix}")
    command = cast("AnyCommand", typer.main.get_command(module.app))
    command.name = name
    command.help = command.help or COMMANDS[name]
    _take_global_options(command)
    return command


def _take_global_options(command: AnyCommand) -> None:
    """Let a command, and all below it, take the options that may also stand before it."""
    command.params += [option for option in typer.main.get_command(app).params if not option.expose_value]
    _hide_types_of_flags(command)
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            _take_global_options(cast("AnyCommand", each))


def _hide_types_of_flags(command: AnyCommand) -> None:
    """Help would say `<bool>` behind each flag, which takes no value; typer has no setting for that."""
    for option in command.get_params(typer.Context(command, help_option_names=HELP_OPTIONS)):
        if getattr(option, "is_flag", False):
            option.metavar = ""


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    context_settings={"help_option_names": HELP_OPTIONS},
    rich_markup_mode="markdown",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(importlib.metadata.version("evictstream"))
        raise typer.Exit


@app.callback()
def root(
    config: ConfigOption = None,
    bootstrap_servers: ServersOption = None,
    assignments: AssignmentsOption = None,
    debug: DebugOption = False,
    version: Annotated[
        bool,
        typer.Option("--version", "-V", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Evict pods from tainted Kubernetes nodes, with durable timers on Kafka.

    Settings come from flags, then the environment (EVICTSTREAM_...), then the file, then defaults. Each command takes
    the global options too, after its name.

    Examples:

    * `evictstream broker` runs a Kafka for trying out
    * `evictstream topics declare -b localhost:9092` creates the topics
    * `evictstream config --set partitions=64` shows the effective settings
    """
    del config, bootstrap_servers, assignments, debug, version  # each is taken by its callback


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
        sentence = error.format_message()
        stop = "" if sentence.endswith((".", "?")) else "."
        return _fail(state, error, f"{sentence}{stop} Try --help.", ExitCode.WRONG_USE)
    except typer.Abort as error:
        return _fail(state, error, "no input to read the answer from", ExitCode.WRONG_USE)
    except Exception as error:  # noqa: BLE001 - the last place that can turn a bug into one line
        line = f"internal failure, {type(error).__name__}: {error}"
        return _fail(state, error, line if state.debug else f"{line}; --debug shows where", ExitCode.INTERNAL_FAILURE)
    return result if isinstance(result, int) else ExitCode.DONE


def _fail(state: GlobalOptions, error: BaseException, line: str, code: ExitCode) -> ExitCode:
    line, shown = " ".join(line.split()), error if state.debug else None
    if state.is_service:
        warn_of_end(line, code, shown)
        return code
    if shown is not None:
        traceback.print_exception(shown)
    warn(line)
    return code


def main() -> None:
    """Entry point of the installed command."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is not None:  # a supervisor may start it without
            setattr(sys, name, PrintableStream(stream))
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
