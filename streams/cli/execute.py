"""`evictstream execute`: eviction commands, carried out in live clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.service_imports import service_imports
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, WrongUseError

if TYPE_CHECKING:
    from evictstream.streams.executor.eviction import ExecutorMode

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def execute(  # noqa: PLR0917 - typer reads options from positional parameters
    context: typer.Context,
    clusters: Annotated[
        list[str],
        typer.Option(
            "--cluster",
            help="Name of the cluster in commands, and its kubeconfig context if that differs.",
            metavar="NAME[=CONTEXT]",
        ),
    ],
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            help="observe (default), delete, evict or request; for all clusters or for one.",
            metavar="MODE|NAME=MODE",
        ),
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(help="Default: KUBECONFIG, ~/.kube/config, or the pod's service account.", metavar="FILE"),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.01, help="Most evictions per second, per cluster.", metavar="NUMBER")
    ] = 1_000.0,
    burst: Annotated[int, typer.Option(min=1, help="Evictions at once after an idle time.", metavar="NUMBER")] = 100,
    delete_after: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="In the modes evict and request: delete a pod this long after its deadline in any case.",
            metavar="SECONDS",
        ),
    ] = None,
    events: Annotated[
        Literal["none", "evictions", "all"],
        typer.Option(
            help="Kubernetes Events on pods: none, evictions, or also scheduled and cancelled ones.",
            metavar="none|evictions|all",
        ),
    ] = "evictions",
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Read commands again from this time. Default: continue.",
            metavar="TIME",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="How the consumer groups are called: NAME-CLUSTER, and NAME-CLUSTER/observe for observers. Executors"
            " of one group stand in for one another: one acts. Default: the application's name and -executor.",
            metavar="NAME",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="Static member name: the cluster's partition stays over a quick restart.", metavar="NAME"),
    ] = None,
) -> ExitCode:
    """Carry out eviction commands in clusters, until stopped.

    Before it acts, the executor looks once more: the pod must have the same UID, be bound to that node and still run,
    and the taint must still be there and not be tolerated. Otherwise it answers `Obsolete` or `Gone`. UID and resource
    version are preconditions of each delete, so no other or changed pod is deleted.

    Modes: `observe` does everything except the eviction. `delete` sets the condition `DisruptionTarget` and deletes, as
    the built-in controller does. `evict` uses the Eviction API and waits for disruption budgets. `request` creates an
    EvictionRequest (Kubernetes 1.37, alpha) and waits for whoever acts on these in the cluster.

    The rights for each mode are in deploy/kubernetes/executor-*.yaml, and are checked at the start. If Kafka or an API
    server is unavailable, the executor waits. A cluster with a problem does not delay the others. After SIGTERM it
    finishes and answers running evictions, then exits with 0.

    Examples:

    * `evictstream execute --cluster prod-eu-1` reports what would be evicted, even while another executor acts
    * `evictstream execute --cluster prod-eu-1=admin@eu --mode delete --rate 200`
    * `evictstream execute --cluster eu=a --cluster us=b --mode evict --mode us=observe`
    * `evictstream execute --cluster prod-eu-1 --mode evict --delete-after 3600`
    """
    with service_imports():
        from evictstream.models.instants import instant_us
        from evictstream.streams.executor.execution import execute_commands
        from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
        from evictstream.streams.feed.cluster_names import contexts_by_cluster
        from evictstream.streams.kubernetes.access import ClusterAccess

    settings = global_options(context).settings_of_service()
    chosen = contexts_by_cluster(clusters)
    mode_of = _modes(modes or [], chosen)
    try:
        start_us = None if start is None else instant_us(start)
    except (TypeError, ValueError):
        raise WrongUseError(
            f"--from {start!r} is not a time", next_step="write it with a zone, like 2026-11-21T02:15:00Z"
        ) from None
    if group is not None and (not group or "/" in group):
        raise WrongUseError(f"--group {group!r} is not a valid name", next_step="use a name without a slash")
    orders = [
        ClusterOrder(name=name, access=ClusterAccess(kubeconfig=kubeconfig, context=mode), mode=mode_of[name])
        for name, mode in chosen.items()
    ]
    options = ExecutionOptions(
        group=group or f"{settings.application_id}-executor",
        instance=instance,
        rate=rate,
        burst=burst,
        start_us=start_us,
        delete_after_seconds=delete_after,
        events=events,
    )
    with StopSignals() as stop_signals:
        execute_commands(orders, options, settings=settings, is_stopped=stop_signals.is_stopped)
    return ExitCode.DONE


def _modes(texts: list[str], clusters: dict[str, str | None]) -> dict[str, ExecutorMode]:
    from evictstream.streams.executor.eviction import ExecutorMode

    default = ExecutorMode.OBSERVE
    own: dict[str, ExecutorMode] = {}
    for text in texts:
        name, equals, mode = text.rpartition("=")
        try:
            chosen_mode = ExecutorMode(mode)
        except ValueError:
            raise WrongUseError(f"--mode {text}: {mode!r} is none of {', '.join(ExecutorMode)}") from None
        if not equals:
            default = chosen_mode
        elif name in clusters:
            own[name] = chosen_mode
        else:
            raise WrongUseError(f"--mode {text}: there is no --cluster {name}")
    return {name: own.get(name, default) for name in clusters}
