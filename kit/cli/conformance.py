"""`evictstream conformance feed` and `executor`: whether an end of anyone keeps the contract."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OUTPUT_FORMATS, OutputFormat, print_json, print_table, say
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import EndSilentError, ExitCode

if TYPE_CHECKING:
    from evictstream.kit.conformance.findings import JudgedRule
    from evictstream.kit.conformance.playground import Playground

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)

# What follows the program's name is the program's.
_AS_IT_IS = {"allow_interspersed_args": False}

Command = Annotated[
    list[str] | None,
    typer.Argument(
        help="Program and arguments, after `--`. Without it, start the program yourself.", metavar="-- COMMAND"
    ),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option("--output", "-o", help="Default: text on a terminal, otherwise JSON.", metavar=OUTPUT_FORMATS),
]


@app.command(context_settings=_AS_IT_IS)
def executor(context: typer.Context, command: Command = None, output: Output = None) -> int:
    """Test an executor against the contract, and report rule by rule.

    Creates its own topics on the configured Kafka and a fake API server on loopback, starts the program with both in
    its environment, plays situations, kills the program once and restarts it. Takes half a minute to two minutes. Exits
    with 1 if a required rule is broken.

    Examples:

    * `evictstream conformance executor -- ./my-executor --workers 4`
    * `evictstream conformance executor` prints the environment in which to start it
    """
    from evictstream.kit.conformance.executor_play import ExecutorPlay
    from evictstream.kit.conformance.executor_rules import EXECUTOR_RULES
    from evictstream.kit.conformance.findings import judge_rules

    def play(playground: Playground) -> list[JudgedRule]:
        return judge_rules(EXECUTOR_RULES, ExecutorPlay(playground).run())

    return _run(context, ["results"], command, output, play)


@app.command(context_settings=_AS_IT_IS)
def feed(context: typer.Context, command: Command = None, output: Output = None) -> int:
    """Test a feed against the contract, and report rule by rule.

    Creates its own topics on the configured Kafka and a fake API server on loopback, starts the program with both in
    its environment, changes the cluster, breaks watches, forgets versions, restores a backup, and stalls the watch of
    pods. Takes about two minutes. Exits with 1 if a required rule is broken.

    Examples:

    * `evictstream conformance feed -- evictstream feed --cluster conformance`
    * `evictstream conformance feed` prints the environment in which to start it
    """
    from evictstream.kit.conformance.feed_play import FeedPlay
    from evictstream.kit.conformance.feed_rules import FEED_RULES
    from evictstream.kit.conformance.findings import judge_rules

    def play(playground: Playground) -> list[JudgedRule]:
        return judge_rules(FEED_RULES, FeedPlay(playground).run())

    return _run(context, ["nodes", "pods"], command, output, play)


def _run(
    context: typer.Context,
    topics: list[str],
    command: list[str] | None,
    output: OutputFormat | None,
    play: Callable[[Playground], list[JudgedRule]],
) -> int:
    from evictstream.kit.conformance.playground import open_playground

    options = global_options(context)
    as_text = sys.stdout.isatty() if output is None else output is OutputFormat.TEXT
    options.wants_json = not as_text
    settings = options.settings
    with (
        StopSignals() as stop_signals,
        open_playground(
            settings,
            topics,
            command or [],
            report=lambda line: say(line, err=True),
            is_stopped=stop_signals.is_stopped,
        ) as playground,
    ):
        rules = []
        try:
            rules = play(playground)
        except EndSilentError:
            if not stop_signals.is_stopped():
                raise
        if stop_signals.exit_code is not None:  # what was not played to the end says nothing
            return stop_signals.exit_code
    (_show_text if as_text else _show_json)(rules)
    return ExitCode.FOUND_PROBLEM if any(one.is_failure for one in rules) else ExitCode.DONE


def _show_text(rules: list[JudgedRule]) -> None:
    print_table(
        ["rule", "", "observed"],
        ([one.text, f"{one.standing}{' (recommended)' if one.is_recommended else ''}", one.seen] for one in rules),
    )


def _show_json(rules: list[JudgedRule]) -> None:
    print_json(
        {
            "isConformant": not any(one.is_failure for one in rules),
            "rules": [
                {
                    "name": one.name,
                    "text": one.text,
                    "isRecommended": one.is_recommended,
                    "standing": one.standing.value,
                    "seen": one.seen,
                }
                for one in rules
            ],
        }
    )
