"""`evictstream broker`: an embedded Kafka in the foreground."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say

_POLL_SECONDS = 0.5
"""Between two checks whether Kafka has ended by itself."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)


class _StopRequested(BaseException):
    """A signal asks the command to end; not an `Exception`, so that no handler on the way catches it."""


@app.command()
def broker(
    context: typer.Context,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Keep data in this folder, and continue with existing data. Default: a temporary folder.",
            metavar="FOLDER",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port for clients. Default: a free one.", min=1, max=65_535, metavar="PORT"),
    ] = None,
    nodes: Annotated[
        int, typer.Option(help="Number of brokers; with three, leaders can move.", min=1, max=5, metavar="NUMBER")
    ] = 1,
    heap_megabytes: Annotated[
        int, typer.Option(help="Java heap of each node.", min=256, max=65_536, metavar="MEGABYTES")
    ] = 512,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Run an embedded Kafka on loopback until Ctrl-C or SIGTERM; for trying out, not for production.

    The first start downloads 46 MB from Maven Central, or from the mirror that EVICTSTREAM_KAFKA_REPOSITORY names. With
    `-o json`, one line is printed on stdout when Kafka is ready.

    Examples:

    * `evictstream broker`
    * `evictstream broker --data ./kafka --port 9092`
    """
    from evictstream.streams.broker.embedded import EmbeddedBroker
    from evictstream.streams.broker.jars import kafka_classpath

    settings = global_options(context).settings
    for number in _STOP_SIGNALS:
        signal.signal(number, _ask_to_stop)
    try:
        if output is OutputFormat.TEXT:
            say("Kafka starts; that takes seconds, and minutes where it has to be downloaded", err=True)
        kafka_classpath(settings.kafka_repository)  # downloads what is missing
        with EmbeddedBroker(data=data, port=port, nodes=nodes, heap_megabytes=heap_megabytes) as kafka:
            if output is OutputFormat.JSON:
                print_json({"bootstrapServers": kafka.bootstrap_servers, "description": kafka.description})
            else:
                say(f"{kafka.description}, is ready. Stop it with Ctrl-C. In another terminal:")
                say(f"export EVICTSTREAM_BOOTSTRAP_SERVERS={kafka.bootstrap_servers}")
            while True:
                kafka.raise_if_ended()
                time.sleep(_POLL_SECONDS)
    except _StopRequested:
        return


def _ask_to_stop(_number: int, _frame: FrameType | None) -> None:
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise _StopRequested
