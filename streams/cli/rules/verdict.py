"""`evictstream rules verdict`: would Kubernetes evict, schedule and admit these pods on these nodes, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from streams.cli.output import OutputFormat, OutputOption, print_json, print_table
from streams.cli.rules.problems import ComparisonOption, require, show_problems
from streams.errors import ExitCode

if TYPE_CHECKING:
    from models.kubernetes import EvictionVerdict
    from models.kubernetes.scheduling import AdmissionVerdict, FilterVerdict, NodeScore
    from streams.cli.rules.subjects import NodeSubject, PodSubject


class _Verdict(NamedTuple):
    """What Kubernetes makes of one pod on one node; `score` only where the pod may be scheduled."""

    node: NodeSubject
    pod: PodSubject
    eviction: EvictionVerdict
    scheduling: FilterVerdict
    score: NodeScore | None
    kubelet: AdmissionVerdict


def verdict(
    node: Annotated[str, typer.Option("--node", help="File with nodes; - is stdin.", metavar="FILE")],
    pod: Annotated[str, typer.Option("--pod", help="File with pods; - is stdin.", metavar="FILE")],
    comparison_operators: ComparisonOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Say what the taints of nodes mean for pods, as Kubernetes itself would decide.

    For each pod on each node, whether or not it runs there: when it would be evicted, counted from the moment at which
    Kubernetes sees the taint, and by which taint and toleration; whether the scheduler would put it there, with the
    score by soft taints among the nodes that are possible; whether the kubelet would take it in. Only taints and
    cordons count, not the phase of the pod, resources or affinity; and only the tolerations that stand in the pod, not
    those that the API server adds when it is created (`evictstream rules tolerations` shows them).

    Files are JSON or YAML, with one object or many: lists, and documents with `---` between them. Other kinds are left
    out. One file may hold both.

    Exits with 0; with 1 if the API server would refuse an object, and lists every error; with 2 if a file cannot be
    read.

    Examples:

    * `evictstream rules verdict --node node.yaml --pod pod.yaml`
    * `kubectl get nodes,pods -A -o json | evictstream rules verdict --node - --pod -`
    * `evictstream rules verdict --node nodes.json --pod pod.json -o json`
    """
    from streams.cli.rules.documents import read_objects
    from streams.cli.rules.subjects import NODE, POD, nodes_of, pods_of, unnamed_kinds

    objects = read_objects(node, pod)
    node_objects = [found for found in objects if found.source == node]
    pod_objects = [found for found in objects if found.source == pod]
    nodes, wrong_nodes = nodes_of(node_objects)
    pods, wrong_pods = pods_of(pod_objects, comparison_operators=comparison_operators)
    if wrong := [*unnamed_kinds(objects), *wrong_nodes, *wrong_pods]:
        return show_problems(wrong, output)
    require(nodes, NODE, node, node_objects)
    require(pods, POD, pod, pod_objects)
    found = [each for subject in pods for each in _verdicts(subject, nodes, comparison_operators=comparison_operators)]
    if output is OutputFormat.JSON:
        print_json({"comparisonOperators": comparison_operators, "verdicts": [_json(each) for each in found]})
    else:
        _show(found)
    return ExitCode.DONE


def _verdicts(pod: PodSubject, nodes: list[NodeSubject], *, comparison_operators: bool) -> list[_Verdict]:
    from models.kubernetes import eviction_verdict
    from models.kubernetes.scheduling import filter_node, is_static_pod, kubelet_admission, score_nodes

    filtered = [
        filter_node(
            pod.tolerations, node.taints, unschedulable=node.unschedulable, comparison_operators=comparison_operators
        )
        for node in nodes
    ]
    # By position and not by name: a file may hold several nodes of one name.
    candidates = {str(index): node.taints for index, node in enumerate(nodes) if filtered[index].fits}
    scores = {
        score.node: score
        for score in score_nodes(pod.tolerations, candidates, comparison_operators=comparison_operators)
    }
    return [
        _Verdict(
            node,
            pod,
            eviction_verdict(pod.tolerations, node.taints, comparison_operators=comparison_operators),
            filtered[index],
            scores.get(str(index)),
            kubelet_admission(
                pod.tolerations,
                node.taints,
                is_static=is_static_pod(pod.annotations),
                comparison_operators=comparison_operators,
            ),
        )
        for index, node in enumerate(nodes)
    ]


def _show(verdicts: list[_Verdict]) -> None:
    print_table(
        ["pod", "node", "evict", "because of", "tolerated by", "schedule", "because of", "score", "kubelet"],
        (
            [
                each.pod.name,
                each.node.name,
                _eviction_words(each.eviction),
                *_eviction_reason(each.eviction),
                *_scheduling_words(each.scheduling),
                "-" if each.score is None else str(each.score.score),
                _kubelet_words(each.kubelet),
            ]
            for each in verdicts
        ),
    )


def _eviction_words(verdict: EvictionVerdict) -> str:
    from models.kubernetes import Eviction

    match verdict.eviction:
        case Eviction.NEVER:
            return "never"
        case Eviction.NOW:
            return "now"
        case _:
            return f"after {verdict.stay_seconds} s"


def _eviction_reason(verdict: EvictionVerdict) -> tuple[str, str]:
    from streams.cli.rules.words import NOTHING, taint_words, toleration_words

    if verdict.taint is None:
        return "no NoExecute taint", NOTHING
    tolerated = "nothing" if verdict.toleration is None else toleration_words(verdict.toleration)
    return taint_words(verdict.taint), tolerated


def _scheduling_words(verdict: FilterVerdict) -> tuple[str, str]:
    from streams.cli.rules.words import NOTHING, taint_words

    if verdict.fits:
        return "yes", NOTHING
    return "no", f"{verdict.reason}: {taint_words(verdict.taint)}"


def _kubelet_words(verdict: AdmissionVerdict) -> str:
    from streams.cli.rules.words import taint_words

    return "admits" if verdict.admitted else f"refuses: {taint_words(verdict.taint)}"


def _json(verdict: _Verdict) -> dict[str, object]:
    from streams.cli.rules.words import taint_json, toleration_json

    eviction, scheduling, kubelet = verdict.eviction, verdict.scheduling, verdict.kubelet
    return {
        "pod": verdict.pod.name,
        "node": verdict.node.name,
        "eviction": {
            "verdict": eviction.eviction,
            "staySeconds": eviction.stay_seconds,
            "taint": taint_json(eviction.taint),
            "toleration": toleration_json(eviction.toleration),
            "taints": [
                {"taint": taint_json(cover.taint), "toleration": toleration_json(cover.toleration)}
                for cover in eviction.coverage
            ],
        },
        "scheduling": {
            "fits": scheduling.fits,
            "code": scheduling.code,
            "plugin": scheduling.plugin,
            "reason": scheduling.reason,
            "taint": taint_json(scheduling.taint),
            "score": None if verdict.score is None else verdict.score.score,
            "softTaintsNotTolerated": [
                taint_json(taint) for taint in (() if verdict.score is None else verdict.score.intolerable)
            ],
        },
        "kubelet": {
            "admitted": kubelet.admitted,
            "reason": kubelet.reason,
            "message": kubelet.message,
            "taint": taint_json(kubelet.taint),
        },
    }
