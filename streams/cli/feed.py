"""`evictstream feed`: nodes and pods of live clusters, into the topics."""

from __future__ import annotations

from typing import Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.service_imports import service_imports
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, WrongUseError

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def feed(  # noqa: PLR0917 - typer reads options from positional parameters
    context: typer.Context,
    clusters: Annotated[
        list[str],
        typer.Option(
            "--cluster",
            help="Name of the cluster on the topics, and its kubeconfig context if that differs.",
            metavar="NAME[=CONTEXT]",
        ),
    ],
    kubeconfig: Annotated[
        str | None,
        typer.Option(help="Default: KUBECONFIG, ~/.kube/config, or the pod's service account.", metavar="FILE"),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Keep complete objects, including environment variables; ten times the space."),
    ] = False,
    new_epoch: Annotated[
        bool, typer.Option("--new-epoch", help="This cluster replaces another one with the same name.")
    ] = False,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="Label of each of these clusters, for readers of the fleet; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    profiles: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            help="ClusterProfile that labels a cluster too, in a hub cluster; repeatable, one for each cluster.",
            metavar="[CLUSTER=]NAMESPACE/NAME",
        ),
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option(help="Context of the hub with these profiles. Default: the current one.", metavar="CONTEXT"),
    ] = None,
    hub_kubeconfig: Annotated[
        str | None, typer.Option(help="Kubeconfig of the hub. Default: that of the clusters.", metavar="FILE")
    ] = None,
) -> ExitCode:
    """Watch the nodes and pods of clusters and write them to the topics, until stopped.

    Lists all nodes and pods, then watches them; lists again if the API server cannot resume a watch. Objects are
    trimmed to the fields in use. Each listing also states which objects exist, so vanished ones are removed. Heartbeats
    are sent while nothing can have been missed; without them, evictions of that cluster wait.

    A second feed for the same cluster is a standby: Kafka decides which one writes. A name that belongs to another
    cluster is refused. If resource versions go back (the cluster was rebuilt, or its etcd restored), the feed starts a
    new epoch.

    Needs `list` and `watch` on nodes and pods, and `get` on the namespace kube-system. If Kafka or an API server is
    unavailable, the feed waits. After SIGTERM it writes what it has read and exits with 0.

    Examples:

    * `evictstream feed --cluster prod-eu-1` with the current context
    * `evictstream feed --cluster prod-eu-1=admin@eu --cluster prod-us-1=admin@us`
    * `evictstream feed --cluster prod-eu-1 --label tier=gold --label topology.example.com/site=fra`
    * `evictstream feed --cluster prod-eu-1 --profile fleet/prod-eu-1 --hub admin@hub`
    """
    with service_imports():
        from evictstream.streams.feed.cluster_labels import labels_of
        from evictstream.streams.feed.cluster_names import contexts_by_cluster
        from evictstream.streams.feed.cluster_profile import profiles_of
        from evictstream.streams.feed.fleet import feed_clusters
        from evictstream.streams.kubernetes.access import ClusterAccess

    accesses = {
        name: ClusterAccess(kubeconfig=kubeconfig, context=chosen)
        for name, chosen in contexts_by_cluster(clusters).items()
    }
    places = profiles_of(profiles or (), accesses)
    if not places and (hub or hub_kubeconfig):
        raise WrongUseError("a hub is given, and no profile in it", next_step="add --profile NAMESPACE/NAME")
    with StopSignals() as stop_signals:
        feed_clusters(
            accesses,
            settings=global_options(context).settings_of_service(),
            keep_whole=whole,
            new_epoch=new_epoch,
            labels=labels_of(labels or ()),
            profiles=places,
            hub=ClusterAccess(kubeconfig=hub_kubeconfig or kubeconfig, context=hub),
            is_stopped=stop_signals.is_stopped,
        )
    return ExitCode.DONE
