"""`evictstream demo`: a recorded incident, two workers, and one of them killed."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import say
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


def next_steps() -> Iterator[str]:
    """Say how to go on, and where the program is if the shell does not find it."""
    folder = Path(sys.executable).parent
    if shutil.which("evictstream") is None and (folder / "evictstream").exists():
        yield f'to type `evictstream` in this shell: export PATH="{folder}:$PATH"'
    yield "next: `evictstream broker` starts a Kafka for trying out; `evictstream --help` lists all commands"


@app.command()
def demo(
    context: typer.Context,
    incident: Annotated[
        Path | None,
        typer.Option(help="Folder of a recorded incident. Default: a zone outage.", metavar="FOLDER"),
    ] = None,
    no_kill: Annotated[bool, typer.Option("--no-kill", help="Do not kill a worker.")] = False,
) -> int:
    """Play a recorded outage to two workers, kill one of them halfway, and check every command.

    The incident was recorded on a real Kubernetes control plane: a zone goes down, and part of it returns. Its times
    are moved to now; it takes about 90 s. All its pods are in one cluster, so one worker decides about all of them. It
    is killed while many deadlines are pending, and the other one takes over. A small stand-in plays executor and
    cluster. An oracle that shares no code with the workers computes what they should have done.

    The demo starts its own Kafka, in a container or embedded, whatever the settings say. Only `-b` makes it use another
    one. It removes its topics and group from there afterwards.

    Exits with 0; with 1 if one command was wrong or missing; with 130 or 143 if stopped by Ctrl-C or SIGTERM.

    Examples:

    * `evictstream demo`
    * `evictstream -b localhost:9092 demo --no-kill`
    * `evictstream demo --incident examples/incidents/manual-taints-no-evictor`
    """
    from evictstream.kit.demo.story import demo_incident, tell
    from evictstream.streams.logs import configure_logging

    began = time.monotonic()
    loaded = global_options(context).loaded
    settings = loaded.settings
    if settings.log_level == "info":  # the demo itself says what the libraries do
        configure_logging(settings.model_copy(update={"log_level": "warning"}))
    if settings.bootstrap_servers is not None and loaded.origins["bootstrap_servers"] != "flag":
        servers = settings.bootstrap_servers  # those of a shell or a file are for the service, perhaps production's
        say(f"the demo does not use the configured Kafka at {servers}; `evictstream -b {servers} demo` does")
        settings = settings.model_copy(update={"bootstrap_servers": None})
    problems: list[str] = []
    story = tell(settings, incident or demo_incident(), problems, kills=not no_kill)
    with StopSignals() as stop_signals, contextlib.closing(story):
        for line in stop_signals.interruptible(story):
            say(f"{time.monotonic() - began:5.1f} s  {line}")
    if stop_signals.exit_code is None and not problems:
        for line in next_steps():
            say(line)
    if stop_signals.exit_code is not None:
        say("stopped; everything that was started has been stopped too", err=True)
        return stop_signals.exit_code
    return ExitCode.FOUND_PROBLEM if problems else ExitCode.DONE
