"""`evictstream handover`: hand pods over where the built-in controller cannot be switched off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OUTPUT_FORMATS, OutputFormat, OutputOption, print_json, say
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, FoundProblemError, WrongUseError
from evictstream.streams.handover.policy_objects import (
    DEFAULT_MORE,
    MOST_MORE,
    NEVER_MOVED,
    POLICY_NAME,
    policy_objects,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evictstream.streams.handover.api_requests import ApiRequests
    from evictstream.streams.handover.pod_changes import ChangeReport
    from evictstream.streams.handover.pod_states import ClusterPod
    from evictstream.streams.kubernetes.access import ClusterAccess

    PodRun = Callable[[Iterable[ClusterPod], ChangeReport, Callable[[ChangeReport], None]], None]

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

ContextOption = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig. Default: the current one.", metavar="NAME")
]
KubeconfigOption = Annotated[
    str | None,
    typer.Option(help="Default: KUBECONFIG, ~/.kube/config, or the pod's service account.", metavar="FILE"),
]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Only pods of this namespace.", metavar="NAME")
]
NodeOption = Annotated[str | None, typer.Option("--node", help="Only pods on this node.", metavar="NAME")]
RateOption = Annotated[float, typer.Option("--rate", help="Most pods a second.", min=0.1, max=1_000, metavar="NUMBER")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Have the API server do all but write, and show what would change.")
]
DEFAULT_RATE = 50.0
"""A cluster of 100,000 pods takes half an hour, and its API server notices nothing of it."""

FormOption = Annotated[
    OutputFormat | None,
    typer.Option("--output", "-o", help="Default: text on a terminal, otherwise JSON.", metavar=OUTPUT_FORMATS),
]


@app.callback()
def handover() -> None:
    """Hand pods over to evictstream where the built-in controller cannot be switched off, as on managed clusters.

    A policy of the API server moves `tolerationSeconds` into an annotation, which evictstream reads. The built-in
    controller stays on. These commands use the rights of your kubeconfig, not those of the service.
    """


@app.command()
def policy(
    more: Annotated[
        int | None,
        typer.Option(
            help="Backstop: how long after evictstream the built-in controller evicts pods that remain. Default:"
            f" {DEFAULT_MORE}.",
            min=1,
            max=MOST_MORE,
            metavar="SECONDS",
        ),
    ] = None,
    none: Annotated[
        bool, typer.Option("--none", help="No backstop: the built-in controller never evicts moved pods.")
    ] = False,
    guard: Annotated[
        bool,
        typer.Option(help="Also refuse the annotation where rights on status or Bindings alone would write it."),
    ] = True,
    excluded: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-namespace",
            help=f"Leave its pods to the built-in controller; repeatable. Always: {', '.join(NEVER_MOVED)}.",
            metavar="NAME",
        ),
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Print the policy for `kubectl apply -f -`; needs Kubernetes 1.36 or newer.

    With a backstop, a toleration of 300 s becomes one of 300 + `--more`: if evictstream is dead, the built-in
    controller evicts that much later. With `--none` it becomes one without seconds: nothing else evicts the pod then.

    Before you apply it, upgrade feeds, workers and executors: one that does not know the annotation keeps moved pods
    too long. A namespace opts out with the label `evictstream.io/handover=off`.

    Examples:

    * `evictstream handover policy | kubectl apply -f -`
    * `evictstream handover policy --more 86400 --exclude-namespace gke-managed-system > handover.yaml`
    * `evictstream handover policy --none --no-guard -o json`
    """
    from evictstream.streams.handover.object_files import objects_as_yaml

    if none and more is not None:
        raise WrongUseError("--more and --none contradict each other", next_step="give one of them")
    seconds = None if none else DEFAULT_MORE if more is None else more
    for name in excluded or ():
        _check_namespace(name)
    objects = policy_objects(seconds, guard=guard, excluded=excluded or ())
    if output is OutputFormat.JSON:
        print_json({"apiVersion": "v1", "kind": "List", "items": objects})
        return ExitCode.DONE
    chosen = "--none" if seconds is None else f"--more {seconds}"
    made_by = f"Made by `evictstream handover policy {chosen}`: see docs/managed-clusters.md."
    for line in objects_as_yaml(objects, made_by).splitlines():
        say(line)
    return ExitCode.DONE


@app.command()
def check(
    context: typer.Context,
    namespace: NamespaceOption = None,
    cluster_context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
    output: FormOption = None,
) -> int:
    """Show whether the policy acts, and which pods it has moved.

    Creates a pod in a dry run, which leaves nothing: what the API server answers shows the variant. Looks at the policy
    and the guard, and at every pod. Changes nothing.

    Exits with 0 if the policy acts as this program writes it and no pod is still to be moved, otherwise with 1; with
    130 or 143 if stopped by Ctrl-C or SIGTERM. Whether workers are new enough, their metric `evictstream_build_info`
    says: this command asks the cluster alone.

    Examples:

    * `evictstream handover check`
    * `evictstream handover check --context admin@eu -n shop`
    * `evictstream handover check -o json | jq .problems`
    """
    from evictstream.streams.cli.handover_output import print_check
    from evictstream.streams.cli.progress import ProgressLine
    from evictstream.streams.handover.api_requests import StoppedError, open_cluster
    from evictstream.streams.handover.checking import check_handover
    from evictstream.streams.kubernetes.access import ClusterAccess

    as_text = _is_text(context, output)
    access = ClusterAccess(kubeconfig=kubeconfig, context=cluster_context)
    with StopSignals() as stop_signals:
        try:
            with (
                ProgressLine("looking") as line,
                open_cluster(access, is_stopped=stop_signals.is_stopped) as requests,
            ):
                report = check_handover(requests, namespace, tell=lambda count: line.show(count, "pods"))
        except StoppedError:
            return stop_signals.exit_code or ExitCode.FOUND_PROBLEM
        print_check(report, as_text=as_text)
    return ExitCode.FOUND_PROBLEM if report.problems() else ExitCode.DONE


@app.command()
def move(
    context: typer.Context,
    namespace: NamespaceOption = None,
    node: NodeOption = None,
    rate: RateOption = DEFAULT_RATE,
    dry_run: DryRunOption = False,
    cluster_context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
    output: FormOption = None,
) -> int:
    """Move pods that were created before the policy.

    Sends an empty patch for each: the policy looks at the pod, and only seconds change. Nothing restarts. A pod keeps
    its deadline if its window runs. A second run changes nothing, and one that was stopped goes on with the next.

    Exits with 0 if all were moved, with 1 if one was not or the policy does not act, with 130 or 143 if stopped by
    Ctrl-C or SIGTERM.

    Examples:

    * `evictstream handover move --dry-run`
    * `evictstream handover move -n shop`
    * `evictstream handover move --node n-1 --rate 10`
    """
    from evictstream.streams.handover.acting import probe_policy
    from evictstream.streams.handover.checking import namespace_rules, probed_namespace
    from evictstream.streams.handover.pod_changes import MovePods, change_pods
    from evictstream.streams.kubernetes.access import ClusterAccess

    def begin(requests: ApiRequests) -> PodRun:
        rules, _ = namespace_rules(requests)
        probed = probed_namespace(namespace, rules)
        if probe_policy(requests, probed) is None:
            raise FoundProblemError(
                f"the policy does not act in the namespace {probed}: nothing was moved",
                next_step="`evictstream handover check` shows why",
            )
        change = MovePods(requests=requests, rules=rules, is_dry_run=dry_run)
        return lambda pods, report, tell: change_pods(requests, pods, change, report, tell=tell)

    return _change(
        begin,
        "moved",
        ClusterAccess(kubeconfig=kubeconfig, context=cluster_context),
        which=(namespace, node),
        rate=rate,
        is_dry_run=dry_run,
        as_text=_is_text(context, output),
    )


@app.command()
def restore(  # noqa: PLR0917 - typer reads options from positional parameters
    context: typer.Context,
    namespace: NamespaceOption = None,
    node: NodeOption = None,
    rate: RateOption = DEFAULT_RATE,
    dry_run: DryRunOption = False,
    despite_policy: Annotated[
        bool, typer.Option("--despite-policy", help="Restore even while the policy acts, which moves the pods again.")
    ] = False,
    cluster_context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
    output: FormOption = None,
) -> int:
    """Give pods back to the built-in controller: seconds go back into the spec, and the annotation is removed.

    Delete the binding of the policy first: while it acts, this has no effect. Pods on nodes that are tainted now get
    their full seconds once more, from the restore on. Each patch applies only to the version of the pod that was read.
    With a backstop such pods have no seconds for some moments: if this command is stopped then, repeat it.

    Exits with 0 if all were restored, with 1 if one was not or the policy acts, with 130 or 143 if stopped by Ctrl-C or
    SIGTERM.

    Examples:

    * `evictstream handover restore --dry-run`
    * `evictstream handover restore -n shop --rate 10`
    """
    from evictstream.streams.handover.acting import probe_policy, tainted_nodes
    from evictstream.streams.handover.checking import namespace_rules, probed_namespace
    from evictstream.streams.handover.pod_changes import LoosenPods, RestorePods
    from evictstream.streams.handover.restoring import RestoreRun, TaintedNodes
    from evictstream.streams.kubernetes.access import ClusterAccess

    def begin(requests: ApiRequests) -> PodRun:
        probed = probed_namespace(namespace, namespace_rules(requests)[0])
        if not despite_policy and probe_policy(requests, probed) is not None:
            raise FoundProblemError(
                f"the policy acts in the namespace {probed} and would move the pods again: nothing was restored",
                next_step=f"delete its binding: kubectl delete mutatingadmissionpolicybinding {POLICY_NAME}",
            )
        nodes = TaintedNodes(lambda: tainted_nodes(requests))
        loosen = None if dry_run else LoosenPods(requests=requests, nodes=nodes)
        restore = RestorePods(requests=requests, is_dry_run=dry_run)
        return RestoreRun(requests=requests, loosen=loosen, restore=restore).run

    return _change(
        begin,
        "restored",
        ClusterAccess(kubeconfig=kubeconfig, context=cluster_context),
        which=(namespace, node),
        rate=rate,
        is_dry_run=dry_run,
        as_text=_is_text(context, output),
    )


def _change(
    begin: Callable[[ApiRequests], PodRun],
    done: str,
    access: ClusterAccess,
    *,
    which: tuple[str | None, str | None],
    rate: float,
    is_dry_run: bool,
    as_text: bool,
) -> int:
    """Change pods and print what was done, however it ends."""
    from evictstream.streams.cli.handover_output import print_changes
    from evictstream.streams.cli.progress import ProgressLine
    from evictstream.streams.handover.api_requests import StoppedError, open_cluster
    from evictstream.streams.handover.pod_changes import ChangeOutcome, ChangeReport

    report = ChangeReport()
    with (
        StopSignals() as stop_signals,
        open_cluster(access, is_stopped=stop_signals.is_stopped, rate=rate) as requests,
    ):
        try:
            run = begin(requests)
        except StoppedError:
            return stop_signals.exit_code or ExitCode.FOUND_PROBLEM
        try:
            with ProgressLine(done) as line:
                run(requests.pods(*which), report, lambda found: line.show(found.asked, "pods"))
        finally:
            print_changes(report, done=done, is_dry_run=is_dry_run, as_text=as_text)
    if not report.is_whole:
        return stop_signals.exit_code or ExitCode.FOUND_PROBLEM
    is_done = not (report.outcomes[ChangeOutcome.FAILED] or report.outcomes[ChangeOutcome.UNCHANGED])
    return ExitCode.DONE if is_done else ExitCode.FOUND_PROBLEM


def _is_text(context: typer.Context, output: OutputFormat | None) -> bool:
    as_text = sys.stdout.isatty() if output is None else output is OutputFormat.TEXT
    global_options(context).wants_json = not as_text
    return as_text


def _check_namespace(name: str) -> None:
    """Refuse what no namespace is called: the API server takes it, and it excludes nothing."""
    import re

    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise WrongUseError(
            f"--exclude-namespace {name} cannot be the name of a namespace",
            next_step="use small letters, digits and hyphens, at most 63",
        )
