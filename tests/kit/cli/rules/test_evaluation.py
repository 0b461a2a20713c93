"""That what looks alike is decided once changes no decision."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.cli.rules.checked_objects import NodeSubject, PodSubject
from evictstream.kit.cli.rules.evaluation import MOST_TOLERATIONS_KEPT, Evaluator
from evictstream.kit.rules.scheduling import filter_node, kubelet_admission, score_nodes
from evictstream.models.kubernetes import Taint, Toleration, Tolerations, eviction_verdict
from tests.harness.examples import examples

EFFECTS = ["NoExecute", "NoSchedule", "PreferNoSchedule"]
TAINTS = st.builds(Taint, st.sampled_from("ab"), st.just(""), st.sampled_from(EFFECTS), st.sampled_from([None, 1, 2]))
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.just("Exists"),
    value=st.just(""),
    effect=st.sampled_from(["", *EFFECTS]),
    toleration_seconds=st.sampled_from([None, 5, 60]),
)


def node_of(number: int, taints: tuple[Taint, ...], *, unschedulable: bool) -> NodeSubject:
    return NodeSubject(name=f"n{number}", labels={}, taints=taints, unschedulable=unschedulable, raw={})


def pod_of(tolerations: Tolerations, *, is_static: bool = False) -> PodSubject:
    annotations = {"kubernetes.io/config.source": "file"} if is_static else {}
    return PodSubject(
        name="d/p",
        namespace="d",
        labels={},
        node_name="",
        tolerations=tolerations,
        annotations=annotations,
        is_stored=True,
        is_daemon=False,
        host_network=False,
        requested=(),
        is_best_effort=True,
    )


def plain(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    return tuple(Taint(taint.key, taint.value, taint.effect) for taint in taints)


@settings(max_examples=examples(60), deadline=None)
@given(
    faces=st.lists(st.tuples(st.lists(TAINTS, max_size=3).map(tuple), st.booleans()), min_size=1, max_size=8),
    lists=st.lists(st.tuples(st.lists(TOLERATIONS, max_size=3).map(tuple), st.booleans()), min_size=1, max_size=4),
)
def test_an_outcome_depends_on_pod_and_node_alone(
    faces: list[tuple[tuple[Taint, ...], bool]], lists: list[tuple[Tolerations, bool]]
) -> None:
    nodes = [node_of(number, taints, unschedulable=cordoned) for number, (taints, cordoned) in enumerate(faces)]
    evaluator = Evaluator(nodes, comparison_operators=False)
    for tolerations, is_static in [*lists, *lists]:
        filters = [filter_node(tolerations, plain(node.taints), unschedulable=node.unschedulable) for node in nodes]
        candidates = {node.name: plain(node.taints) for node, found in zip(nodes, filters, strict=True) if found.fits}
        scores = {score.node: score.score for score in score_nodes(tolerations, candidates)}
        for index, node in enumerate(nodes):
            outcome = evaluator.outcome(pod_of(tolerations, is_static=is_static), index)
            assert outcome.eviction == eviction_verdict(tolerations, plain(node.taints))
            assert outcome.scheduling == filters[index]
            assert (outcome.score and outcome.score.score) == scores.get(node.name)
            assert outcome.kubelet == kubelet_admission(tolerations, plain(node.taints), is_static=is_static)


def test_alike_nodes_share_outcomes_in_a_bounded_cache() -> None:
    evaluator = Evaluator(
        [node_of(1, (), unschedulable=False), node_of(2, (), unschedulable=False)], comparison_operators=False
    )
    first = evaluator.outcome(pod_of(()), 0)
    assert evaluator.outcome(pod_of(()), 1) is first
    for number in range(MOST_TOLERATIONS_KEPT):
        evaluator.outcome(pod_of((Toleration(f"k{number}", "Exists", "", "", None),)), 0)
    assert evaluator.outcome(pod_of(()), 0) is not first
