"""semantics.md 3.4, 3.5 and 4: when a pod must leave its node, and what decided."""

from __future__ import annotations

import sys
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.kubernetes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    EvictionTiming,
    EvictionVerdict,
    Taint,
    TaintCoverage,
    Toleration,
    eviction_verdict,
    stay_seconds,
    tolerations_in_use,
)

NEVER, NOW, AFTER = EvictionTiming.NEVER, EvictionTiming.NOW, EvictionTiming.AFTER_SECONDS
K1, K2, K3 = (Taint(key, "", NO_EXECUTE) for key in ("key1", "key2", "key3"))


def stay(key: str = "", seconds: int | None = None, effect: str = NO_EXECUTE) -> Toleration:
    return Toleration(key, "Exists", "", effect, seconds)


@pytest.mark.parametrize(
    ("tolerations", "taints", "eviction", "seconds", "taint", "toleration"),
    [
        pytest.param((), (), NEVER, None, None, None, id="3.4 no taints, no tolerations"),
        pytest.param((stay(seconds=5),), (), NEVER, None, None, None, id="3.4 no taints"),
        pytest.param(
            (),
            (Taint("a", "", NO_SCHEDULE), Taint("b", "", PREFER_NO_SCHEDULE)),
            NEVER,
            None,
            None,
            None,
            id="3.3 only NoExecute counts",
        ),
        pytest.param((), (K1,), NOW, 0, K1, None, id="3.4 no tolerations"),
        pytest.param((stay("other"),), (K1,), NOW, 0, K1, None, id="3.4 none matches"),
        pytest.param((stay("key1"),), (K1, K2), NOW, 0, K2, None, id="3.4 one of two is untolerated"),
        pytest.param((stay("key2"),), (K1, K2, K3), NOW, 0, K1, None, id="3.3 the first untolerated, in node order"),
        pytest.param((stay("key1", 5),), (K1, K2), NOW, 0, K2, None, id="4 untolerated beats seconds"),
        pytest.param((stay("key1"),), (K1,), NEVER, None, K1, stay("key1"), id="4 forever"),
        pytest.param(
            (stay("key1"), stay("key2")), (K2, K1), NEVER, None, K2, stay("key2"), id="4 all forever: the first taint"
        ),
        pytest.param((stay("key1", 60),), (K1,), AFTER, 60, K1, stay("key1", 60), id="4 seconds"),
        pytest.param(
            (stay("key1", 60), stay("key2", 20)), (K1, K2), AFTER, 20, K2, stay("key2", 20), id="4 the smallest"
        ),
        pytest.param(
            (stay("key1"), stay("key2", 20)), (K1, K2), AFTER, 20, K2, stay("key2", 20), id="4 forever and 20 s"
        ),
        pytest.param(
            (stay("key1", 20), stay("key2")), (K1, K2), AFTER, 20, K1, stay("key1", 20), id="4 20 s and forever"
        ),
        pytest.param(
            (stay("key1", 7), stay("key2", 7)), (K2, K1), AFTER, 7, K2, stay("key2", 7), id="4 same time: first taint"
        ),
        pytest.param((stay("key1", 0),), (K1,), NOW, 0, K1, stay("key1", 0), id="4 zero seconds"),
        pytest.param((stay("key1", -5),), (K1,), NOW, 0, K1, stay("key1", -5), id="4 negative seconds"),
        pytest.param(
            (stay("key1", 60), stay("key2", -1)), (K1, K2), NOW, 0, K2, stay("key2", -1), id="4 any with 0 or less"
        ),
        pytest.param(
            (stay("key1", 0), stay("key2")), (K2, K1), NOW, 0, K1, stay("key1", 0), id="4 zero beside forever"
        ),
        pytest.param((stay(seconds=5), stay()), (K1,), AFTER, 5, K1, stay(seconds=5), id="3.4 order decides: 5 s"),
        pytest.param((stay(), stay(seconds=5)), (K1,), NEVER, None, K1, stay(), id="3.4 order decides: forever"),
        pytest.param(
            (stay("key9", 1), stay("key1", 9)), (K1,), AFTER, 9, K1, stay("key1", 9), id="3.4 taint that is not there"
        ),
        pytest.param((stay(seconds=5),), (K1, K2), AFTER, 5, K1, stay(seconds=5), id="3.4 one for several taints"),
        pytest.param(
            (stay("key1", effect=NO_SCHEDULE),), (K1,), NOW, 0, K1, None, id="3.1 a toleration of another effect"
        ),
        pytest.param(
            (stay("key1", 10**30),), (K1,), AFTER, 10**30, K1, stay("key1", 10**30), id="4 seconds beyond 64 bit"
        ),
        pytest.param(
            (Toleration("key1", "Gt", "5", NO_EXECUTE),),
            (Taint("key1", "9", NO_EXECUTE),),
            NOW,
            0,
            Taint("key1", "9", NO_EXECUTE),
            None,
            id="3.2 Gt with the gate off",
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
            NEVER,
            None,
            Taint("key1", "value1", NO_EXECUTE),
            Toleration("key1", "Equal", "value1", NO_EXECUTE),
            id="3.5 worked example: it stays",
        ),
    ],
)
def test_verdicts(
    tolerations: tuple[Toleration, ...],
    taints: tuple[Taint, ...],
    eviction: EvictionTiming,
    seconds: int | None,
    taint: Taint | None,
    toleration: Toleration | None,
) -> None:
    found = eviction_verdict(tolerations, taints)
    assert (found.eviction, found.stay_seconds, found.taint, found.toleration) == (eviction, seconds, taint, toleration)


@pytest.mark.parametrize(
    ("operator", "number", "eviction"),
    [("Gt", "9", AFTER), ("Gt", "5", NOW), ("Lt", "4", AFTER), ("Lt", "6", NOW), ("Gt", "high", NOW)],
)
def test_comparisons_count_with_the_gate(operator: str, number: str, eviction: EvictionTiming) -> None:
    """semantics.md 3.2"""
    toleration = Toleration("key1", operator, "5", NO_EXECUTE, 30)
    found = eviction_verdict((toleration,), (Taint("key1", number, NO_EXECUTE),), comparison_operators=True)
    assert found.eviction == eviction


def test_every_taint_is_listed_with_its_toleration() -> None:
    one, two = stay("key1", 60), stay("key2")
    found = eviction_verdict((one, two), (K2, Taint("x", "", NO_SCHEDULE), K1))
    assert found == EvictionVerdict(AFTER, 60, K1, one, (TaintCoverage(K2, two), TaintCoverage(K1, one)))
    assert found.in_use == (two, one)


def test_nothing_is_in_use_once_a_taint_is_untolerated() -> None:
    """semantics.md 3.4; the matches of the other taints are still told"""
    one = stay("key1", 60)
    found = eviction_verdict((one,), (K1, K2, K3))
    assert found.coverage == (TaintCoverage(K1, one), TaintCoverage(K2, None), TaintCoverage(K3, None))
    assert found.in_use == ()


def test_nothing_is_in_use_without_taints() -> None:
    assert eviction_verdict((stay(),), ()).in_use == ()


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "1", "7", "x"])
EFFECTS = st.sampled_from([NO_EXECUTE, NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE])
TAINTS = st.lists(st.builds(Taint, KEYS, VALUES, EFFECTS), max_size=5)
TOLERATIONS = st.lists(
    st.builds(
        Toleration,
        st.sampled_from(["", "a", "b", "c"]),
        st.sampled_from(["", "Equal", "Exists", "Exists", "Gt", "Lt", "In"]),
        VALUES,
        st.sampled_from(["", NO_EXECUTE, NO_SCHEDULE]),
        st.none() | st.integers(-2, 9),
    ),
    max_size=5,
)


@given(TOLERATIONS, TAINTS, st.data(), st.booleans())
def test_verdicts_do_not_depend_on_the_order_of_taints(
    tolerations: list[Toleration],
    taints: list[Taint],
    data: st.DataObject,
    gate: bool,  # noqa: FBT001  # drawn
) -> None:
    shuffled = data.draw(st.permutations(taints))
    one = eviction_verdict(tolerations, taints, comparison_operators=gate)
    other = eviction_verdict(tolerations, shuffled, comparison_operators=gate)
    assert (one.eviction, one.stay_seconds) == (other.eviction, other.stay_seconds)


@given(TOLERATIONS, TAINTS, TAINTS, st.booleans())
def test_adding_a_taint_never_lengthens_a_stay(
    tolerations: list[Toleration],
    taints: list[Taint],
    added: list[Taint],
    gate: bool,  # noqa: FBT001  # drawn
) -> None:
    before = eviction_verdict(tolerations, taints, comparison_operators=gate).stay_seconds
    after = eviction_verdict(tolerations, taints + added, comparison_operators=gate).stay_seconds
    assert before is None or (after is not None and after <= before)


@given(TOLERATIONS, TAINTS, st.booleans())
def test_the_verdict_is_that_of_upstreams_controller(
    tolerations: list[Toleration],
    taints: list[Taint],
    gate: bool,  # noqa: FBT001  # drawn
) -> None:
    """The reference model of upstream's controller uses tolerations_in_use and stay_seconds."""
    found = eviction_verdict(tolerations, taints, comparison_operators=gate)
    no_execute = [taint for taint in taints if taint.effect == NO_EXECUTE]
    in_use = tolerations_in_use(tolerations, no_execute, comparison_operators=gate)
    if not no_execute:
        assert found.eviction == NEVER
    elif in_use is None:
        assert (found.eviction, found.in_use) == (NOW, ())
    else:
        assert (found.stay_seconds, found.in_use) == (stay_seconds(in_use), in_use)


# The case that costs most: no effect and no key sort anything out, and the last toleration matches.
HARDEST = (
    tuple(Toleration("k", "Equal", f"v{i}", NO_EXECUTE, 60) for i in range(5)),
    (Taint("k", "v4", NO_EXECUTE),) * 3,
)
HARDEST_GATED = (
    tuple(Toleration("k", "Gt", f"{100 - i}", NO_EXECUTE, 60) for i in range(5)),
    (Taint("k", "97", NO_EXECUTE),) * 3,
)
USUAL = (
    (
        stay("node.kubernetes.io/memory-pressure", effect=NO_SCHEDULE),
        stay("node.kubernetes.io/not-ready", 300),
        stay("node.kubernetes.io/unreachable", 300),
        Toleration("dedicated", "Equal", "gpu", NO_EXECUTE, 60),
        Toleration("team", "", "a", NO_EXECUTE),
    ),
    (
        Taint("dedicated", "gpu", NO_EXECUTE),
        Taint("node.kubernetes.io/unreachable", "", NO_EXECUTE),
        Taint("node.kubernetes.io/unreachable", "", NO_SCHEDULE),
    ),
)


YARDSTICK = "[number + 1 for number in range(100)]"


@pytest.mark.parametrize(
    ("case", "gate", "limit"),
    [
        pytest.param(USUAL, False, 2.5, id="usual lists"),
        pytest.param(HARDEST, False, 2.5, id="every pair is compared", marks=pytest.mark.slow),
        pytest.param(HARDEST_GATED, True, 4.0, id="every pair is compared as numbers", marks=pytest.mark.slow),
    ],
)
def test_a_verdict_costs_as_much_as_few_hundred_additions(
    case: tuple[tuple[Toleration, ...], tuple[Taint, ...]], *, gate: bool, limit: float
) -> None:
    """5 tolerations against 3 taints, some 3 us; the best of many runs beside the same of a list, on any machine."""
    tolerations, taints = case
    runs = timeit.repeat(
        lambda: eviction_verdict(tolerations, taints, comparison_operators=gate), number=200, repeat=300
    )
    assert min(runs) < limit * min(timeit.repeat(YARDSTICK, number=200, repeat=300))


@pytest.mark.slow
def test_a_million_verdicts_leave_nothing_behind() -> None:
    tolerations, taints = USUAL
    eviction_verdict(tolerations, taints)
    before = sys.getallocatedblocks()
    for _ in range(1_000_000):
        eviction_verdict(tolerations, taints)
    # A hundred blocks for what the test runner itself may keep meanwhile; one per verdict would be a million.
    assert sys.getallocatedblocks() - before < 100
