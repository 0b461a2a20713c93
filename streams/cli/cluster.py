"""`evictstream cluster forget`: a cluster that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.confirmation import DECLINED, YesOption, is_confirmed, refuse_if_nobody_answers
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
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the cluster, as in the keys of its records.", metavar="NAME", parser=check_cluster_name
        ),
    ],
    yes: YesOption = False,
    wait: Annotated[
        float,
        typer.Option(
            help="How long to wait until all partitions have read the order; 0: do not wait.", min=0, metavar="SECONDS"
        ),
    ] = 60.0,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Remove a cluster from the service: cancel its evictions, forget its nodes and pods.

    Stop its feed first: records that arrive afterwards count again. What is known of the cluster is shown before you
    are asked. If nothing is known, nothing is sent, and the exit code is 1. The order goes to all partitions of nodes.

    A feed may send the cluster again only after all partitions have read the order. Pods come from another topic, and
    those read before the order would be forgotten too. Exit code 1 means that some partitions have not read it yet.

    Examples:

    * `evictstream cluster forget prod-eu-1`
    * `evictstream cluster forget prod-eu-1 --yes -o json`
    * `evictstream cluster forget prod-eu-1 --wait 0`, if no worker runs and no feed comes back
    """
    from evictstream.streams.broker.group_progress import wait_until_read
    from evictstream.streams.feed.operator_signals import forget_cluster
    from evictstream.streams.feed.publisher import open_publisher

    refuse_if_nobody_answers(yes)
    settings = global_options(context).settings
    is_json = output is OutputFormat.JSON
    found: dict[str, object] = {"type": "FORGET", "cluster": name, "topic": settings.nodes_topic}
    with open_publisher(settings) as publisher:
        known = read_with_progress(settings, publisher.partitions)
        found |= known.of_cluster(name)
        if not known.is_known(name):
            return _unknown(settings, known, name, found if is_json else None)
        if not is_json:
            say(known.sentence(name), err=True)
        question = f"Cancel all evictions of {name} and forget its nodes and pods, at {settings.bootstrap_servers}?"
        if not is_confirmed(question, yes):
            return DECLINED
        partitions = forget_cluster(publisher, settings.nodes_topic, name)
    if not is_json:
        say(f"sent the order to forget {name} to all {len(partitions)} partitions of {settings.nodes_topic}")
    found["partitions"] = partitions
    unread = None
    try:
        if wait:
            found["unread"] = unread = wait_until_read(settings, settings.nodes_topic, partitions, wait)
    finally:  # the partitions have the signal, however the wait ends
        if is_json:
            print_json(found)
    if unread == () and not is_json:
        say("all partitions have read it: a feed may send that cluster again")
    if unread:
        numbers = ", ".join(map(str, unread))
        say(
            f"not read within {wait:g} s by partitions {numbers}: do not feed {name} again before that; repeat this"
            " command to send and wait again",
            err=True,
        )
        return ExitCode.FOUND_PROBLEM
    return ExitCode.DONE


def _unknown(settings: Settings, known: KnownClusters, name: str, found: dict[str, object] | None) -> ExitCode:
    """Report that nothing was sent, and which cluster may have been meant."""
    from evictstream.streams.broker.group_progress import wait_until_read

    unread = {
        topic: numbers
        for topic in (settings.nodes_topic, settings.pods_topic)
        if (numbers := wait_until_read(settings, topic, known.partitions, UNREAD_SECONDS))
    }
    if found is not None:
        print_json(found | {"partitions": [], "clusters": known.names, "unreadInputs": unread})
    for line in known.nothing_known(name):
        warn(line)
    for topic, numbers in unread.items():
        which = ", ".join(map(str, numbers))
        warn(f"workers have not read all of {topic} yet (partitions {which}), so it may be there: wait, then try again")
    return ExitCode.FOUND_PROBLEM
