"""semantics.md 1, 3 and 4 against the tables of Kubernetes' own tests; ids name test file, test and case."""

from __future__ import annotations

import pytest

from evictstream.models.kubernetes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    first_untolerated,
    is_canonical,
    is_same_taint,
    is_same_toleration,
    stay_seconds,
    taint_text,
    tolerates,
    tolerations_in_use,
)

SLA = "node.kubernetes.io/sla"
FOO = Toleration("foo", "Exists", "", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "taint", "matches"),
    [
        pytest.param(FOO, Taint("foo", "", NO_SCHEDULE), True, id="Exists, taint has no value"),
        pytest.param(FOO, Taint("foo", "bar", NO_SCHEDULE), True, id="Exists, taint has some value"),
        pytest.param(
            Toleration("", "Exists", "", NO_SCHEDULE), Taint("foo", "bar", NO_SCHEDULE), True, id="no key matches all"
        ),
        pytest.param(
            Toleration("foo", "Equal", "bar", NO_SCHEDULE),
            Taint("foo", "bar", NO_SCHEDULE),
            True,
            id="Equal, all equal",
        ),
        pytest.param(
            Toleration("foo", "Equal", "value1", NO_SCHEDULE),
            Taint("foo", "value2", NO_SCHEDULE),
            False,
            id="Equal, different values",
        ),
        pytest.param(
            Toleration("foo", "Equal", "bar", NO_SCHEDULE),
            Taint("foo", "bar", NO_EXECUTE),
            False,
            id="Equal, different effects",
        ),
        pytest.param(Toleration(SLA, "Gt", "950", NO_SCHEDULE), Taint(SLA, "800", NO_SCHEDULE), False, id="Gt, less"),
        pytest.param(Toleration(SLA, "Gt", "750", NO_SCHEDULE), Taint(SLA, "950", NO_SCHEDULE), True, id="Gt, greater"),
        pytest.param(
            Toleration(SLA, "Lt", "800", NO_SCHEDULE), Taint(SLA, "950", NO_SCHEDULE), False, id="Lt, greater"
        ),
        pytest.param(Toleration(SLA, "Lt", "950", NO_SCHEDULE), Taint(SLA, "800", NO_SCHEDULE), True, id="Lt, less"),
        pytest.param(Toleration(SLA, "Gt", "950", NO_SCHEDULE), Taint(SLA, "950", NO_SCHEDULE), False, id="Gt, equal"),
        pytest.param(Toleration(SLA, "Gt", "950", NO_SCHEDULE), Taint(SLA, "high", NO_SCHEDULE), False, id="Gt, word"),
        pytest.param(
            Toleration("test-key", "Gt", "-100", NO_SCHEDULE),
            Taint("test-key", "-200", NO_SCHEDULE),
            False,
            id="Gt, negative, less",
        ),
        pytest.param(
            Toleration("test-key", "Gt", "9223372036854775806", NO_SCHEDULE),
            Taint("test-key", "100", NO_SCHEDULE),
            False,
            id="Gt, large, less",
        ),
    ],
)
def test_toleration_tolerates_taint(toleration: Toleration, taint: Taint, *, matches: bool) -> None:
    """toleration_test.go TestTolerationToleratesTaint"""
    assert tolerates(toleration, taint, comparison_operators=True) is matches


@pytest.mark.parametrize(
    ("bound", "number", "operator", "matches"),
    [
        pytest.param("100", "200", "Gt", True, id="Gt greater"),
        pytest.param("200", "100", "Gt", False, id="Gt less"),
        pytest.param("100", "100", "Gt", False, id="Gt equal"),
        pytest.param("-100", "-50", "Gt", True, id="Gt negative, greater"),
        pytest.param("-50", "-100", "Gt", False, id="Gt negative, less"),
        pytest.param("0", "1", "Gt", True, id="Gt zero and positive"),
        pytest.param("9223372036854775806", "9223372036854775807", "Gt", True, id="Gt at the end of 64 bit"),
        pytest.param("200", "100", "Lt", True, id="Lt less"),
        pytest.param("100", "200", "Lt", False, id="Lt greater"),
        pytest.param("100", "100", "Lt", False, id="Lt equal"),
        pytest.param("-50", "-100", "Lt", True, id="Lt negative, less"),
        pytest.param("-100", "-50", "Lt", False, id="Lt negative, greater"),
        pytest.param("0", "-1", "Lt", True, id="Lt zero and negative"),
        pytest.param("abc", "100", "Gt", False, id="bound is a word"),
        pytest.param("", "100", "Gt", False, id="bound is empty"),
        pytest.param("0100", "200", "Gt", False, id="bound has a leading zero"),
        pytest.param("+100", "200", "Gt", False, id="bound has a plus"),
        pytest.param("100.5", "200", "Gt", False, id="bound has a fraction"),
        pytest.param("-", "100", "Gt", False, id="bound is a minus"),
        pytest.param("100", "xyz", "Gt", False, id="taint is a word"),
        pytest.param("100", "", "Gt", False, id="taint is empty"),
        pytest.param("100", "0200", "Gt", False, id="taint has a leading zero"),
        pytest.param("100", "+200", "Lt", False, id="taint has a plus"),
        pytest.param("100", " 200 ", "Lt", False, id="taint has spaces"),
        pytest.param("0", "0", "Gt", False, id="Gt both zero"),
        pytest.param("0", "0", "Lt", False, id="Lt both zero"),
        pytest.param("0", "9223372036854775807", "Gt", True, id="Gt highest"),
        pytest.param("0", "-9223372036854775808", "Lt", True, id="Lt lowest"),
        pytest.param("0", "9223372036854775808", "Gt", False, id="3.2 taint beyond 64 bit"),
        pytest.param("-9223372036854775809", "0", "Gt", False, id="3.2 bound beyond 64 bit"),
    ],
)
def test_compare_numeric_values(bound: str, number: str, operator: str, *, matches: bool) -> None:
    """toleration_test.go TestCompareNumericValues; with the gate off nothing matches"""
    toleration = Toleration("k", operator, bound)
    assert tolerates(toleration, Taint("k", number, NO_EXECUTE), comparison_operators=True) is matches
    assert not tolerates(toleration, Taint("k", number, NO_EXECUTE))


ALL = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)


@pytest.mark.parametrize(
    ("tolerations", "taints", "effects", "left_over"),
    [
        pytest.param((), (), ALL, None, id="empty tolerations, empty taints"),
        pytest.param((FOO,), (), ALL, None, id="some tolerations, empty taints"),
        pytest.param((FOO,), (Taint("foo", "", NO_SCHEDULE),), ALL, None, id="all match"),
        pytest.param((FOO,), (Taint("bar", "", NO_SCHEDULE),), (), None, id="none applies to the filter"),
        pytest.param(
            (FOO,), (Taint("bar", "", NO_SCHEDULE),), None, Taint("bar", "", NO_SCHEDULE), id="no filter: all apply"
        ),
        pytest.param(
            (Toleration("foo", "Exists", "", NO_EXECUTE),),
            (Taint("foo", "", NO_EXECUTE), Taint("bar", "", NO_SCHEDULE)),
            (NO_EXECUTE,),
            None,
            id="those of the filter match",
        ),
        pytest.param(
            (Toleration(SLA, "Gt", "950", NO_SCHEDULE),),
            (Taint(SLA, "800", NO_SCHEDULE),),
            ALL,
            Taint(SLA, "800", NO_SCHEDULE),
            id="Gt, taint below",
        ),
        pytest.param(
            (Toleration(SLA, "Gt", "750", NO_SCHEDULE),), (Taint(SLA, "950", NO_SCHEDULE),), ALL, None, id="Gt, above"
        ),
        pytest.param(
            (Toleration(SLA, "Lt", "800", NO_SCHEDULE),),
            (Taint(SLA, "950", NO_SCHEDULE),),
            ALL,
            Taint(SLA, "950", NO_SCHEDULE),
            id="Lt, taint above",
        ),
        pytest.param(
            (Toleration(SLA, "Gt", "950", NO_SCHEDULE),),
            (Taint(SLA, "high", NO_SCHEDULE),),
            ALL,
            Taint(SLA, "high", NO_SCHEDULE),
            id="Gt, taint is a word",
        ),
        pytest.param(
            (Toleration(SLA, "Gt", "950", NO_SCHEDULE), Toleration(SLA, "Exists", "", NO_SCHEDULE)),
            (Taint(SLA, "high", NO_SCHEDULE),),
            ALL,
            None,
            id="a word for Gt does not hinder a later toleration",
        ),
    ],
)
def test_find_matching_untolerated_taint(
    tolerations: tuple[Toleration, ...],
    taints: tuple[Taint, ...],
    effects: tuple[str, ...] | None,
    left_over: Taint | None,
) -> None:
    """component-helpers/scheduling/corev1/helpers_test.go TestFindMatchingUntoleratedTaint"""
    assert first_untolerated(tolerations, taints, effects, comparison_operators=True) == left_over


@pytest.mark.parametrize(
    ("seconds", "stay"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([None], None, id="forever"),
        pytest.param([1, 2], 1, id="the smaller"),
        pytest.param([1, None], 1, id="1 s and forever"),
        pytest.param([None, 1], 1, id="forever and 1 s"),
    ],
)
def test_get_min_toleration_time(seconds: list[int | None], stay: int | None) -> None:
    """taint_eviction_test.go TestGetMinTolerationTime; -1 is forever there"""
    assert stay_seconds([Toleration(toleration_seconds=value) for value in seconds]) == stay


KEY1, KEY2 = Taint("key1", "value1", NO_SCHEDULE), Taint("key2", "value2", NO_SCHEDULE)
FOR1, FOR2 = Toleration("key1", "", "value1", NO_SCHEDULE), Toleration("key2", "", "value2", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("taints", "tolerations", "in_use"),
    [
        pytest.param((), (FOR1,), (), id="no taints: tolerated, nothing in use"),
        pytest.param((KEY1,), (), None, id="no tolerations"),
        pytest.param((KEY1, KEY2), (FOR1, FOR2), (FOR1, FOR2), id="all tolerated"),
        pytest.param((KEY2, KEY1), (FOR1, FOR2), (FOR2, FOR1), id="in node order"),
        pytest.param((KEY1, KEY2), (FOR1,), None, id="one is not: nothing in use"),
    ],
)
def test_get_matching_tolerations(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...], in_use: tuple[Toleration, ...] | None
) -> None:
    """pkg/apis/core/v1/helper/helpers.go GetMatchingTolerations"""
    assert tolerations_in_use(tolerations, taints) == in_use


@pytest.mark.parametrize(
    ("taint", "text"),
    [
        pytest.param(Taint("foo", "bar", NO_SCHEDULE), "foo=bar:NoSchedule", id="all"),
        pytest.param(Taint("foo", "", NO_SCHEDULE), "foo:NoSchedule", id="no value"),
        pytest.param(Taint("foo"), "foo", id="key alone"),
        pytest.param(Taint("foo", "bar"), "foo=bar:", id="no effect"),
    ],
)
def test_taint_to_string(taint: Taint, text: str) -> None:
    """taint_test.go TestTaintToString"""
    assert taint_text(taint) == text


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(Taint("foo", "bar", NO_SCHEDULE), True, id="all equal"),
        pytest.param(Taint("foo", "different-value", NO_SCHEDULE), True, id="another value"),
        pytest.param(Taint("foo", "bar", NO_SCHEDULE, 1), True, id="another timeAdded"),
        pytest.param(Taint("different-key", "bar", NO_SCHEDULE), False, id="another key"),
        pytest.param(Taint("foo", "bar", PREFER_NO_SCHEDULE), False, id="another effect"),
    ],
)
def test_match_taint(other: Taint, *, same: bool) -> None:
    """taint_test.go TestMatchTaint"""
    assert is_same_taint(Taint("foo", "bar", NO_SCHEDULE), other) is same


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(Toleration("k", "Equal", "v", NO_EXECUTE, 5), True, id="other seconds"),
        pytest.param(Toleration("k", "Equal", "v", NO_EXECUTE), True, id="all equal"),
        pytest.param(Toleration("l", "Equal", "v", NO_EXECUTE), False, id="another key"),
        pytest.param(Toleration("k", "", "v", NO_EXECUTE), False, id="no operator is another one"),
        pytest.param(Toleration("k", "Equal", "w", NO_EXECUTE), False, id="another value"),
        pytest.param(Toleration("k", "Equal", "v", NO_SCHEDULE), False, id="another effect"),
    ],
)
def test_match_toleration(other: Toleration, *, same: bool) -> None:
    """toleration.go MatchToleration"""
    assert is_same_toleration(Toleration("k", "Equal", "v", NO_EXECUTE), other) is same


def test_a_canonical_integer_may_have_any_length() -> None:
    """semantics.md 2.4"""
    assert is_canonical("9" * 100)
    assert not is_canonical("0" * 100)
