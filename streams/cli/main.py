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
import os
import select
import shutil
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer
import typer.completion
from typer.core import TyperArgument, TyperCommand, TyperGroup

from evictstream.streams.cli.failures import Failure, asks_for_json, say_as_json
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

COMPLETION_VARIABLE = "_EVICTSTREAM_COMPLETE"
"""What `evictstream completion` prints sets it; typer then answers instead of running the command."""

COMMANDS = {
    "broker": "Run an embedded Kafka for trying out.",
    "demo": "Play a recorded outage to two workers, kill one, and check every command.",
    "completion": "Print a script that completes commands in a shell.",
    "config": "Show the effective settings and where each comes from.",
    "version": "Show the versions of evictstream, Python and the clients.",
    "worker": "Run a worker: keep deadlines and send commands.",
    "execute": "Carry out eviction commands in clusters.",
    "feed": "Watch nodes and pods of clusters and write them to the topics.",
    "topics": "Declare the topics, or check them.",
    "accept-gap": "Resume evictions although input expired before it was read.",
    "hold": "Brake: hold evictions back, at once and everywhere.",
    "release": "End a brake.",
    "holds": "Show the brakes: what is held, by whom, and until when.",
    "policy": "Rules that hold evictions back: apply, show, compare, delete.",
    "incidents": "Show what guards hold, and approve or reject it.",
    "cluster": "Forget a cluster that is gone.",
    "handover": "Take evictions over where the built-in controller cannot be switched off.",
    "status": "Show the fleet: clusters, unhealthy nodes, what is evicted and what waits.",
    "get": "Show what is pending: evictions, nodes, clusters, dead letters.",
    "describe": "Show all that is known of a pod or a node.",
    "dead-letters": "Show records that could not be used, or send them again.",
    "commands": "Follow the eviction commands.",
    "schema": "Print the JSON Schema of a message.",
    "import": "Play a recording into the topics.",
    "explain": "Show why a pod was or was not evicted.",
    "record": "Record the topics into a folder, for a later replay.",
    "replay": "Replay a recording without Kafka, and compare runs.",
    "shadow": "Show what an observing service would have done beside what Kubernetes did.",
    "what-if": "Show which pods would leave if nodes were tainted, and where they could go.",
    "conformance": "Test any feed or executor against the contract and report rule by rule.",
    "rules": "Apply the rules of Kubernetes to nodes and pods in files.",
}

# What reads, replays, judges or explains: the commands in `kit/cli`.
KIT = frozenset(
    {
        "get",
        "describe",
        "demo",
        "import",
        "explain",
        "holds",
        "incidents",
        "policy",
        "record",
        "replay",
        "shadow",
        "status",
        "what-if",
        "conformance",
        "rules",
    }
)


COLUMNS_FOR_A_NAME = 4
"""With so many times the columns of its longest option, a box has room for names, values and a line of text."""

HELP_OPTIONS = ["-h", "--help"]

AnyCommand = TyperCommand | TyperGroup


class LazyGroup(TyperGroup):
    """Has name and help of every command, and imports only the command that is run."""

    def __init__(self, **attributes: Any) -> None:
        """Make a stub for each command, enough for help and suggestions."""
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=sentence) for name, sentence in COMMANDS.items()}
        _fit_help(self)

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
    _fit_help(command)
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            _take_global_options(cast("AnyCommand", each))


def _fit_help(command: AnyCommand) -> None:
    """Have help name each option whole, and no types: none behind flags and arguments; typer cannot be told so.

    The boxes of rich cut names where a terminal has too few columns. There help is plain, and its lists stay lists.
    """
    options = command.get_params(typer.Context(command, help_option_names=HELP_OPTIONS))
    for option in options:
        if getattr(option, "is_flag", False):  # it takes no value
            option.metavar = ""
        elif isinstance(option, TyperArgument):  # its name is there
            option.display_type_rich = _no_type  # type: ignore[method-assign, assignment]
    longest = max(len(name) for option in options for name in option.opts)
    if shutil.get_terminal_size().columns < COLUMNS_FOR_A_NAME * longest:
        command.rich_markup_mode = None
        command.help = (command.help or "").replace("\n\n* ", "\n\n\b\n* ")


def _no_type(*, ctx: Any) -> str | None:  # noqa: ARG001 - typer calls it so
    """Return what help has instead of `<str>` or `<list[str]>`."""
    return None


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


def run(arguments: Sequence[str], program: str = "evictstream") -> int:
    """Run one command line (without the program's name) and return its exit code; raises only `SystemExit`."""
    state, stdout = GlobalOptions(), sys.stdout
    state.wants_json = asks_for_json(arguments)
    if COMPLETION_VARIABLE in os.environ:  # a shell asks what can be typed next
        typer.completion.get_completion_inspect_parameters()  # this makes the shells known to typer
    try:
        result = typer.main.get_command(app).main(
            list(arguments) or ["--help"],
            prog_name=program,
            standalone_mode=False,
            obj=state,
        )
        if sys.stdout is not None:
            sys.stdout.flush()
    except SystemExit as error:  # typer ends so where a pipe is closed
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        sys.stdout = stdout  # typer has put another one in its place
        return _closed(state, error.__context__)
    except BrokenPipeError as error:
        return _closed(state, error)
    except EvictstreamError as error:
        return _fail(state, error, Failure(error.problem, error.next_step, error.exit_code, error.fields))
    except typer.TyperException as error:  # the command line itself is wrong
        sentence = error.format_message()
        stop = "" if sentence.endswith((".", "?")) else "."
        return _fail(state, error, Failure(f"{sentence}{stop}", "Try --help.", ExitCode.WRONG_USE))
    except typer.Abort as error:
        return _fail(state, error, Failure("no input to read the answer from", "", ExitCode.WRONG_USE))
    except Exception as error:  # noqa: BLE001 - the last place that can turn a bug into one line
        return _failed(state, error)
    return result if isinstance(result, int) else ExitCode.DONE


def _closed(state: GlobalOptions, error: BrokenPipeError) -> ExitCode:
    """End without a word where the reader of stdout has gone, as `head` does; any other closed pipe is a failure."""
    stdout, nothing, reader = sys.stdout.fileno(), os.open(os.devnull, os.O_WRONLY), select.poll()
    reader.register(stdout, 0)  # only whether it has gone
    is_replaced = os.path.samestat(os.fstat(stdout), os.fstat(nothing))  # by rich, which noticed it first
    if not (reader.poll(0) or is_replaced):
        return _failed(state, error)
    os.dup2(nothing, stdout)  # Python flushes once more at the end
    return ExitCode.DONE


def _failed(state: GlobalOptions, error: Exception) -> ExitCode:
    problem = f"internal failure, {type(error).__name__}: {error}"
    return _fail(
        state, error, Failure(problem, "" if state.debug else "--debug shows where", ExitCode.INTERNAL_FAILURE)
    )


def _fail(state: GlobalOptions, error: BaseException, failure: Failure) -> ExitCode:
    shown = error if state.debug else None
    if state.is_service:
        warn_of_end(failure.line, failure.exit_code, shown)
    elif state.wants_json:
        say_as_json(failure, type(error).__name__, shown)
    else:
        if shown is not None:
            traceback.print_exception(shown)
        warn(failure.line)
    return failure.exit_code


def kubectl_plugin() -> None:
    """Entry point of `kubectl evictstream`, for which kubectl runs the program `kubectl-evictstream`."""
    main("kubectl evictstream")


def main(program: str = "evictstream") -> None:
    """Entry point of the installed command."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is not None:  # a supervisor may start it without
            setattr(sys, name, PrintableStream(stream))
    sys.exit(run(sys.argv[1:], program))


if __name__ == "__main__":
    main()
