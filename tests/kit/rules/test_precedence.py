"""semantics.md 3.4 and 13 row 23: where only the order of tolerations decides."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.precedence import conceivable_taints, order_conflict, order_conflicts
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, Taint, Toleration

FIVE = Toleration("", "Exists", "", NO_EXECUTE, 5)
FOR_EVER = Toleration("", "Exists")
TAINT = Taint("k", "v", NO_EXECUTE)


@pytest.mark.parametrize(
    ("tolerations", "taint", "expected"),
    [
        pytest.param((FIVE, FOR_EVER), TAINT, (0, 1), id="3.4 Exists for 5 s before Exists forever"),
        pytest.param((FOR_EVER, FIVE), TAINT, (0, 1), id="3.4 the reverse order"),
        pytest.param((FIVE, FIVE), TAINT, None, id="same time twice"),
        pytest.param((FIVE,), TAINT, None, id="one alone"),
        pytest.param((), TAINT, None, id="none"),
        pytest.param((FIVE, FIVE, FOR_EVER), TAINT, (0, 2), id="the first one that says another time"),
        pytest.param((Toleration("other", "Exists"), FIVE, FOR_EVER), TAINT, (1, 2), id="those that match count"),
        pytest.param((FIVE, Toleration("other", "Exists")), TAINT, None, id="3.4 another taint does not count"),
        pytest.param(
            (Toleration("", "Exists", "", NO_EXECUTE, 0), Toleration("", "Exists", "", NO_EXECUTE, -5)),
            TAINT,
            None,
            id="4 negative is 0",
        ),
        pytest.param((FIVE, FOR_EVER), Taint("k", "v", NO_SCHEDULE), None, id="no time counts without NoExecute"),
    ],
)
def test_order_decides(tolerations: tuple[Toleration, ...], taint: Taint, expected: tuple[int, int] | None) -> None:
    found = order_conflict(tolerations, taint)
    assert (None if found is None else (found.in_use, found.passed_over)) == expected


def test_comparisons_count_only_with_the_gate() -> None:
    tolerations = (Toleration("k", "Gt", "5", NO_EXECUTE, 5), Toleration("k", "Exists"))
    taint = Taint("k", "7", NO_EXECUTE)
    assert order_conflict(tolerations, taint) is None
    assert order_conflict(tolerations, taint, comparison_operators=True) is not None


def test_conflicts_come_in_the_order_of_the_taints() -> None:
    taints = (Taint("a", "", NO_EXECUTE), Taint("b", "", NO_SCHEDULE), Taint("c", "", NO_EXECUTE))
    assert [found.taint.key for found in order_conflicts((FIVE, FOR_EVER), taints)] == ["a", "c"]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param((), [], id="only the health taints"),
        pytest.param((Toleration("k", "Exists"),), [("k", "")], id="a key"),
        pytest.param((Toleration("k", "Equal", "v"),), [("k", ""), ("k", "v")], id="its value and another one"),
        pytest.param((Toleration("k", "Gt", "5"),), [("k", ""), ("k", "6")], id="a number above"),
        pytest.param((Toleration("k", "Lt", "5"),), [("k", ""), ("k", "4")], id="a number below"),
        pytest.param((Toleration("k", "Gt", "x"),), [("k", "")], id="no number"),
        pytest.param(
            (Toleration("k", "Exists"), Toleration("l", "Equal", "v")),
            [("k", ""), ("l", ""), ("l", "v")],
            id="values stay with their key",
        ),
    ],
)
def test_taints_made_from_tolerations(tolerations: tuple[Toleration, ...], expected: list[tuple[str, str]]) -> None:
    found = [(taint.key, taint.value) for taint in conceivable_taints(tolerations)]
    assert found == [(NOT_READY, ""), (UNREACHABLE, ""), *expected]
    assert {taint.effect for taint in conceivable_taints(tolerations)} == {NO_EXECUTE}
