"""`evictstream rules verdict`: would Kubernetes evict, schedule and admit these pods on these nodes, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

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
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_long_json, print_long_table, say, warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.kit.cli.rules.checked_objects import NodeSubject, ObjectErrors, PodSubject
    from evictstream.kit.cli.rules.evaluation import Evaluator
    from evictstream.kit.cli.rules.selection import Placement

_WHY = {
    "NOT_BOUND": "not bound to a node",
    "NODE_NOT_FOUND": "node not in the file",
    "NODE_REFUSED": "node would be refused",
}


def verdict(
    node: Annotated[str, typer.Option("--node", help="File with nodes; - for stdin.", metavar="FILE")],
    pod: Annotated[str, typer.Option("--pod", help="File with pods; - for stdin.", metavar="FILE")],
    *,
    all_nodes: Annotated[
        bool, typer.Option("--all-nodes", help="Check each pod on each node, wherever it runs.")
    ] = False,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only pods in this namespace.", metavar="NAME")
    ] = None,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Only pods with these labels.", metavar="SELECTOR")
    ] = "",
    node_selector: Annotated[
        str, typer.Option("--node-selector", help="Only on nodes with these labels.", metavar="SELECTOR")
    ] = "",
    not_ready_seconds: NotReadyOption = ASSUMED_SECONDS,
    unreachable_seconds: UnreachableOption = ASSUMED_SECONDS,
    comparison_operators: ComparisonOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Say what the taints of nodes mean for pods, as Kubernetes itself would decide.

    For each pod on the node that it is bound to: when it would be evicted, counted from the moment at which Kubernetes
    sees the taint, and by which taint and toleration; whether the scheduler would put it there, with the score by soft
    taints among all nodes of the file that are possible; whether the kubelet would take it in. Only taints and cordons
    count, not the phase of the pod, resources or affinity. A pod with a UID has the tolerations that stand in it. One
    without is judged as it would be created: with those of DefaultTolerationSeconds, which API servers run by default;
    the output says so, and `evictstream rules tolerations` shows them.

    A pod that is not bound, or whose node is not in the file, has a row that says so. Where none of the pods is bound,
    as in manifests, or with `--all-nodes`, each is judged on each node. Selectors are kubectl's: `app=web,tier!=cache`,
    `app in (a,b)`, `app`, `!app`.

    Files are JSON or YAML, with one object or many: lists, and documents with `---` between them. Other kinds are left
    out. One file may hold both. Rows go out as they are decided; JSON is one object with `verdicts`, one in each line,
    and before them `notJudged`, the pods without node, and `errors`.

    Exits with 0; with 1 if the API server or kubectl would refuse an object, a misspelt field included: then every
    error is listed, and the other objects are judged; with 2 if a file or selector cannot be read.

    Examples:

    * `kubectl get nodes,pods -A -o json | evictstream rules verdict --node - --pod -`
    * `evictstream rules verdict --node node.yaml --pod pod.yaml` for a manifest: what if it ran there?
    * `evictstream rules verdict --node all.json --pod all.json -n shop --node-selector topology.kubernetes.io/zone=a`
    * `evictstream rules verdict --node all.json --pod all.json -l app=web --all-nodes -o json`
    """
    from evictstream.kit.cli.rules.checked_objects import NODE
    from evictstream.kit.cli.rules.evaluation import Evaluator
    from evictstream.kit.cli.rules.selection import Placement, Selection

    selection = Selection(namespace, selector, node_selector, all_nodes)
    nodes, pods, wrong = _read(node, pod, comparison_operators=comparison_operators)
    if not (nodes and pods):
        return show_problems(wrong, output)
    defaults = AssumedDefaults(not_ready_seconds, unreachable_seconds)
    pods, assumed = defaults.applied(pods)
    placement = Placement(pods, nodes, selection, refused=[each.name for each in wrong if each.kind == NODE])
    evaluator = Evaluator(nodes, comparison_operators=comparison_operators)
    for kind, chosen in (("pod", placement.pods), ("node", placement.chosen)):
        if not chosen:
            warn(f"no {kind} is selected")
    if output is OutputFormat.JSON:
        head = {
            "comparisonOperators": comparison_operators,
            "assumed": {
                "podsWithoutUid": assumed,
                "notReadySeconds": not_ready_seconds,
                "unreachableSeconds": unreachable_seconds,
            },
            "notJudged": [
                {"pod": pod.name, "node": pod.node_name or None, "reason": why} for pod, why in placement.unplaced()
            ],
            "errors": errors_json(wrong),
        }
        print_long_json(head, "verdicts", _items(placement, evaluator))
    else:
        from evictstream.kit.cli.rules.pod_on_node import TITLES

        print_long_table(["pod", "node", *TITLES], _rows(placement, evaluator))
        if assumed and defaults.matter_on(nodes[index] for index in placement.chosen):
            say()
            say(defaults.sentence(assumed))
    return end_with_problems(wrong, output)


def _read(
    node: str, pod: str, *, comparison_operators: bool
) -> tuple[list[NodeSubject], list[PodSubject], list[ObjectErrors]]:
    """Read the files; returns what is used of them, so that the rest of their memory is freed.

    Without errors there are nodes and pods.
    """
    from evictstream.kit.cli.rules.checked_objects import NODE, POD, nodes_of, pods_of, unnamed_kinds
    from evictstream.kit.cli.rules.object_files import read_objects

    objects = read_objects(node, pod)
    node_objects = [item for item in objects if item.source == node]
    pod_objects = [item for item in objects if item.source == pod]
    nodes, wrong_nodes = nodes_of(node_objects)
    pods, wrong_pods = pods_of(pod_objects, comparison_operators=comparison_operators)
    wrong = [*unnamed_kinds(objects), *wrong_nodes, *wrong_pods]
    if not wrong:
        require(nodes, NODE, node, node_objects)
        require(pods, POD, pod, pod_objects)
    return nodes, pods, wrong


def _rows(placement: Placement, evaluator: Evaluator) -> Iterator[tuple[str, ...]]:
    from evictstream.kit.cli.rules.formatting import NO_VALUE
    from evictstream.kit.cli.rules.selection import Unplaced

    for pod in placement.pods:
        places = placement.places(pod)
        if isinstance(places, Unplaced):
            yield (pod.name, pod.node_name or NO_VALUE, "not judged", _WHY[places.name], *[NO_VALUE] * 5)
            continue
        for index in places:
            yield (pod.name, placement.nodes[index].name, *evaluator.outcome(pod, index).cells)


def _items(placement: Placement, evaluator: Evaluator) -> Iterator[dict[str, object]]:
    from evictstream.kit.cli.rules.selection import Unplaced

    for pod in placement.pods:
        places = placement.places(pod)
        if not isinstance(places, Unplaced):
            for index in places:
                yield {"pod": pod.name, "node": placement.nodes[index].name} | evaluator.outcome(pod, index).fields
