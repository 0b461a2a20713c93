"""`evictstream accept-gap`: input expired before it was read, and an operator says that evictions may go on."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.confirming import DECLINED, YesOption, is_confirmed, refuse_if_nobody_answers
from streams.cli.invocation import invocation
from streams.cli.output import OutputFormat, OutputOption, print_json
from streams.errors import ExitCode

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def accept_gap(
    context: typer.Context,
    partition: Annotated[
        list[int] | None,
        typer.Option(help="Only this one; may be given several times. Else all.", min=0, metavar="N"),
    ] = None,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Let evictions go on in partitions whose input expired before it was read.

    They wait there because a taint may be gone, or a pod, that nobody told of. They also go on by themselves once the
    feed of each cluster has listed it again, which is the safer way. Partitions without a gap take no notice.

    Examples:

    * `evictstream accept-gap`
    * `evictstream accept-gap --partition 3 --partition 5 --yes`
    """
    from streams.feed.orders import accept_gap as accept
    from streams.feed.publisher import open_publisher

    refuse_if_nobody_answers(yes)
    settings = invocation(context).settings
    with open_publisher(settings) as publisher:
        which = "all partitions" if not partition else f"partition {', '.join(map(str, sorted(set(partition))))}"
        question = (
            f"Let evictions go on in {which} of {settings.nodes_topic} at {settings.bootstrap_servers}, though changes"
            " that would cancel some of them may have been lost?"
        )
        if not is_confirmed(question, yes):
            return DECLINED
        partitions = accept(publisher, settings.nodes_topic, partition or ())
    if output is OutputFormat.JSON:
        print_json({"type": "ACCEPT_GAP", "topic": settings.nodes_topic, "partitions": partitions})
    else:
        numbers = ", ".join(map(str, partitions))
        typer.echo(f"told {len(partitions)} partitions of {settings.nodes_topic} to accept their gap: {numbers}")
    return ExitCode.DONE
