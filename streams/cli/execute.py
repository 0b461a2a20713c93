"""`evictstream execute`: eviction commands, carried out in live clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evictstream.streams.cli.global_options import global_options
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
            help="What the cluster is called in commands, and its context in the kubeconfig if that is another one.",
            metavar="NAME[=CONTEXT]",
        ),
    ],
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            help="observe (default), delete or evict; for all clusters, or for one.",
            metavar="MODE|NAME=MODE",
        ),
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(help="Default: KUBECONFIG, ~/.kube/config, or the pod's service account.", metavar="FILE"),
    ] = None,
    rate: Annotated[float, typer.Option(min=0.01, help="Evictions a second, for each cluster.")] = 100.0,
    burst: Annotated[int, typer.Option(min=1, help="Evictions at once after a quiet time.")] = 100,
    delete_after: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="In the mode evict: this long after its deadline a pod is deleted despite its disruption budget.",
            metavar="SECONDS",
        ),
    ] = None,
    events: Annotated[
        Literal["none", "evictions", "all"],
        typer.Option(help="Kubernetes Events on pods: none, of evictions, or also of what is scheduled and cancelled."),
    ] = "evictions",
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Begin with commands from then on, whatever was read before. Default: go on.",
            metavar="TIME",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="How the consumer groups are called: NAME-CLUSTER, and NAME-CLUSTER/observe for observers. Executors"
            " of one group share the work of the cluster. Default: the application's name and -executor.",
            metavar="NAME",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="Fixed name in the groups: a quick restart then moves no partition.", metavar="NAME"),
    ] = None,
) -> ExitCode:
    """Carry out eviction commands in live clusters, until stopped.

    Before it acts it looks once more: the pod has the same UID, is bound to that node and still runs, and the taint is
    still there and not tolerated. Otherwise it answers `Obsolete` or `Gone`. UID and resource version are preconditions
    of each delete, so no other pod, and no changed one, is taken.

    Modes: `observe` does everything but the write. `delete` sets the condition `DisruptionTarget` and deletes, as the
    built-in controller does. `evict` uses the Eviction API and waits for disruption budgets.

    The rights of each mode are in deploy/kubernetes/executor-*.yaml, and are checked at the start. While Kafka or an
    API server does not answer it waits. Each cluster is served for itself: one that cannot be does not hold up others.
    SIGTERM ends what runs, answers it, and exits with 0.

    Examples:

    * `evictstream execute --cluster prod-eu-1` to watch what would be done, also beside an executor that does it
    * `evictstream execute --cluster prod-eu-1=admin@eu --mode delete --rate 200`
    * `evictstream execute --cluster eu=a --cluster us=b --mode evict --mode us=observe`
    * `evictstream execute --cluster prod-eu-1 --mode evict --delete-after 3600`
    """
    from evictstream.models.instants import instant_us
    from evictstream.streams.executor.execution import execute_commands
    from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
    from evictstream.streams.feed.cluster_names import contexts_by_cluster
    from evictstream.streams.kubernetes.access import ClusterAccess

    settings = global_options(context).settings
    chosen = contexts_by_cluster(clusters)
    mode_of = _modes(modes or [], chosen)
    try:
        start_us = None if start is None else instant_us(start)
    except (TypeError, ValueError):
        raise WrongUseError(
            f"--from {start!r} is no time", next_step="write it with its zone, as 2026-11-21T02:15:00Z"
        ) from None
    if group is not None and (not group or "/" in group):
        raise WrongUseError(f"--group {group!r} is no name", next_step="name it without a slash")
    orders = [
        ClusterOrder(name=name, access=ClusterAccess(kubeconfig=kubeconfig, context=found), mode=mode_of[name])
        for name, found in chosen.items()
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
            found = ExecutorMode(mode)
        except ValueError:
            raise WrongUseError(f"--mode {text}: {mode!r} is none of {', '.join(ExecutorMode)}") from None
        if not equals:
            default = found
        elif name in clusters:
            own[name] = found
        else:
            raise WrongUseError(f"--mode {text}: there is no --cluster {name}")
    return {name: own.get(name, default) for name in clusters}
