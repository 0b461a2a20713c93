"""semantics.md 5, score; cases of TestTaintTolerationScore and of normalize_score_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.scheduling import NodeScore, intolerable_taints, normalized_scores, score_nodes
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration

SLA = "node.kubernetes.io/sla"
CPU = Taint("cpu-type", "arm64", PREFER_NO_SCHEDULE)
DISK = Taint("disk-type", "ssd", PREFER_NO_SCHEDULE)
FOO_BAR = Toleration("foo", "Equal", "bar", PREFER_NO_SCHEDULE)
FOR_CPU = Toleration("cpu-type", "Equal", "arm64", PREFER_NO_SCHEDULE)
FOR_DISK = Toleration("disk-type", "Equal", "ssd", PREFER_NO_SCHEDULE)


def soft(key: str, value: str = "") -> Taint:
    return Taint(key, value, PREFER_NO_SCHEDULE)


@pytest.mark.parametrize(
    ("tolerations", "candidates", "gate", "scores"),
    [
        pytest.param(
            (FOO_BAR,),
            [(soft("foo", "bar"),), (soft("foo", "blah"),)],
            False,
            [100, 0],
            id="tolerated taints rank higher",
        ),
        pytest.param(
            (FOR_CPU, FOR_DISK),
            [(), (CPU,), (CPU, DISK)],
            False,
            [100, 100, 100],
            id="the number of tolerated taints does not matter",
        ),
        pytest.param((FOO_BAR,), [(), (CPU,), (CPU, DISK)], False, [100, 50, 0], id="the number of the others does"),
        pytest.param(
            (
                Toleration("cpu-type", "Equal", "arm64", NO_SCHEDULE),
                Toleration("disk-type", "Equal", "ssd", NO_SCHEDULE),
            ),
            [(), (Taint("cpu-type", "arm64", NO_SCHEDULE),), (CPU, DISK)],
            False,
            [100, 100, 0],
            id="only PreferNoSchedule is looked at",
        ),
        pytest.param((), [(), (CPU,)], False, [100, 0], id="no tolerations"),
        pytest.param(
            (Toleration(SLA, "Gt", "950", PREFER_NO_SCHEDULE),),
            [(soft(SLA, "800"),), (soft(SLA, "999"),)],
            True,
            [0, 100],
            id="Gt",
        ),
        pytest.param(
            (Toleration(SLA, "Lt", "800", PREFER_NO_SCHEDULE),),
            [(soft(SLA, "950"),), (soft(SLA, "700"),)],
            True,
            [0, 100],
            id="Lt",
        ),
        pytest.param(
            (Toleration(SLA, "Gt", "950", PREFER_NO_SCHEDULE),),
            [(), (soft(SLA, "high"),)],
            True,
            [100, 0],
            id="Gt, taint is a word",
        ),
        pytest.param(
            (Toleration(SLA, "Gt", "950", PREFER_NO_SCHEDULE),),
            [(), (soft(SLA, "999"),)],
            False,
            [100, 0],
            id="5 Gt with the gate off",
        ),
        pytest.param((Toleration("", "Exists"),), [(CPU, DISK), ()], False, [100, 100], id="5 no effect counts"),
        pytest.param(
            (Toleration("", "Exists", "", NO_EXECUTE),), [(CPU,), ()], False, [0, 100], id="5 another effect does not"
        ),
        pytest.param((), [(CPU,), (DISK,)], False, [0, 0], id="5 all equally bad"),
        pytest.param((), [(CPU,)], False, [0], id="5 a single candidate sets the scale"),
        pytest.param((), [()], False, [100], id="5 a single candidate without taints"),
        pytest.param((), [], False, [], id="5 no candidates"),
        pytest.param(
            (),
            [(soft("a"),), (soft("a"), soft("b")), (soft("a"), soft("b"), soft("c"))],
            False,
            [67, 34, 0],
            id="5 100 - floor(100 c / max)",
        ),
    ],
)
def test_scores(
    tolerations: tuple[Toleration, ...], candidates: list[tuple[Taint, ...]], *, gate: bool, scores: list[int]
) -> None:
    """TestTaintTolerationScore; ids with 5 are from semantics.md"""
    named = {f"node{index}": taints for index, taints in enumerate(candidates)}
    found = score_nodes(tolerations, named, comparison_operators=gate)
    assert [(rank.node, rank.score) for rank in found] == [(f"node{i}", score) for i, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        pytest.param([1, 2, 3, 4], [75, 50, 25, 0], id="TestDefaultNormalizeScore reverse"),
        pytest.param([1000, 10, 20, 30], [0, 99, 98, 97], id="TestDefaultNormalizeScore large numbers"),
        pytest.param([0, 1, 1, 1], [100, 0, 0, 0], id="TestDefaultNormalizeScore one is best"),
        pytest.param([1, 1, 1, 1], [0, 0, 0, 0], id="5 all equal"),
        pytest.param([0, 0, 0], [100, 100, 100], id="5 all zero"),
        pytest.param([], [], id="5 none"),
        pytest.param([0, 7], [100, 0], id="5 none and some"),
        pytest.param([1, 7], [86, 0], id="5 cut, not rounded"),
    ],
)
def test_normalized_scores(raw: list[int], scores: list[int]) -> None:
    assert normalized_scores(raw) == scores


def test_the_taints_that_count_against_a_node_are_listed() -> None:
    found = score_nodes((FOR_CPU,), {"a": (CPU, DISK, Taint("x", "", NO_SCHEDULE)), "b": (CPU,)})
    assert found == (NodeScore("a", 0, (DISK,)), NodeScore("b", 100, ()))


def test_intolerable_taints_stand_in_node_order() -> None:
    assert intolerable_taints((), (DISK, Taint("x", "", NO_EXECUTE), CPU)) == (DISK, CPU)


def test_a_candidate_changes_the_scores_of_the_others() -> None:
    """The worst one sets the scale."""
    few = score_nodes((), {"a": (CPU,), "b": ()})
    more = score_nodes((), {"a": (CPU,), "b": (), "c": (CPU, DISK)})
    assert (few[0].score, more[0].score) == (0, 50)
