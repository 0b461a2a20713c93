"""`evictstream what-if`: who would leave if nodes were tainted, untainted or cordoned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.incomplete import AllowOption, refused, tell_shortfalls
from evictstream.kit.cli.manager_flags import (
    ApiBurst,
    ApiQps,
    EvictionRate,
    FeatureGates,
    GracePeriod,
    LargeSize,
    ManagerFlags,
    MonitorPeriod,
    SecondaryRate,
    UnhealthyShare,
)
from evictstream.kit.cli.replay_input import open_inputs
from evictstream.kit.cli.tried_policies import PolicyOption, tried_policies
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, warn
from evictstream.streams.cli.progress import ProgressLine, with_progress
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import FoundProblemError, WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.kit.recordings.shortfalls import Shortfall
    from evictstream.kit.replay.cluster_tables import ClusterTables
    from evictstream.kit.replay.sources import RecordedFolder, WatchFiles
    from evictstream.kit.rules.kubectl import TaintChanges
    from evictstream.kit.what_if.change import NodeChoice, PlannedChange
    from evictstream.kit.what_if.preview import PreviewCluster
    from evictstream.streams.settings import Settings

_NAMES_LISTED = 10
"""Most names that an error lists."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def what_if(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Anything that `evictstream replay` reads. Default: the running service.", metavar="[FILE]..."
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Name of the cluster; optional if there is only one.", metavar="NAME", parser=check_cluster_name
        ),
    ] = None,
    taint: Annotated[
        list[str] | None,
        typer.Option(help="Add a taint, like `kubectl taint --overwrite`; repeatable.", metavar="KEY[=VALUE]:EFFECT"),
    ] = None,
    remove_taint: Annotated[
        list[str] | None,
        typer.Option(help="Remove a taint, like `kubectl taint`; repeatable.", metavar="KEY[:EFFECT]"),
    ] = None,
    cordon: Annotated[bool, typer.Option("--cordon", help="Cordon, like `kubectl cordon`.")] = False,
    toleration_seconds: Annotated[
        list[str] | None,
        typer.Option(
            help="Replace `tolerationSeconds` in all tolerations of a key that have one; repeatable.",
            metavar="KEY=SECONDS",
        ),
    ] = None,
    nodes: Annotated[
        list[str] | None, typer.Option(help="Nodes by name, comma-separated or repeated.", metavar="NAMES")
    ] = None,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Nodes by label selector, as in kubectl.", metavar="LABELS")
    ] = "",
    zone: Annotated[str | None, typer.Option(help="Nodes of a zone.", metavar="ZONE")] = None,
    silent: Annotated[
        bool, typer.Option("--silent", help="Assume that these nodes stop sending heartbeats; gives ranges, see below.")
    ] = False,
    seconds: Annotated[
        int,
        typer.Option(
            "--for",
            help="With --silent: for this long. With --policy: look so far ahead.",
            min=1,
            max=86_400,
            metavar="SECONDS",
        ),
    ] = 900,
    policy: PolicyOption = None,
    node_monitor_period: MonitorPeriod = None,
    node_monitor_grace_period: GracePeriod = None,
    node_eviction_rate: EvictionRate = None,
    secondary_node_eviction_rate: SecondaryRate = None,
    large_cluster_size_threshold: LargeSize = None,
    unhealthy_zone_threshold: UnhealthyShare = None,
    kube_api_qps: ApiQps = None,
    kube_api_burst: ApiBurst = None,
    feature_gates: FeatureGates = None,
    at: Annotated[
        str | None, typer.Option(help="Time of the change. Default: the newest record, or now.", metavar="WHEN")
    ] = None,
    allow: AllowOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Show which pods would leave if nodes were tainted, and when; which would stay, and why; which have nowhere to go.

    Without a change it shows which pods leave as it is now, and where they could go. `evictstream get evictions` lists
    them sooner, with what is being done.

    Nothing is changed. The state of the cluster comes from a recording, at its end or at `--at`. Without a file it
    comes from the running service, including its current windows and deadlines. The change applies to nodes that match
    all of `--nodes`, `--selector` and `--zone`.

    Destinations are derived from taints, cordons, node selectors and required node affinity. Resources, spreading,
    volumes and affinity between pods are ignored.

    `--policy` also shows when the pods would be evicted under the policies of a file, together with the brakes and
    policies of the service, or of the recording, at that time. A file replaces what has the same name. Buckets begin
    empty.

    `--silent` shows what Kubernetes' own controllers would do: how many of the nodes get a taint, and how many of their
    pods leave. Zone protection depends on controller load, and the order of nodes is random, so both numbers are
    ranges. Flags of `kube-controller-manager` that are not given have the defaults of the release.

    Exits with 0; with 1 if the answer lacks something that `--allow` does not name, or no node is selected; with 130 or
    143 if stopped.

    Examples:

    * `evictstream what-if --cluster prod-eu-1`
    * `evictstream what-if --cluster prod-eu-1 --taint maintenance:NoExecute --nodes n-1,n-2`
    * `evictstream what-if outage --at 2026-11-21T02:15:00Z --remove-taint node.kubernetes.io/unreachable --zone z-a`
    * `evictstream what-if now.json --cluster lab --cordon -l pool=spot`, of `kubectl get nodes,pods -A -o json`
    * `evictstream what-if now.json --cluster lab --silent --zone z-a`
    * `evictstream what-if now.json --cluster lab --silent --zone z-a --node-monitor-grace-period 40s
      --node-eviction-rate 1`
    * `evictstream what-if --cluster prod-eu-1 --taint maintenance:NoExecute --zone z-a --policy pace.yaml`
    * `evictstream what-if incident.jsonl.gz --toleration-seconds node.kubernetes.io/unreachable=60`
    """
    from evictstream.kit.cli.what_if_silence import print_silence
    from evictstream.kit.cli.what_if_tables import print_preview, print_preview_json
    from evictstream.kit.replay.edited_records import read_seconds
    from evictstream.kit.replay.policy_preview import governed_preview
    from evictstream.kit.what_if.change import PlannedChange
    from evictstream.kit.what_if.preview import changed_nodes, preview
    from evictstream.kit.what_if.silent_nodes import preview_silence
    from evictstream.models.instants import SECOND_US
    from evictstream.streams.worker.service_config import cluster_rules

    change = PlannedChange(
        taints=_taint_changes(taint or [], remove_taint or []),
        cordon=cordon,
        toleration_seconds=read_seconds(toleration_seconds or ()),
    )
    choice = _choice(nodes or [], selector, zone)
    flags = ManagerFlags(
        {
            "--node-monitor-period": node_monitor_period,
            "--node-monitor-grace-period": node_monitor_grace_period,
            "--node-eviction-rate": node_eviction_rate,
            "--secondary-node-eviction-rate": secondary_node_eviction_rate,
            "--large-cluster-size-threshold": large_cluster_size_threshold,
            "--unhealthy-zone-threshold": unhealthy_zone_threshold,
            "--kube-api-qps": kube_api_qps,
            "--kube-api-burst": kube_api_burst,
            "--feature-gates": feature_gates,
        }
    )
    _check_asked(change, choice, flags, silent=silent, governs=bool(policy))
    _, policies = tried_policies(policy or ())
    controller, at_us = flags.read(), None if at is None else _instant(at)
    settings = global_options(context).settings
    with StopSignals() as stop_signals:
        if files:
            tables, source = _recorded(settings, files, cluster, at_us, stop_signals)
        else:
            tables, source = _live(settings, cluster, at_us, stop_signals), None
    if stop_signals.exit_code is not None:
        return stop_signals.exit_code
    exit_code = tell_shortfalls(_shortfalls(tables, source), allow)  # before what is missing makes an error
    name = _cluster_name(tables, cluster)
    if not files:
        _steer(settings, tables, name, is_played=bool(policy))
    cluster_state = tables.cluster(name)
    _check_names(cluster_state, choice)
    if silent:
        silence = preview_silence(cluster_state, choice, until_us=seconds * SECOND_US, **controller)
        if not silence.silent:
            raise _nothing_chosen(cluster_state, silence.unlabelled if selector else 0)
        print_silence(silence, name, seconds=seconds, flags=flags.given, output=output)
        return exit_code
    at_us, rules = tables.at_us if at_us is None else at_us, cluster_rules(settings).of(name)
    result = preview(cluster_state, change, choice, at_us=at_us, rules=rules)
    if not result.chosen:
        raise _nothing_chosen(cluster_state, result.unlabelled)
    governed = None
    if policy:
        changed = changed_nodes(cluster_state, change, choice, at_us=at_us, rules=rules)
        governed = governed_preview(settings, changed, tables.steering.given(policies), at_us=at_us, seconds=seconds)
    unreadable = tables.unreadable + (0 if source is None else source.unreadable)
    if output is OutputFormat.JSON:
        summary = {} if source is None else source.summary()
        print_preview_json(result, name, unreadable, summary, governed=governed)
    else:
        assumed = () if source is None else source.rows()
        has_change = change.changes_nodes or bool(change.toleration_seconds)
        print_preview(result, name, unreadable, assumed, has_change=has_change, governed=governed)
    return exit_code


def _steer(settings: Settings, tables: ClusterTables, cluster: str, *, is_played: bool) -> None:
    """Take in what holds evictions of the service now, or say what may."""
    from evictstream.kit.cli.known_steering import known_steering, tell_steering

    if not is_played:
        tell_steering(settings, cluster, tables.at_us)
        return
    with known_steering(settings) as newest:
        steering = newest()
        tables.steering.brakes, tables.steering.policies = steering.brakes, steering.policies


def _shortfalls(tables: ClusterTables, source: RecordedFolder | WatchFiles | None) -> Iterator[Shortfall]:
    yield from () if source is None else source.shortfalls()
    yield from refused(tables.unreadable)


def _taint_changes(added: list[str], removed: list[str]) -> TaintChanges:
    from evictstream.kit.rules.kubectl import KubectlError, check_conflicts, parse_taints

    try:
        changes = parse_taints([*added, *(f"{text.removesuffix('-')}-" for text in removed)])
        check_conflicts(changes)
    except KubectlError as error:
        raise WrongUseError(str(error)) from error
    if len(changes.add) != len(added):
        raise WrongUseError("--taint only adds taints", next_step="use --remove-taint")
    return changes


def _choice(nodes: list[str], selector: str, zone: str | None) -> NodeChoice:
    from evictstream.kit.rules.selectors import SelectorError, parse_selector
    from evictstream.kit.what_if.change import NodeChoice

    names = frozenset(name.strip() for text in nodes for name in text.split(",") if name.strip())
    try:
        return NodeChoice(names=names, selector=parse_selector(selector), zone=zone)
    except SelectorError as error:
        raise WrongUseError(str(error)) from error


def _check_asked(
    change: PlannedChange, choice: NodeChoice, flags: ManagerFlags, *, silent: bool, governs: bool
) -> None:
    if silent and governs:
        raise WrongUseError("--policy does not say what Kubernetes' controllers do", next_step="omit --silent")
    if flags.given and not silent:
        raise WrongUseError(f"{next(iter(flags.given))} needs --silent", next_step="add --silent")
    if silent and (change.changes_nodes or change.toleration_seconds):
        raise WrongUseError("--silent cannot be combined with another change", next_step="run them one after the other")
    if silent and not (choice.names or choice.selector or choice.zone is not None):
        raise WrongUseError("no nodes are selected", next_step="give --nodes, --selector or --zone")
    if silent:
        return
    if change.changes_nodes and not (choice.names or choice.selector or choice.zone is not None):
        raise WrongUseError("no nodes are selected", next_step="give --nodes, --selector or --zone")


def _instant(text: str) -> int:
    from evictstream.models.instants import instant_us

    try:
        return instant_us(text)
    except (TypeError, ValueError) as error:
        raise WrongUseError(f"--at {text} is not a time", next_step="for example 2026-11-21T02:15:00Z") from error


def _recorded(
    settings: Settings, files: list[str], cluster: str | None, at_us: int | None, stop_signals: StopSignals
) -> tuple[ClusterTables, RecordedFolder | WatchFiles | None]:
    """Read files to their end; those that name clusters keep their names, so that one of several can be chosen."""
    from evictstream.kit.replay.cluster_tables import ClusterTables, until
    from evictstream.kit.replay.sources import RecordedFolder, WatchFiles, recorded_folder

    source: RecordedFolder | WatchFiles
    with open_inputs(files, stop_signals) as inputs:
        if stop_signals.is_stopped():
            return ClusterTables(settings, partitions=settings.partitions), None
        folder = recorded_folder(inputs)
        if folder is None:
            source = WatchFiles(inputs, cluster=None, partitions=settings.partitions, unnamed=cluster)
        else:
            source = RecordedFolder(folder, partitions=settings.partitions)
        tables = ClusterTables(settings, partitions=source.partitions)
        tables.take(until(with_progress(stop_signals.interruptible(source.read()), "reading", source.total), at_us))
    for begun in tables.epochs:
        warn(begun)
    return tables, source


def _live(settings: Settings, cluster: str | None, at_us: int | None, stop_signals: StopSignals) -> ClusterTables:
    from evictstream.kit.replay.live_tables import read_live
    from evictstream.streams.engine.clock import SYSTEM_CLOCK

    now_us = SYSTEM_CLOCK.now_us()
    if at_us is not None and at_us < now_us:
        raise WrongUseError(
            "the running service has only the current state", next_step="name a recording, or a later --at"
        )
    with ProgressLine("reading the state") as line:
        tables = read_live(
            settings,
            cluster=cluster,
            is_stopped=stop_signals.is_stopped,
            progress=lambda what, count: line.show(count, what),
        )
    tables.at_us = max(tables.at_us, now_us)
    return tables


def _cluster_name(tables: ClusterTables, cluster: str | None) -> str:
    clusters = tables.clusters
    if cluster is None and len(clusters) == 1:
        return clusters[0]
    names = _listed(clusters)
    if cluster is None and clusters:
        raise WrongUseError(f"there are several clusters: {names}", next_step="give --cluster")
    if cluster not in clusters:
        problem = "there are no clusters" if cluster is None else f"there are no nodes of {cluster}"
        raise FoundProblemError(problem, next_step=f"known clusters: {names}")
    return cluster


def _check_names(cluster: PreviewCluster, choice: NodeChoice) -> None:
    from evictstream.kit.what_if.change import unknown_names

    if missing := unknown_names(choice, cluster.nodes):
        raise FoundProblemError(f"no such node: {_listed(missing)}", next_step="the cluster may use another name")


def _nothing_chosen(cluster: PreviewCluster, unlabelled: int) -> FoundProblemError:
    zones = sorted({node.facts.zone for node in cluster.nodes.values() if node.facts.zone is not None})
    unknown = f"; {unlabelled} of them have incomplete labels and match no selector" if unlabelled else ""
    return FoundProblemError(
        f"none of {len(cluster.nodes)} nodes matches{unknown}", next_step=f"known zones: {_listed(zones)}"
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_LISTED} more" if len(names) > _NAMES_LISTED else ""
    return f"{', '.join(names[:_NAMES_LISTED]) or 'none'}{more}"
