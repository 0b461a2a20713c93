"""`evictstream cluster forget`: a cluster that is gone."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.confirming import DECLINED, YesOption, is_confirmed, refuse_if_nobody_answers
from streams.cli.invocation import invocation
from streams.cli.output import OutputFormat, OutputOption, print_json
from streams.errors import ExitCode

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.callback()
def cluster() -> None:
    """Tell the service about a whole cluster."""


@app.command()
def forget(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="As it stands in the keys.", metavar="NAME")],
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Take a cluster that is gone out of the service: its evictions are cancelled, its nodes and pods forgotten.

    Stop its feed first: what arrives afterwards counts again. Each partition of the nodes topic is told. Doing it twice
    does no harm.

    Examples:

    * `evictstream cluster forget prod-eu-1`
    * `evictstream cluster forget prod-eu-1 --yes -o json`
    """
    from streams.feed.orders import check_cluster_name, forget_cluster
    from streams.feed.publisher import open_publisher

    check_cluster_name(name)
    refuse_if_nobody_answers(yes)
    settings = invocation(context).settings
    with open_publisher(settings) as publisher:
        question = f"Cancel all evictions of {name} and forget its nodes and pods, at {settings.bootstrap_servers}?"
        if not is_confirmed(question, yes):
            return DECLINED
        partitions = forget_cluster(publisher, settings.nodes_topic, name)
    if output is OutputFormat.JSON:
        print_json({"type": "FORGET", "cluster": name, "topic": settings.nodes_topic, "partitions": partitions})
    else:
        typer.echo(f"told all {len(partitions)} partitions of {settings.nodes_topic} to forget {name}")
    return ExitCode.DONE
