"""semantics.md 9.1; the cases are those of plugin/pkg/admission/defaulttolerationseconds/admission_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.admission import AddedBy, default_toleration_seconds, plain, written
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, Toleration

FOO = Toleration("foo", "Equal", "bar", NO_SCHEDULE, 700)
NOT_READY_300 = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", 300)
UNREACHABLE_300 = Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute", 300)
NOT_READY_700 = Toleration(NOT_READY, "Exists", "", NO_EXECUTE, 700)
UNREACHABLE_700 = Toleration(UNREACHABLE, "Exists", "", NO_EXECUTE, 700)
BOTH = (NOT_READY_300, UNREACHABLE_300)


@pytest.mark.parametrize(
    ("before", "added"),
    [
        pytest.param((), BOTH, id="admission_test.go: pod has no tolerations"),
        pytest.param((FOO,), BOTH, id="admission_test.go: none is for not-ready or unreachable"),
        pytest.param((NOT_READY_700,), (UNREACHABLE_300,), id="admission_test.go: toleration for not-ready"),
        pytest.param((UNREACHABLE_700,), (NOT_READY_300,), id="admission_test.go: toleration for unreachable"),
        pytest.param((NOT_READY_700, UNREACHABLE_700), (), id="admission_test.go: tolerations for both"),
        pytest.param(
            (Toleration(UNREACHABLE, "Exists", "", "", 700),),
            (NOT_READY_300,),
            id="admission_test.go: toleration for unreachable without effect",
        ),
        pytest.param((Toleration("", "Exists", "", "", 700),), (), id="admission_test.go: wildcard"),
        pytest.param((Toleration("", "Exists", "", NO_EXECUTE),), (), id="9.1 no key, NoExecute"),
        pytest.param((Toleration("", "Exists", "", NO_SCHEDULE),), BOTH, id="9.1 no key, another effect"),
        pytest.param((Toleration(NOT_READY, "Exists", "", NO_SCHEDULE),), BOTH, id="9.1 the key, another effect"),
        pytest.param(
            (Toleration(NOT_READY, "Equal", "never", NO_EXECUTE),),
            (UNREACHABLE_300,),
            id="9.1 operator and value are not looked at",
        ),
        pytest.param((Toleration(NOT_READY, "Gt", "7"),), (UNREACHABLE_300,), id="9.1 Gt counts, gate or not"),
        pytest.param((Toleration("", "Equal", "x"),), (), id="9.1 an empty key counts without Exists too"),
        pytest.param(
            (Toleration(NOT_READY, "Exists", "", NO_EXECUTE, 0),), (UNREACHABLE_300,), id="9.1 seconds do not count"
        ),
        pytest.param(
            (Toleration("node.alpha.kubernetes.io/notReady", "Exists", "", NO_EXECUTE),),
            BOTH,
            id="9.1 old names of the keys do not count",
        ),
    ],
)
def test_what_lacks_is_appended(before: tuple[Toleration, ...], added: tuple[Toleration, ...]) -> None:
    assert plain(default_toleration_seconds(written(before))) == (*before, *added)


def test_flags_of_the_api_server_change_the_seconds() -> None:
    found = plain(default_toleration_seconds((), not_ready_seconds=10, unreachable_seconds=0))
    assert [(entry.key, entry.toleration_seconds) for entry in found] == [(NOT_READY, 10), (UNREACHABLE, 0)]


def test_each_addition_names_its_origin() -> None:
    found = default_toleration_seconds(written((FOO,)))
    assert [entry.origin for entry in found] == [
        AddedBy.WRITTEN,
        AddedBy.DEFAULT_TOLERATION_SECONDS,
        AddedBy.DEFAULT_TOLERATION_SECONDS,
    ]


def test_a_second_pass_adds_nothing() -> None:
    once = default_toleration_seconds(written((FOO,)))
    assert default_toleration_seconds(once) == once
