"""semantics.md 3 and 4; many cases are those of toleration_test.go, helpers_test.go and taint_eviction_test.go."""

from __future__ import annotations

import pytest

from evictstream.models.kubernetes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    first_match,
    first_untolerated,
    is_shadowing,
    stay_seconds,
    tolerates,
    tolerations_in_use,
)

TAINT = Taint("foo", "bar", NO_EXECUTE)
FOR_EVER = Toleration(operator="Exists")
FIVE_SECONDS = Toleration(operator="Exists", effect=NO_EXECUTE, toleration_seconds=5)


@pytest.mark.parametrize(
    ("toleration", "taint", "matches"),
    [
        pytest.param(Toleration("foo", "Exists", "", NO_EXECUTE), TAINT, True, id="3.1 key, Exists, effect"),
        pytest.param(Toleration("foo", "Exists"), TAINT, True, id="3.1 no effect matches every effect"),
        pytest.param(Toleration("foo", "Exists", "", NO_SCHEDULE), TAINT, False, id="3.1 another effect"),
        pytest.param(Toleration("", "Exists", "", NO_EXECUTE), TAINT, True, id="3.1 no key matches every key"),
        pytest.param(Toleration("other", "Exists", "", NO_EXECUTE), TAINT, False, id="3.1 another key"),
        pytest.param(Toleration("foo", "Equal", "bar", NO_EXECUTE), TAINT, True, id="3.1 Equal, same value"),
        pytest.param(Toleration("foo", "", "bar", NO_EXECUTE), TAINT, True, id="3.1 empty operator is Equal"),
        pytest.param(Toleration("foo", "Equal", "other", NO_EXECUTE), TAINT, False, id="3.1 Equal, another value"),
        pytest.param(Toleration("foo", "Equal"), Taint("foo", "", NO_EXECUTE), True, id="3.1 absent values are equal"),
        pytest.param(Toleration("foo", "Equal"), TAINT, False, id="3.1 absent value is the empty one"),
        pytest.param(Toleration("foo", "Exists", "other"), TAINT, True, id="3.1 Exists ignores the value"),
        pytest.param(Toleration("foo", "In", "bar"), TAINT, False, id="3.1 unknown operator matches nothing"),
        pytest.param(Toleration("foo", "exists"), TAINT, False, id="3.1 case of the operator"),
        pytest.param(Toleration("Foo", "Exists"), TAINT, False, id="3.1 case of the key"),
        pytest.param(Toleration("foo", "Equal", "Bar"), TAINT, False, id="3.1 case of the value"),
        pytest.param(FOR_EVER, TAINT, True, id="3.1 Exists alone tolerates everything"),
        pytest.param(Toleration("", "Equal", "bar"), TAINT, True, id="3.1 empty key with Equal is not refused here"),
        pytest.param(
            Toleration("foo", "Exists", "", NO_EXECUTE, 5),
            Taint("foo", "bar", NO_EXECUTE, 1),
            True,
            id="3.1 seconds and timeAdded play no part",
        ),
    ],
)
def test_one_toleration_one_taint(toleration: Toleration, taint: Taint, matches: bool) -> None:  # noqa: FBT001
    assert tolerates(toleration, taint) is matches


@pytest.mark.parametrize(
    ("operator", "bound", "number", "matches"),
    [
        pytest.param("Gt", "750", "800", True, id="taint above"),
        pytest.param("Gt", "750", "750", False, id="Gt, equal numbers never match"),
        pytest.param("Gt", "750", "700", False, id="taint below"),
        pytest.param("Lt", "750", "700", True, id="Lt, taint below"),
        pytest.param("Lt", "750", "750", False, id="Lt, equal numbers never match"),
        pytest.param("Lt", "750", "800", False, id="Lt, taint above"),
        pytest.param("Gt", "-5", "3", True, id="negative bound"),
        pytest.param("Lt", "3", "-5", True, id="negative taint value"),
        pytest.param("Gt", "9", "10", True, id="as numbers, not as text"),
        pytest.param("Gt", "07", "800", False, id="bound not canonical"),
        pytest.param("Gt", "7", "0800", False, id="taint value not canonical"),
        pytest.param("Gt", "7", "", False, id="taint without value"),
        pytest.param("Gt", "7", "9223372036854775808", False, id="beyond 64 bit"),
        pytest.param("Lt", "9223372036854775807", "9223372036854775806", True, id="at the end of 64 bit"),
    ],
)
def test_comparison_operators(operator: str, bound: str, number: str, matches: bool) -> None:  # noqa: FBT001
    """semantics.md 3.2; off, such a toleration matches nothing"""
    toleration = Toleration("gpu", operator, bound, NO_EXECUTE)
    taint = Taint("gpu", number, NO_EXECUTE)
    assert tolerates(toleration, taint, comparison_operators=True) is matches
    assert tolerates(toleration, taint) is False


KEY1 = Taint("key1", "value1", NO_EXECUTE)
KEY2 = Taint("key2", "value2", NO_SCHEDULE)
SOFT = Taint("soft", "", PREFER_NO_SCHEDULE)
WORKED_NODE = (Taint("key1", "value1", NO_SCHEDULE), KEY1, KEY2)
WORKED_POD = (Toleration("key1", "Equal", "value1", NO_SCHEDULE), Toleration("key1", "Equal", "value1", NO_EXECUTE))


@pytest.mark.parametrize(
    ("tolerations", "taints", "effects", "left_over"),
    [
        pytest.param((), (), [NO_EXECUTE], None, id="3.3 no taints, no tolerations"),
        pytest.param((), (KEY1,), [NO_EXECUTE], KEY1, id="3.3 no tolerations"),
        pytest.param((), (KEY2, KEY1), [NO_EXECUTE], KEY1, id="3.3 filter on the effect"),
        pytest.param((), (KEY2, KEY1), [NO_SCHEDULE, NO_EXECUTE], KEY2, id="3.3 first in node order"),
        pytest.param((), (SOFT,), [NO_SCHEDULE, NO_EXECUTE], None, id="3.3 PreferNoSchedule is not hard"),
        pytest.param(WORKED_POD, WORKED_NODE, [NO_SCHEDULE, NO_EXECUTE], KEY2, id="3.5 cannot be scheduled"),
        pytest.param(WORKED_POD, WORKED_NODE, [NO_EXECUTE], None, id="3.5 but stays"),
    ],
)
def test_first_untolerated_taint(
    tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], effects: list[str], left_over: Taint | None
) -> None:
    assert first_untolerated(tolerations, taints, effects) == left_over


ONE = Toleration("key1", "Exists", "", NO_EXECUTE, 1)
HUNDRED = Toleration("key2", "Exists", "", NO_EXECUTE, 100)
K1, K2 = Taint("key1", "", NO_EXECUTE), Taint("key2", "", NO_EXECUTE)


@pytest.mark.parametrize(
    ("tolerations", "taints", "in_use"),
    [
        pytest.param((ONE,), (), (), id="no taints: tolerated, nothing in use"),
        pytest.param((), (K1,), None, id="taints but no tolerations"),
        pytest.param((ONE, HUNDRED), (K2, K1), (HUNDRED, ONE), id="in node order"),
        pytest.param((ONE,), (K1, K2), None, id="one taint without: nothing in use"),
        pytest.param((FIVE_SECONDS, FOR_EVER), (K1,), (FIVE_SECONDS,), id="first match: 5 s"),
        pytest.param((FOR_EVER, FIVE_SECONDS), (K1,), (FOR_EVER,), id="first match: forever"),
        pytest.param((ONE, HUNDRED), (K2,), (HUNDRED,), id="one for a taint that is not there does not count"),
        pytest.param((FIVE_SECONDS,), (K1, K2), (FIVE_SECONDS, FIVE_SECONDS), id="one for several taints"),
    ],
)
def test_tolerations_in_use(
    tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], in_use: tuple[Toleration, ...] | None
) -> None:
    """semantics.md 3.4"""
    assert tolerations_in_use(tolerations, taints) == in_use


@pytest.mark.parametrize(
    ("seconds", "stay"),
    [
        pytest.param([], 0, id="none in use: evict now"),
        pytest.param([0], 0, id="zero"),
        pytest.param([-5], 0, id="negative counts as 0"),
        pytest.param([60, -1], 0, id="any with 0 or less"),
        pytest.param([60, 20], 20, id="the smallest"),
        pytest.param([None, 60], 60, id="forever and 60 s"),
        pytest.param([None], None, id="forever"),
        pytest.param([None, None], None, id="all forever"),
        pytest.param([10**30], 10**30, id="beyond 64 bit"),
    ],
)
def test_time_to_stay(seconds: list[int | None], stay: int | None) -> None:
    """semantics.md 4, TestGetMinTolerationTime"""
    in_use = [Toleration("key", "Exists", "", NO_EXECUTE, value) for value in seconds]
    assert stay_seconds(in_use) == stay


def test_no_match_gives_none() -> None:
    assert first_match((ONE,), K2) is None


@pytest.mark.parametrize(
    ("tolerations", "warns"),
    [
        pytest.param((FIVE_SECONDS, FOR_EVER), True, id="5 s hides forever"),
        pytest.param((FOR_EVER, FIVE_SECONDS), True, id="forever hides 5 s"),
        pytest.param((FIVE_SECONDS, FIVE_SECONDS), False, id="same time"),
        pytest.param((FIVE_SECONDS, Toleration("other", "Exists")), False, id="the later one does not match"),
        pytest.param((FIVE_SECONDS,), False, id="only one"),
        pytest.param((), False, id="none"),
        pytest.param(
            (
                Toleration("foo", "Exists", "", NO_EXECUTE, -1),
                Toleration("foo", "Exists", "", NO_EXECUTE, 0),
            ),
            False,
            id="negative and zero are the same time",
        ),
    ],
)
def test_warns_of_a_later_toleration_with_another_time(
    tolerations: tuple[Toleration, ...],
    warns: bool,  # noqa: FBT001
) -> None:
    """semantics.md 13 row 23"""
    assert is_shadowing(tolerations, TAINT) is warns
