"""semantics.md 9.4; the cases are those of pkg/util/tolerations/tolerations_test.go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.rules.admission import (
    AddedBy,
    AdmittedToleration,
    first_not_allowed,
    is_superset,
    merge,
    plain,
    written,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Toleration

EQUAL, EXISTS = "Equal", "Exists"

NAMED = {
    "all": Toleration("", EXISTS),
    "all-nosched": Toleration("", EXISTS, "", NO_SCHEDULE),
    "all-noexec": Toleration("", EXISTS, "", NO_EXECUTE),
    "foo": Toleration("foo", EXISTS),
    "foo-bar": Toleration("foo", EQUAL, "bar"),
    "foo-nosched": Toleration("foo", EXISTS, "", NO_SCHEDULE),
    "foo-bar-nosched": Toleration("foo", EQUAL, "bar", NO_SCHEDULE),
    "foo-baz-nosched": Toleration("foo", EQUAL, "baz", NO_SCHEDULE),
    "faz-nosched": Toleration("faz", EXISTS, "", NO_SCHEDULE),
    "faz-baz-nosched": Toleration("faz", EQUAL, "baz", NO_SCHEDULE),
    "foo-prefnosched": Toleration("foo", EXISTS, "", PREFER_NO_SCHEDULE),
    "foo-noexec": Toleration("foo", EXISTS, "", NO_EXECUTE),
    "foo-bar-noexec": Toleration("foo", EQUAL, "bar", NO_EXECUTE),
    "foo-noexec-10": Toleration("foo", EXISTS, "", NO_EXECUTE, 10),
    "foo-noexec-0": Toleration("foo", EXISTS, "", NO_EXECUTE, 0),
    "foo-bar-noexec-10": Toleration("foo", EQUAL, "bar", NO_EXECUTE, 10),
}

# What each covers besides itself. Those that upstream does not list cover nothing else.
COVERS = {
    "all": set(NAMED) - {"all"},
    "all-nosched": {"foo-nosched", "foo-bar-nosched", "foo-baz-nosched", "faz-nosched", "faz-baz-nosched"},
    "all-noexec": {"foo-noexec", "foo-bar-noexec", "foo-noexec-10", "foo-noexec-0", "foo-bar-noexec-10"},
    "foo": {
        "foo-bar",
        "foo-nosched",
        "foo-bar-nosched",
        "foo-baz-nosched",
        "foo-prefnosched",
        "foo-noexec",
        "foo-bar-noexec",
        "foo-noexec-10",
        "foo-noexec-0",
        "foo-bar-noexec-10",
    },
    "foo-bar": {"foo-bar-nosched", "foo-bar-noexec", "foo-bar-noexec-10"},
    "foo-nosched": {"foo-bar-nosched", "foo-baz-nosched"},
    "faz-nosched": {"faz-baz-nosched"},
    "foo-noexec": {"foo-bar-noexec", "foo-noexec-10", "foo-noexec-0", "foo-bar-noexec-10"},
    "foo-bar-noexec": {"foo-bar-noexec-10"},
    "foo-noexec-10": {"foo-noexec-0", "foo-bar-noexec-10"},
}


@pytest.mark.parametrize("narrow", NAMED)
@pytest.mark.parametrize("wide", NAMED)
def test_superset_as_in_upstream_TestIsSuperset(wide: str, narrow: str) -> None:  # noqa: N802 - the name upstream
    expected = wide == narrow or narrow in COVERS.get(wide, set())
    assert is_superset(NAMED[wide], NAMED[narrow]) is expected


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        pytest.param(Toleration("k", "", "v"), Toleration("k", EQUAL, "v"), True, id="isSuperset: empty operator wide"),
        pytest.param(
            Toleration("k", EQUAL, "v"), Toleration("k", "", "v"), False, id="isSuperset: empty operator narrow"
        ),
        pytest.param(
            Toleration("k", "", "v"), Toleration("k", "", "v", NO_EXECUTE), False, id="isSuperset: both operators empty"
        ),
        pytest.param(Toleration("k", "", "v"), Toleration("k", "", "v"), True, id="isSuperset: equal ones always"),
        pytest.param(
            Toleration("", EQUAL, "v"), Toleration("k", EQUAL, "v"), False, id="isSuperset: wildcard is Exists"
        ),
        pytest.param(Toleration("k", EXISTS), Toleration("", EXISTS), False, id="isSuperset: a key is no wildcard"),
        pytest.param(
            Toleration("k", EXISTS, "", NO_EXECUTE), Toleration("k", EXISTS), False, id="isSuperset: effect is narrower"
        ),
        pytest.param(Toleration("k", EXISTS), Toleration("k", "Gt", "5"), True, id="isSuperset: Exists covers Gt"),
        pytest.param(Toleration("k", "Gt", "5"), Toleration("k", "Gt", "7"), False, id="isSuperset: Gt covers nothing"),
        pytest.param(
            Toleration("k", "Gt", "5"), Toleration("k", "Gt", "5"), True, id="isSuperset: Gt covers its equal"
        ),
        pytest.param(
            Toleration("k", EXISTS, "", NO_EXECUTE, 10),
            Toleration("k", EXISTS, "", NO_EXECUTE, 10),
            True,
            id="isSuperset: same seconds",
        ),
        pytest.param(
            Toleration("k", EXISTS, "", NO_EXECUTE, 10),
            Toleration("k", EXISTS, "", NO_EXECUTE, 11),
            False,
            id="isSuperset: more seconds",
        ),
        pytest.param(
            Toleration("k", EXISTS, "", "", 10),
            Toleration("k", EXISTS, "", NO_EXECUTE),
            True,
            id="isSuperset: seconds without NoExecute on the wide one are not looked at",
        ),
        pytest.param(
            Toleration("k", EXISTS, "x"), Toleration("k", EQUAL, "v"), True, id="isSuperset: value of Exists ignored"
        ),
    ],
)
def test_superset_in_cases_that_upstream_leaves_out(wide: Toleration, narrow: Toleration, *, expected: bool) -> None:
    assert is_superset(wide, narrow) is expected


def of(*names: str) -> tuple[Toleration, ...]:
    return tuple(NAMED[name] for name in names)


@pytest.mark.parametrize(
    ("tolerations", "allowed", "refused"),
    [
        pytest.param(
            of("foo-bar-nosched", "foo-baz-nosched"),
            of("foo-bar-nosched", "foo-baz-nosched"),
            None,
            id="TestVerifyAgainstWhitelist: equal input and whitelist",
        ),
        pytest.param(
            of("foo-bar-nosched", "foo-bar-nosched"),
            of("foo-bar-nosched", "foo-baz-nosched"),
            None,
            id="TestVerifyAgainstWhitelist: duplicate input allowed",
        ),
        pytest.param(
            of("foo-bar-nosched", "foo-bar-nosched"), of("all"), None, id="TestVerifyAgainstWhitelist: allow all"
        ),
        pytest.param(
            of("foo-bar-nosched", "foo-bar-nosched"),
            of("foo-baz-nosched"),
            NAMED["foo-bar-nosched"],
            id="TestVerifyAgainstWhitelist: duplicate input forbidden",
        ),
        pytest.param(
            of("foo-baz-nosched", "foo-bar-nosched"),
            of("foo-baz-nosched"),
            NAMED["foo-bar-nosched"],
            id="TestVerifyAgainstWhitelist: value mismatch",
        ),
        pytest.param(
            of("foo-bar-nosched"),
            of("foo-baz-nosched"),
            NAMED["foo-bar-nosched"],
            id="TestVerifyAgainstWhitelist: input does not exist in whitelist",
        ),
        pytest.param(
            of("foo-bar"), of("foo-nosched"), NAMED["foo-bar"], id="TestVerifyAgainstWhitelist: disjoint sets"
        ),
        pytest.param(of("foo-bar"), (), None, id="TestVerifyAgainstWhitelist: empty whitelist"),
        pytest.param((), of("foo-bar"), None, id="TestVerifyAgainstWhitelist: empty input"),
        pytest.param(
            (Toleration("foo", EQUAL, "bar", NO_SCHEDULE),),
            (Toleration("foo", EQUAL, "bar", NO_EXECUTE),),
            Toleration("foo", EQUAL, "bar", NO_SCHEDULE),
            id="TestVerifyAgainstWhitelist: another effect",
        ),
    ],
)
def test_allow_list(
    tolerations: tuple[Toleration, ...], allowed: tuple[Toleration, ...], refused: Toleration | None
) -> None:
    assert first_not_allowed(tolerations, allowed) == refused


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        pytest.param(
            of("foo-bar-nosched", "faz-baz-nosched", "foo-noexec-10"),
            of("foo-prefnosched", "foo-baz-nosched"),
            of("foo-bar-nosched", "faz-baz-nosched", "foo-noexec-10", "foo-prefnosched", "foo-baz-nosched"),
            id="TestMergeTolerations: disjoint",
        ),
        pytest.param(
            of("foo-bar-nosched", "faz-baz-nosched", "foo-noexec-10"),
            of("foo-bar-nosched", "faz-baz-nosched", "foo-noexec-10"),
            of("foo-bar-nosched", "faz-baz-nosched", "foo-noexec-10"),
            id="TestMergeTolerations: duplicate",
        ),
        pytest.param(
            of("foo-bar-nosched", "foo-baz-nosched"),
            of("foo-nosched", "faz-baz-nosched"),
            of("foo-nosched", "faz-baz-nosched"),
            id="TestMergeTolerations: merge redundant",
        ),
        pytest.param(
            of("foo-bar-nosched", "foo-baz-nosched", "foo-noexec-10"),
            of("all"),
            of("all"),
            id="TestMergeTolerations: merge all",
        ),
        pytest.param(
            of("all"),
            of("foo-bar-nosched", "foo-baz-nosched", "foo-noexec-10"),
            of("all"),
            id="TestMergeTolerations: merge into all",
        ),
        pytest.param((), (), (), id="MergeTolerations: nothing"),
        pytest.param(of("foo", "foo-bar"), (), of("foo"), id="MergeTolerations: one list is thinned out too"),
        pytest.param(of("foo-noexec-10"), of("foo-noexec-0"), of("foo-noexec-10"), id="MergeTolerations: longer time"),
        pytest.param(
            of("foo-noexec-0"), of("foo-noexec-10"), of("foo-noexec-10"), id="MergeTolerations: longer time behind"
        ),
        pytest.param(
            (Toleration("k", EXISTS, "x"),),
            (Toleration("k", EXISTS, "y"),),
            (Toleration("k", EXISTS, "y"),),
            id="MergeTolerations: of two that cover each other the last stays",
        ),
    ],
)
def test_merge(first: tuple[Toleration, ...], second: tuple[Toleration, ...], merged: tuple[Toleration, ...]) -> None:
    assert plain(merge(written(first), written(second))) == merged


def test_of_equal_tolerations_the_first_keeps_its_origin() -> None:
    mine, theirs = written(of("foo")), written(of("foo"), AddedBy.NAMESPACE_DEFAULTS)
    assert merge(mine, theirs) == (AdmittedToleration(NAMED["foo"], AddedBy.WRITTEN),)
    assert merge(theirs, mine) == (AdmittedToleration(NAMED["foo"], AddedBy.NAMESPACE_DEFAULTS),)


ANY = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from([EQUAL, EXISTS]),
    value=st.sampled_from(["", "x"]),
    effect=st.sampled_from(["", NO_SCHEDULE, NO_EXECUTE]),
    toleration_seconds=st.sampled_from([None, 0, 5]),
)


@given(first=st.lists(ANY, max_size=5), second=st.lists(ANY, max_size=5))
def test_TestFuzzed_each_toleration_is_covered_after_a_merge(first: list[Toleration], second: list[Toleration]) -> None:  # noqa: N802 - the name upstream
    merged = plain(merge(written(first), written(second)))
    for toleration in (*first, *second):
        assert any(is_superset(kept, toleration) for kept in merged)


@given(tolerations=st.lists(ANY, max_size=5), allowed=st.lists(ANY, min_size=1, max_size=5))
def test_TestFuzzed_what_is_refused_has_no_superset(tolerations: list[Toleration], allowed: list[Toleration]) -> None:  # noqa: N802 - the name upstream
    refused = first_not_allowed(tolerations, allowed)
    if refused is None:
        assert all(any(is_superset(wide, each) for wide in allowed) for each in tolerations)
    else:
        assert not any(is_superset(wide, refused) for wide in allowed)
