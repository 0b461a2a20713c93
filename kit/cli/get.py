"""`evictstream get`: what is pending, on which nodes, in which clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from evictstream.kit.cli.seeing import ClusterOption, View, present_us, see
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter
from evictstream.streams.cli.output import warn
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.cli.topic_times import read_start
from evictstream.streams.errors import ExitCode, WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.see.clusters import ListedCluster
    from evictstream.kit.see.evictions import ListedEviction
    from evictstream.kit.see.nodes import ListedNode
    from evictstream.kit.see.stored_state import StoredState

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

SelectorOption = Annotated[
    str, typer.Option("--selector", "-l", help="Only nodes with these labels, as in kubectl.", metavar="LABELS")
]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Then print what changes, until stopped.")]


@app.callback()
def get() -> None:
    """Show what a running service knows: evictions, nodes, clusters, dead letters.

    It reads the topics alone: no worker has to answer.
    """


@app.command()
def evictions(
    context: typer.Context,
    *,
    cluster: ClusterOption = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only pods of this namespace.", metavar="NAME")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces: the default.")
    ] = False,
    node: Annotated[str | None, typer.Option(help="Only pods on this node.", metavar="NAME")] = None,
    selector: SelectorOption = "",
    since: Annotated[
        str | None, typer.Option(help="Also evictions that ended since then: 5m, 2h, or a time.", metavar="WHEN")
    ] = None,
    watch: WatchOption = False,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show the evictions that are pending, the first to be done first.

    `IN` is the time left; with a minus, the pod has to leave since then. `GATE/RESULT` is the closed gate that holds an
    eviction back, or the last result of an executor. `held ID`: a brake or policy holds it. `worker`: it is due and no
    gate is known, so a worker has closed one of its own, or none runs. `unanswered`: no executor has answered.
    `queued`: it waits in an executor's queue.

    Labels are those of nodes. They come from the nodes topic, so `-l` takes longer.

    Examples:

    * `evictstream get evictions`
    * `evictstream get evictions -n shop --watch`
    * `evictstream get evictions --cluster prod-eu-1 -l pool=spot -o wide`
    * `evictstream get evictions --since 5m -o json`
    """
    from evictstream.kit.cli.known_steering import known_steering
    from evictstream.kit.cli.see_tables import evictions_kind
    from evictstream.kit.see.evictions import SeenState, pending_evictions
    from evictstream.kit.see.names import check_known
    from evictstream.kit.see.past import read_ended, read_labelled

    if namespace is not None and all_namespaces:
        raise WrongUseError("--namespace and --all-namespaces exclude one another", next_step="give one of them")
    settings = global_options(context).settings
    begin = None if since is None else read_start(since, option="--since")
    labelled = read_labelled(settings, selector, cluster) if selector else None
    ended = [] if begin is None else read_ended(settings, begin)

    def view_of(state: StoredState) -> View[ListedEviction]:
        selected = _named(state, labelled)

        def is_asked(one: ListedEviction) -> bool:
            return (
                cluster in (None, one.cluster)
                and namespace in (None, one.namespace)
                and node in (None, one.node)
                and (selected is None or (one.cluster, one.node) in selected)
            )

        nodes = [each.aggregate for each in state.nodes() if cluster in (None, each.aggregate.cluster)]
        check_known("node", node, (each.name for each in nodes))
        addresses = (pod.address for each in nodes for pod in each.pods.values())
        check_known("namespace", namespace, (address.partition("/")[0] for address in addresses))
        return View(
            kind=evictions_kind(present_us, shows_cluster=cluster is None and len(state.cluster_names()) > 1),
            plural="evictions are pending",
            items=lambda state, at_us, silences: filter(
                is_asked, pending_evictions(state, at_us, silences, steering())
            ),
            key=lambda one: one.eviction_id,
            same=lambda one: one,
            ended=lambda one: msgspec.structs.replace(one, state=SeenState.ENDED),
            before=filter(is_asked, ended),
        )

    with known_steering(settings) as steering:
        return see(settings, cluster, view_of, output=output, is_watched=watch)


@app.command()
def nodes(
    context: typer.Context,
    cluster: ClusterOption = None,
    selector: SelectorOption = "",
    watch: WatchOption = False,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show nodes with their `NoExecute` taints, their pods, and the evictions that are pending there.

    Other taints are not shown: they evict nobody. A node without a UID (`-o wide`) is known by its pods alone.

    Examples:

    * `evictstream get nodes --cluster prod-eu-1`
    * `evictstream get nodes -l topology.kubernetes.io/zone=z-a --watch`
    """
    from evictstream.kit.cli.see_tables import nodes_kind
    from evictstream.kit.see.nodes import listed_nodes
    from evictstream.kit.see.past import read_labelled

    settings = global_options(context).settings
    labelled = read_labelled(settings, selector, cluster) if selector else None

    def view_of(state: StoredState) -> View[ListedNode]:
        selected = _named(state, labelled)

        def is_asked(one: ListedNode) -> bool:
            return cluster in (None, one.cluster) and (selected is None or (one.cluster, one.node) in selected)

        return View(
            kind=nodes_kind(present_us, shows_cluster=cluster is None and len(state.cluster_names()) > 1),
            plural="nodes are known",
            items=lambda state, at_us, silences: filter(is_asked, listed_nodes(state, at_us, silences)),
            key=lambda one: f"{one.cluster}/{one.node}",
            same=lambda one: one,
            ended=lambda one: msgspec.structs.replace(one, uid=None, taints=(), pods=0, pending=0, next_at=None),
        )

    return see(settings, cluster, view_of, output=output, is_watched=watch)


def _named(state: StoredState, uids: set[tuple[str, str]] | None) -> set[tuple[str, str]] | None:
    """Turn pairs of cluster and UID of nodes into pairs of cluster and name; None stays None, which is all."""
    if uids is None:
        return None
    nodes = [each.aggregate for each in state.nodes()]
    return {(one.cluster, one.name) for one in nodes if one.node is not None and (one.cluster, one.node.uid) in uids}


@app.command()
def clusters(
    context: typer.Context,
    watch: WatchOption = False,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show clusters: what they hold, what is pending, and whether their feed is heard.

    `DUE` are pods that have to leave now, issued or not. `UNANSWERED` are evictions that no executor has answered: if
    the number stays, none runs. `GATE` is the closed gate that holds evictions back.

    Examples:

    * `evictstream get clusters`
    * `evictstream get clusters -o json`
    """
    from evictstream.kit.cli.see_tables import clusters_kind
    from evictstream.kit.see.clusters import listed_clusters

    def view_of(_: StoredState) -> View[ListedCluster]:
        return View(
            kind=clusters_kind(present_us),
            plural="clusters are known",
            items=listed_clusters,
            key=lambda one: one.cluster,
            same=lambda one: msgspec.structs.replace(one, heard_at=None, queue_reported_at=None),
            ended=lambda one: msgspec.structs.replace(one, nodes=0, pods=0, pending=0, due=0, unanswered=0),
        )

    return see(global_options(context).settings, None, view_of, output=output, is_watched=watch)


@app.command("dead-letters")
def dead_letters(
    context: typer.Context,
    cluster: ClusterOption = None,
    since: Annotated[str, typer.Option(help="Only those since then: 5m, 2h, or a time.", metavar="WHEN")] = "beginning",
    watch: WatchOption = False,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show records that could not be used, the oldest first, with the reason.

    `FROM` is where such a record came from: `evictstream dead-letters show` and `resend` take it.

    Examples:

    * `evictstream get dead-letters --since 1h`
    * `evictstream get dead-letters --watch -o json`
    """
    from evictstream.kit.cli.see_tables import dead_letters_kind
    from evictstream.streams.broker.follow import follow
    from evictstream.streams.cli.dead_letter_list import dead_letter_of, read_dead_letters

    settings = global_options(context).settings
    begin = read_start(since, option="--since")
    printer = ListPrinter(dead_letters_kind(present_us), output)
    if not watch:
        seen = [letter.seen for letter in read_dead_letters(settings, begin) if cluster in (None, letter.seen.key)]
        if not seen and output in (ListFormat.TABLE, ListFormat.WIDE):
            warn("no dead letters")
        else:
            printer.whole(sorted(seen, key=lambda one: one.at))
        return ExitCode.DONE
    with (
        StopSignals() as stop_signals,
        follow(settings, settings.dead_letters_topic, begin, is_stopped=stop_signals.is_stopped) as batches,
    ):
        printer.begin_watch([])
        for batch in batches:
            for letter in filter(None, (dead_letter_of(settings, record) for record in batch)):
                if cluster in (None, letter.seen.key):
                    printer.change("ADDED", letter.seen)
    return ExitCode.DONE
