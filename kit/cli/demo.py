"""`evictstream demo`: the whole story on a recorded incident."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say
from evictstream.streams.errors import ExitCode

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPED_BY = 128
"""A program that a signal stopped exits with this plus the signal's number, by custom."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


class _StopRequested(BaseException):
    """A signal asks the demo to end; not an `Exception`, so that no handler on the way catches it."""

    def __init__(self, number: int) -> None:
        self.number = number


@app.command()
def demo(
    context: typer.Context,
    incident: Annotated[
        Path | None,
        typer.Option(help="Folder of a recorded incident. Default: a zone outage.", metavar="FOLDER"),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(help="Speed factor. Tolerations are not changed.", min=0.1, max=100.0),
    ] = 1.0,
    no_kill: Annotated[bool, typer.Option("--no-kill", help="Do not kill a worker.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Play a recorded outage to two workers, kill one of them halfway, and check every command.

    The incident was recorded on a real Kubernetes control plane: a zone goes down, and part of it returns. Its times
    are moved to now; it takes about 75 s. A small stand-in plays executor and cluster. An oracle that shares no code
    with the workers computes what they should have done. If one command is wrong or missing, the exit code is 1.

    The demo starts its own Kafka, in a container or embedded, whatever the settings say. Only `-b` makes it use another
    one. It removes its topics and group from there afterwards, and those of an earlier demo that was killed.

    Examples:

    * `evictstream demo`
    * `evictstream -b localhost:9092 demo --no-kill`
    * `evictstream demo --incident examples/incidents/manual-taints-no-evictor -o json`
    """
    from evictstream.kit.demo.recording import demo_incident, read_recording
    from evictstream.kit.demo.story import Options, tell
    from evictstream.streams.logs import configure_logging

    loaded = global_options(context).loaded
    settings = loaded.settings
    if settings.log_level == "info":  # the story itself reports what the libraries do
        configure_logging(settings.model_copy(update={"log_level": "warning"}))
    recording = read_recording(demo_incident() if incident is None else incident)
    for number in STOP_SIGNALS:
        signal.signal(number, _ask_to_stop)
    out = sys.stderr if output is OutputFormat.JSON else sys.stdout  # which else is for a program
    if settings.bootstrap_servers is not None and loaded.origins["bootstrap_servers"] != "flag":
        servers = settings.bootstrap_servers  # those of a shell or a file are for the service, perhaps production's
        print(
            f"the demo does not use the configured Kafka at {servers}; `evictstream -b {servers} demo` does", file=out
        )
        settings = settings.model_copy(update={"bootstrap_servers": None})
    try:
        summary = tell(recording, settings, Options(speed=speed, kill=not no_kill), out)
    except _StopRequested as stop:
        say("stopped, with everything that the demo had started", err=True)
        raise typer.Exit(STOPPED_BY + stop.number) from None
    if output is OutputFormat.JSON:
        print_json(summary.as_json())
    else:
        for line in ["", *summary.lines()]:
            say(line)
    return ExitCode.FOUND_PROBLEM if summary.problems else ExitCode.DONE


def _ask_to_stop(number: int, _frame: FrameType | None) -> None:
    for each in STOP_SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # once is enough; a second one must not interrupt the cleaning up
    raise _StopRequested(number)
