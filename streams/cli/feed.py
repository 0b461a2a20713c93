"""`evictstream feed`: nodes and pods of live clusters, into the topics."""

from __future__ import annotations

from typing import Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def feed(
    context: typer.Context,
    clusters: Annotated[
        list[str],
        typer.Option(
            "--cluster",
            help="What the cluster is called on the topics, and its context in the kubeconfig if that is another one.",
            metavar="NAME[=CONTEXT]",
        ),
    ],
    kubeconfig: Annotated[
        str | None,
        typer.Option(help="Default: KUBECONFIG, ~/.kube/config, or the pod's service account.", metavar="FILE"),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Keep objects whole, values of environment variables too; ten times the space."),
    ] = False,
    new_epoch: Annotated[
        bool, typer.Option("--new-epoch", help="This cluster takes the place of another one that had its name.")
    ] = False,
) -> ExitCode:
    """Follow the nodes and pods of clusters into the topics, until stopped.

    Lists all nodes and pods, then watches them; lists again where the API server cannot resume a watch. Objects are
    trimmed to the fields in use. Each listing also says what exists, so what vanished meanwhile ends. Heartbeats go out
    while nothing can have been missed; without them evictions of that cluster wait.

    Start a second one for a cluster and it stands by: Kafka decides which one writes. A name that belongs to another
    cluster is refused. When resource versions go back (a cluster was rebuilt, or its etcd restored) a new epoch begins
    by itself.

    Needs `list` and `watch` on nodes and pods, and `get` on the namespace kube-system. While Kafka or an API server
    does not answer it waits. SIGTERM writes what was read and exits with 0.

    Examples:

    * `evictstream feed --cluster prod-eu-1` with the current context
    * `evictstream feed --cluster prod-eu-1=admin@eu --cluster prod-us-1=admin@us`
    """
    from evictstream.streams.feed.cluster_names import contexts_by_cluster
    from evictstream.streams.feed.fleet import feed_clusters
    from evictstream.streams.kubernetes.access import ClusterAccess

    accesses = {
        name: ClusterAccess(kubeconfig=kubeconfig, context=chosen)
        for name, chosen in contexts_by_cluster(clusters).items()
    }
    with StopSignals() as stop_signals:
        feed_clusters(
            accesses,
            settings=global_options(context).settings,
            keep_whole=whole,
            new_epoch=new_epoch,
            is_stopped=stop_signals.is_stopped,
        )
    return ExitCode.DONE
