"""`evictstream cluster forget`: a cluster that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.confirmation import DECLINED, YesOption, is_confirmed
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.known_clusters import read_with_progress
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from evictstream.streams.cli.known_clusters import KnownClusters
    from evictstream.streams.settings import Settings

UNREAD_SECONDS = 1.0
"""How long workers may take to read the inputs to their ends, before a cluster counts as unknown to them."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.callback()
def cluster() -> None:
    """Commands about a whole cluster."""


@app.command()
def forget(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The key of its records.", metavar="NAME", parser=check_cluster_name)],
    yes: YesOption = False,
    wait: Annotated[
        float,
        typer.Option(
            help="How long to wait until a worker has read the signal; 0: do not wait.", min=0, metavar="SECONDS"
        ),
    ] = 60.0,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Remove a cluster from the service: cancel its evictions, forget its nodes and pods.

    Stop its feed first: what arrives afterwards counts again. The nodes, pods and open evictions of the cluster are
    shown before you are asked; where there are none, nothing is sent, and the exit code is 1.

    A feed may send the cluster again only after a worker has read the signal: pods are read from another topic, and
    those that were read before it would be forgotten too. Exit code 1 says that no worker has read it yet.

    Examples:

    * `evictstream cluster forget prod-eu-1`
    * `evictstream cluster forget prod-eu-1 --yes -o json`
    * `evictstream cluster forget prod-eu-1 --wait 0`, if no worker runs and no feed comes back
    """
    from evictstream.streams.broker.group_progress import wait_until_read
    from evictstream.streams.feed.operator_signals import forget_cluster
    from evictstream.streams.feed.publisher import open_publisher
    from evictstream.streams.partitioner import partition_of

    settings = global_options(context).settings
    is_json = output is OutputFormat.JSON
    summary: dict[str, object] = {"type": "FORGET", "cluster": name, "topic": settings.nodes_topic}
    with open_publisher(settings) as publisher:
        clusters = read_with_progress(settings, publisher.partitions)
        summary |= clusters.of_cluster(name)
        if not clusters.is_known(name):
            return _unknown(settings, clusters, name, len(publisher.partitions), summary if is_json else None)
        if not is_json:
            say(clusters.sentence(name), err=True)
        question = f"Cancel all evictions of {name} and forget its nodes and pods, at {settings.bootstrap_servers}?"
        if not is_confirmed(question, yes):
            return DECLINED
        forget_cluster(publisher, settings.nodes_topic, name)
        partition = partition_of(name.encode(), len(publisher.partitions))
    if not is_json:
        say(f"wrote the signal to forget {name}")
    is_read = None
    try:
        if wait:
            is_read = not wait_until_read(settings, settings.nodes_topic, (partition,), wait)
    finally:  # the signal is written, however the wait ends
        if is_json:
            print_json(summary | {"partition": partition, "isRead": is_read})
    if is_read and not is_json:
        say("a worker has read it: a feed may send that cluster again")
    if is_read is False:
        say(
            f"no worker has read it within {wait:g} s: do not feed {name} again before; this command, given again,"
            " waits again",
            err=True,
        )
        return ExitCode.FOUND_PROBLEM
    return ExitCode.DONE


def _unknown(
    settings: Settings, clusters: KnownClusters, name: str, partitions: int, summary: dict[str, object] | None
) -> ExitCode:
    """Report that nothing was sent, and which cluster may have been meant."""
    from evictstream.streams.broker.group_progress import wait_until_read
    from evictstream.streams.partitioner import partition_of

    place = (partition_of(name.encode(), partitions),)
    unread = [
        topic
        for topic in (settings.nodes_topic, settings.pods_topic)
        if wait_until_read(settings, topic, place, UNREAD_SECONDS)
    ]
    if summary is not None:
        print_json(summary | {"partition": None, "isRead": None, "clusters": clusters.names, "unreadInputs": unread})
    for line in clusters.nothing_known(name):
        warn(line)
    for topic in unread:
        warn(f"workers have not read all of {topic} yet, where it may stand: let them, and ask again")
    return ExitCode.FOUND_PROBLEM
