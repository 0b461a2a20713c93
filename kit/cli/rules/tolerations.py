"""`evictstream rules tolerations`: where the tolerations of a pod came from, and which one is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evictstream.kit.cli.rules.assumed_defaults import (
    ASSUMED_SECONDS,
    AssumedDefaults,
    NotReadyOption,
    UnreachableOption,
)
from evictstream.kit.cli.rules.problems import (
    ComparisonOption,
    end_with_problems,
    errors_json,
    require,
    show_problems,
)
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table, say
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.kit.cli.rules.checked_objects import NodeSubject, PodSubject
    from evictstream.kit.rules.admission import TracedToleration
    from evictstream.kit.rules.precedence import OrderConflict
    from evictstream.models.kubernetes import Taint, Tolerations


class _Use(NamedTuple):
    """A taint of a node, and the position of the toleration in use for it; None if there is none."""

    node: str
    taint: Taint
    position: int | None


class _Report(NamedTuple):
    """One pod: its tolerations with origins, the ones in use on the nodes, and where their order decides."""

    pod: PodSubject
    traced: tuple[TracedToleration, ...]
    uses: list[_Use]
    conflicts: tuple[OrderConflict, ...]

    @property
    def tolerations(self) -> Tolerations:
        return tuple(entry.toleration for entry in self.traced)


def tolerations(
    pod: Annotated[str, typer.Argument(help="File with pods; - for stdin.", metavar="FILE")],
    node: Annotated[
        str | None,
        typer.Option(
            "--node", help="File with nodes: show which toleration is in use for which taint.", metavar="FILE"
        ),
    ] = None,
    not_ready_seconds: NotReadyOption = ASSUMED_SECONDS,
    unreachable_seconds: UnreachableOption = ASSUMED_SECONDS,
    comparison_operators: ComparisonOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """List the tolerations of pods, who added each, which one counts, and where their order decides.

    A pod with a UID has passed the API server: an origin is inferred from what controllers and plugins always do, and
    marked as possible where an author may have written the same. A pod without UID gets what DefaultTolerationSeconds
    would add, which API servers run by default.

    Order decides where two tolerations match one taint and say different times: the first wins, silently. Looked at are
    the taints of the nodes, or without `--node` taints made from the pod's own tolerations and the two health taints.

    Exits with 0, warnings or not; with 1 if the API server or kubectl would refuse an object, and tells of the others;
    with 2 if a file cannot be read.

    Examples:

    * `evictstream rules tolerations pod.yaml`
    * `kubectl get pod web-0 -o json | evictstream rules tolerations - --node node.json`
    * `evictstream rules tolerations pods.json -o json`
    """
    from evictstream.kit.cli.rules.checked_objects import NODE, POD, nodes_of, pods_of, unnamed_kinds
    from evictstream.kit.cli.rules.object_files import read_objects

    objects = read_objects(pod) if node is None else read_objects(pod, node)
    pod_objects = [item for item in objects if item.source == pod]
    node_objects = [item for item in objects if item.source == node]
    pods, wrong_pods = pods_of(pod_objects, comparison_operators=comparison_operators)
    nodes, wrong_nodes = nodes_of(node_objects)
    wrong = [*unnamed_kinds(objects), *wrong_pods, *wrong_nodes]
    if wrong and not (pods and (nodes or node is None)):
        return show_problems(wrong, output)
    require(pods, POD, pod, pod_objects)
    if node is not None:
        require(nodes, NODE, node, node_objects)
    reports = [
        _report(
            subject,
            _traced(subject, AssumedDefaults(not_ready_seconds, unreachable_seconds)),
            None if node is None else nodes,
            comparison_operators=comparison_operators,
        )
        for subject in pods
    ]
    if output is OutputFormat.JSON:
        pods_json = [_json(report) for report in reports]
        print_json({"comparisonOperators": comparison_operators, "pods": pods_json, "errors": errors_json(wrong)})
    else:
        for report in reports:
            _show(report, has_nodes=node is not None)
    return end_with_problems(wrong, output)


def _traced(pod: PodSubject, defaults: AssumedDefaults) -> tuple[TracedToleration, ...]:
    from msgspec import UNSET
    from msgspec.structs import replace

    from evictstream.kit.rules.admission import TracedToleration, trace

    if not pod.is_stored:
        return tuple(
            TracedToleration(entry.toleration, entry.origin, is_certain=True) for entry in defaults.admitted(pod)
        )
    traced = trace(
        [replace(toleration, built_in_seconds=UNSET) for toleration in pod.tolerations],  # where they are is no origin
        is_daemon=pod.is_daemon,
        host_network=pod.host_network,
        requested=pod.requested,
        is_best_effort=pod.is_best_effort,
        not_ready_seconds=defaults.not_ready_seconds,
        unreachable_seconds=defaults.unreachable_seconds,
    )
    return tuple(replace(entry, toleration=own) for entry, own in zip(traced, pod.tolerations, strict=True))


def _report(
    pod: PodSubject,
    traced: tuple[TracedToleration, ...],
    nodes: list[NodeSubject] | None,
    *,
    comparison_operators: bool,
) -> _Report:
    from evictstream.kit.rules.precedence import conceivable_taints, order_conflicts
    from evictstream.models.kubernetes import tolerates

    entries = tuple(entry.toleration for entry in traced)
    uses = [
        _Use(
            node.name,
            taint,
            next(
                (
                    position
                    for position, entry in enumerate(entries)
                    if tolerates(entry, taint, comparison_operators=comparison_operators)
                ),
                None,
            ),
        )
        for node in nodes or ()
        for taint in node.taints
    ]
    taints = conceivable_taints(entries) if nodes is None else tuple(dict.fromkeys(use.taint for use in uses))
    conflicts = order_conflicts(entries, taints, comparison_operators=comparison_operators)
    return _Report(pod, traced, uses, conflicts)


def _show(report: _Report, *, has_nodes: bool) -> None:
    from evictstream.kit.cli.rules.formatting import NO_VALUE, taint_words, toleration_words

    say(f"pod/{report.pod.name}")
    print_table(
        ["", "toleration", "from", *(["in use for"] if has_nodes else [])],
        (
            [
                str(position + 1),
                toleration_words(entry.toleration),
                _origin_words(entry),
                *([_used(report, position) or NO_VALUE] if has_nodes else []),
            ]
            for position, entry in enumerate(report.traced)
        ),
    )
    for use in report.uses:
        if use.position is None:
            say(f"not tolerated: {taint_words(use.taint)} of node {use.node}")
    for conflict in report.conflicts:
        say(f"warning: {_warning(report, conflict)}")


def _origin_words(entry: TracedToleration) -> str:
    from evictstream.kit.rules.admission import AddedBy

    if entry.is_certain:
        return entry.origin
    if entry.origin is AddedBy.WRITTEN:
        return "written, or a default of the namespace or the cluster"
    return f"{entry.origin}, or written"


def _used(report: _Report, position: int) -> str:
    from evictstream.kit.cli.rules.formatting import taint_words

    return ", ".join(dict.fromkeys(taint_words(use.taint) for use in report.uses if use.position == position))


def _warning(report: _Report, conflict: OrderConflict) -> str:
    from evictstream.kit.cli.rules.formatting import stay_words, taint_words
    from evictstream.models.kubernetes import bounded_seconds

    used, later = report.tolerations[conflict.in_use], report.tolerations[conflict.passed_over]
    return (
        f"order decides for {taint_words(conflict.taint)}: {stay_words(bounded_seconds(used))} by"
        f" toleration {conflict.in_use + 1}, where toleration {conflict.passed_over + 1} says"
        f" {stay_words(bounded_seconds(later))}"
    )


def _json(report: _Report) -> dict[str, object]:
    from evictstream.kit.cli.rules.formatting import taint_json, toleration_json

    return {
        "pod": report.pod.name,
        "stored": report.pod.is_stored,
        "tolerations": [
            {"toleration": toleration_json(entry.toleration), "origin": entry.origin, "certain": entry.is_certain}
            for entry in report.traced
        ],
        "inUse": [
            {"node": use.node, "taint": taint_json(use.taint), "toleration": use.position} for use in report.uses
        ],
        "warnings": [
            {
                "taint": taint_json(conflict.taint),
                "inUse": conflict.in_use,
                "passedOver": conflict.passed_over,
                "message": _warning(report, conflict),
            }
            for conflict in report.conflicts
        ],
    }
