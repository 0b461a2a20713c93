"""`evictstream accept-gap`: resumes evictions although input expired before it was read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.confirmation import DECLINED, YesOption, is_confirmed
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.known_clusters import NAMES_LISTED, read_with_progress
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from evictstream.streams.cli.known_clusters import GapJson

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def accept_gap(
    context: typer.Context,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this one; may be given several times. Else all.", metavar="NAME", parser=check_cluster_name
        ),
    ] = None,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Let evictions go on although input expired before it was read.

    They wait because the lost input may have removed a taint or a pod. The safer way is to let feeds list: the wait of
    a partition ends when each of its clusters has been listed again, or accepted here. The gaps are shown before you
    are asked. Where no cluster waits, nothing is sent, and the exit code is 1.

    Examples:

    * `evictstream accept-gap`
    * `evictstream accept-gap --cluster prod-eu-1 --cluster prod-eu-2 --yes`
    """
    from evictstream.streams.feed.operator_signals import accept_gap as accept
    from evictstream.streams.feed.publisher import open_publisher

    settings = global_options(context).settings
    is_json = output is OutputFormat.JSON
    with open_publisher(settings) as publisher:
        gaps = read_with_progress(settings, publisher.partitions).gaps()
        waiting = {name for gap in gaps.values() for name in gap["unlisted"]}
        chosen = sorted(waiting if cluster is None else waiting & set(cluster))
        sent: dict[str, object] = {"type": "ACCEPT_GAP", "topic": settings.nodes_topic, "gaps": list(gaps.values())}
        if not chosen:
            if is_json:
                print_json(sent | {"clusters": []})
            warn(f"{_no_gap(cluster, waiting)}; nothing was sent")
            return ExitCode.FOUND_PROBLEM
        if not is_json:
            for gap in gaps.values():
                say(_sentence(gap), err=True)
        question = (
            f"Let evictions of {_listed(chosen)} go on at {settings.bootstrap_servers}, though changes that would"
            " cancel some of them may have been lost?"
        )
        if not is_confirmed(question, yes):
            return DECLINED
        accept(publisher, settings.nodes_topic, chosen)
    if is_json:
        print_json(sent | {"clusters": chosen})
    else:
        say(f"accepted the gap of {_listed(chosen)}")
    return ExitCode.DONE


def _sentence(gap: GapJson) -> str:
    lost = ", ".join(f"{count} records of {topic}" for topic, count in gap["lost"].items())
    unlisted = [f"{cluster} ({' and '.join(topics)})" for cluster, topics in gap["unlisted"].items()]
    return (
        f"partition {gap['partition']}: {lost} were lost, found at {gap['foundAt']}; not listed again since:"
        f" {_listed(unlisted)}"
    )


def _no_gap(asked: Sequence[str] | None, waiting: Collection[str]) -> str:
    if asked is not None and waiting:
        return f"no gap to accept in {_listed(sorted(asked))}; there is one in {_listed(sorted(waiting))}"
    return "there is no gap; workers detect gaps when they take a partition over"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_LISTED} more" if len(names) > NAMES_LISTED else ""
    return ", ".join(names[:NAMES_LISTED]) + more
