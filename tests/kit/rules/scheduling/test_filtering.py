"""semantics.md 5, filter and cordon; cases of taint_toleration_test.go and node_unschedulable_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.scheduling import (
    UNSCHEDULABLE_TAINT,
    FilterCode,
    FilterVerdict,
    filter_cordon,
    filter_node,
    filter_taints,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, TaintCoverage, Toleration

DEDICATED = Taint("dedicated", "user1", NO_SCHEDULE)
FOO = Taint("foo", "bar", NO_SCHEDULE)
SLA = "node.kubernetes.io/sla"
EQUAL_USER1 = Toleration("dedicated", "Equal", "user1", NO_SCHEDULE)
EQUAL_USER2 = Toleration("dedicated", "Equal", "user2", NO_SCHEDULE)
NO_MATTER = Taint("dedicated", "user1", PREFER_NO_SCHEDULE)


def sla(number: str) -> Taint:
    return Taint(SLA, number, NO_SCHEDULE)


def than(operator: str, bound: str) -> Toleration:
    return Toleration(SLA, operator, bound, NO_SCHEDULE)


@pytest.mark.parametrize(
    ("tolerations", "taints", "gate", "refused_for"),
    [
        pytest.param((), (), False, None, id="5 no taints, no tolerations"),
        pytest.param((), (DEDICATED,), False, DEDICATED, id="TestTaintTolerationFilter no tolerations"),
        pytest.param(
            (Toleration("dedicated", "", "user1", NO_SCHEDULE),),
            (DEDICATED,),
            False,
            None,
            id="TestTaintTolerationFilter dedicated to user1",
        ),
        pytest.param(
            (EQUAL_USER2,), (DEDICATED,), False, DEDICATED, id="TestTaintTolerationFilter dedicated to another"
        ),
        pytest.param(
            (Toleration("foo", "Exists", "", NO_SCHEDULE),), (FOO,), False, None, id="TestTaintTolerationFilter Exists"
        ),
        pytest.param(
            (EQUAL_USER2, Toleration("foo", "Exists", "", NO_SCHEDULE)),
            (Taint("dedicated", "user2", NO_SCHEDULE), FOO),
            False,
            None,
            id="TestTaintTolerationFilter several of both",
        ),
        pytest.param(
            (Toleration("foo", "Equal", "bar", PREFER_NO_SCHEDULE),),
            (FOO,),
            False,
            FOO,
            id="TestTaintTolerationFilter another effect",
        ),
        pytest.param(
            (Toleration("foo", "Equal", "bar"),), (FOO,), False, None, id="TestTaintTolerationFilter no effect"
        ),
        pytest.param(
            (EQUAL_USER2,), (NO_MATTER,), False, None, id="TestTaintTolerationFilter PreferNoSchedule, no match"
        ),
        pytest.param((), (NO_MATTER,), False, None, id="TestTaintTolerationFilter PreferNoSchedule, no tolerations"),
        pytest.param(
            (than("Gt", "950"),), (sla("800"),), True, sla("800"), id="TestTaintTolerationFilter Gt, taint lower"
        ),
        pytest.param((than("Gt", "750"),), (sla("950"),), True, None, id="TestTaintTolerationFilter Gt, taint higher"),
        pytest.param(
            (than("Lt", "800"),), (sla("950"),), True, sla("950"), id="TestTaintTolerationFilter Lt, taint higher"
        ),
        pytest.param((than("Lt", "950"),), (sla("800"),), True, None, id="TestTaintTolerationFilter Lt, taint lower"),
        pytest.param(
            (than("Gt", "950"),), (sla("high"),), True, sla("high"), id="TestTaintTolerationFilter Gt, taint is a word"
        ),
        pytest.param(
            (than("Gt", "750"),), (sla("950"),), False, sla("950"), id="TestTaintTolerationFilterWithFeatureGate Gt off"
        ),
        pytest.param(
            (than("Lt", "950"),), (sla("800"),), False, sla("800"), id="TestTaintTolerationFilterWithFeatureGate Lt off"
        ),
        pytest.param(
            (EQUAL_USER1, than("Gt", "750")),
            (DEDICATED,),
            False,
            None,
            id="TestTaintTolerationFilterWithFeatureGate Equal counts with Gt off",
        ),
        pytest.param(
            (EQUAL_USER1, than("Gt", "750")),
            (DEDICATED, sla("950")),
            False,
            sla("950"),
            id="TestTaintTolerationFilterWithFeatureGate Gt needed but off",
        ),
        pytest.param(
            (), (Taint("a", "", NO_EXECUTE),), False, Taint("a", "", NO_EXECUTE), id="5 NoExecute refuses as well"
        ),
        pytest.param(
            (), (NO_MATTER, FOO, DEDICATED), False, FOO, id="3.3 the first hard taint that is left over, in node order"
        ),
        pytest.param(
            (Toleration("a", "Exists", "", NO_EXECUTE, 0),),
            (Taint("a", "", NO_EXECUTE),),
            False,
            None,
            id="4 zero seconds are enough to be scheduled",
        ),
        pytest.param(
            (
                Toleration("key1", "Equal", "value1", NO_SCHEDULE),
                Toleration("key1", "Equal", "value1", NO_EXECUTE),
            ),
            (
                Taint("key1", "value1", NO_SCHEDULE),
                Taint("key1", "value1", NO_EXECUTE),
                Taint("key2", "value2", NO_SCHEDULE),
            ),
            False,
            Taint("key2", "value2", NO_SCHEDULE),
            id="3.5 worked example: it cannot be scheduled",
        ),
    ],
)
def test_taints(
    tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], *, gate: bool, refused_for: Taint | None
) -> None:
    found = filter_taints(tolerations, taints, comparison_operators=gate)
    if refused_for is None:
        assert (found.code, found.plugin, found.reason, found.taint) == (FilterCode.SUCCESS, "", "", None)
        assert found.fits
    else:
        assert found.code == "UnschedulableAndUnresolvable"
        assert (found.plugin, found.reason) == ("TaintToleration", "node(s) had untolerated taint(s)")
        assert found.taint == refused_for
        assert not found.fits


@pytest.mark.parametrize(
    ("tolerations", "cordoned", "fits"),
    [
        pytest.param((), True, False, id="TestNodeUnschedulable unschedulable node"),
        pytest.param((), False, True, id="TestNodeUnschedulable normal node"),
        pytest.param(
            (Toleration("node.kubernetes.io/unschedulable", "", "", NO_SCHEDULE),),
            True,
            True,
            id="TestNodeUnschedulable with toleration",
        ),
        pytest.param((Toleration("", "Exists"),), True, True, id="5 Exists alone"),
        pytest.param((Toleration("node.kubernetes.io/unschedulable", "Exists"),), True, True, id="5 no effect"),
        pytest.param(
            (Toleration("node.kubernetes.io/unschedulable", "Exists", "", NO_EXECUTE),),
            True,
            False,
            id="5 another effect",
        ),
        pytest.param(
            (Toleration("node.kubernetes.io/unschedulable", "Equal", "true", NO_SCHEDULE),),
            True,
            False,
            id="5 the taint has no value",
        ),
        pytest.param((Toleration("other", "Exists"),), True, False, id="5 another key"),
    ],
)
def test_cordon(tolerations: tuple[Toleration, ...], *, cordoned: bool, fits: bool) -> None:
    found = filter_cordon(tolerations, unschedulable=cordoned)
    assert found.fits is fits
    if not fits:
        assert found == FilterVerdict(
            FilterCode.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "NodeUnschedulable",
            "node(s) were unschedulable",
            UNSCHEDULABLE_TAINT,
            (TaintCoverage(UNSCHEDULABLE_TAINT, None),),
        )


def test_the_cordon_gives_the_reason_before_the_taints() -> None:
    """Default order of plugins: pkg/scheduler/apis/config/v1/default_plugins.go"""
    assert filter_node((), (FOO, UNSCHEDULABLE_TAINT), unschedulable=True).reason == "node(s) were unschedulable"
    assert filter_node((), (FOO,)).reason == "node(s) had untolerated taint(s)"


def test_a_cordoned_node_is_judged_by_its_taints_too() -> None:
    tolerates_cordon = Toleration("node.kubernetes.io/unschedulable", "Exists")
    assert filter_node((tolerates_cordon,), (FOO,), unschedulable=True).taint == FOO
    assert filter_node((tolerates_cordon,), (UNSCHEDULABLE_TAINT,), unschedulable=True).fits


def test_every_hard_taint_is_listed_with_its_toleration() -> None:
    every = Toleration("", "Exists")
    found = filter_node((EQUAL_USER1, every), (NO_MATTER, FOO, DEDICATED), unschedulable=True)
    assert found.coverage == (
        TaintCoverage(UNSCHEDULABLE_TAINT, every),
        TaintCoverage(FOO, every),
        TaintCoverage(DEDICATED, EQUAL_USER1),
    )


def test_a_refusal_tells_what_was_looked_at() -> None:
    found = filter_taints((EQUAL_USER1,), (DEDICATED, FOO, Taint("c", "", NO_EXECUTE)))
    assert found.coverage == (TaintCoverage(DEDICATED, EQUAL_USER1), TaintCoverage(FOO, None))


def test_comparisons_reach_the_taints_of_a_node() -> None:
    assert filter_node((than("Gt", "5"),), (sla("9"),), comparison_operators=True).fits
    assert not filter_node((than("Gt", "5"),), (sla("9"),)).fits
