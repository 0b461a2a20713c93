"""What the policy makes of pods that are created: tables of tolerations, on a real API server."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

import pytest

from tests.e2e.api_client import Object, RefusedError
from tests.e2e.handover.admission import (
    MORE,
    Admission,
    annotation_of,
    defaults,
    entries_of,
    moved,
    pod_with,
    spec_of,
    timed,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

KEY: Final = "example.com/k"
HIGHEST: Final = 2**63 - 1
YEARS: Final = 1_000_000_000


class Created(NamedTuple):
    """Tolerations that are given, and which of them are moved.

    Attributes:
        given: of the pod; None for no list.
        written: by their place, the seconds that stand in the spec then, with a backstop of 3600 s.
        has_defaults: whether Kubernetes adds those for dead nodes.
    """

    given: list[Object] | None
    written: dict[int, int] = {}  # noqa: RUF012 - nothing changes it
    has_defaults: bool = True


EQUAL: Final = {"key": KEY, "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5}

CREATED: Final = {
    "no-list": Created(None),
    "empty-list": Created([]),
    "some": Created([timed(KEY, 30)], {0: 3630}),
    "zero": Created([timed(KEY, 0)], {0: 3600}),
    "negative": Created([timed(KEY, -1)], {0: 3600}),
    "most-negative": Created([timed(KEY, -(2**63))], {0: 3600}),
    "most": Created([timed(KEY, HIGHEST)], {0: YEARS}),
    "overflow-of-the-built-in": Created([timed(KEY, 18_446_744_074)], {0: YEARS}),
    "before-the-limit": Created([timed(KEY, YEARS)], {0: YEARS + 3600}),
    "behind-the-limit": Created([timed(KEY, YEARS + 1)], {0: YEARS}),
    "for-ever": Created([timed(KEY, None)]),
    "other-effect": Created([timed(KEY, None, effect="NoSchedule")]),
    "every-effect": Created([{"key": KEY, "operator": "Exists"}]),
    "wildcard-for-ever": Created([{"operator": "Exists"}], has_defaults=False),
    "wildcard-with-seconds": Created([timed(None, 40)], {0: 3640}, has_defaults=False),
    "same-twice": Created([timed(KEY, 5), timed(KEY, 60)], {0: 3605}),
    "same-for-ever-first": Created([timed(KEY, None), timed(KEY, 5)]),
    "same-for-ever-last": Created([timed(KEY, 5), timed(KEY, None)], {0: 3605}),
    "spelled-differently": Created(
        [EQUAL, {name: value for name, value in EQUAL.items() if name != "operator"}], {0: 3605, 1: 3605}
    ),
    "one-key-begins-another": Created([timed("a", 5), timed("a.b", 6), timed("b/a", 7)], {0: 3605, 1: 3606, 2: 3607}),
    "health-key": Created([timed("node.kubernetes.io/unreachable", 7)], {0: 3607}, has_defaults=False),
    "two-hundred": Created([timed(f"{KEY}-{n}", n) for n in range(200)], {n: 3600 + n for n in range(200)}),
}


def expected(case: Created, more: int | None) -> tuple[list[Object], list[Object]]:
    """Return tolerations and entries after the policy."""
    spec, entries = list(case.given or ()), []
    for place, written in case.written.items():
        spec[place], entry = moved(spec[place], spec[place]["tolerationSeconds"], more, written)
        entries.append(entry)
    if case.has_defaults:
        more_spec, more_entries = defaults(more)
        return spec + more_spec, entries + more_entries
    if case is CREATED["health-key"]:
        other = timed("node.kubernetes.io/not-ready", 300)
        added, entry = moved(other, 300, more)
        return [*spec, added], [*entries, entry]
    return spec, entries


@pytest.mark.parametrize("case", CREATED.values(), ids=CREATED)
def test_seconds_move_into_the_annotation(case: Created, admission: Admission, more: int | None) -> None:
    pod = admission.dry(pod_with(case.given))
    assert (spec_of(pod), entries_of(pod)) == expected(case, more)


REFUSED: Final = {
    "beyond-int64": (timed(KEY, 2**63), 400),
    "fraction": ({**timed(KEY, None), "tolerationSeconds": 1.5}, 400),
    "text": ({**timed(KEY, None), "tolerationSeconds": "5"}, 400),
    "seconds-of-no-schedule": (timed(KEY, 5, effect="NoSchedule"), 422),
    "operator-behind-a-gate": ({"key": KEY, "operator": "Lt", "value": "5", "effect": "NoExecute"}, 422),
    "quote-in-key": (timed('a"b', 5), 422),
    "brace-in-key": (timed("a}b", 5), 422),
    "quote-in-value": ({**EQUAL, "value": 'a","tolerationSeconds":1}'}, 422),
    "brace-in-value": ({**EQUAL, "value": "a}b"}, 422),
    "other-effect": (timed(KEY, None, effect='NoExecute"}'), 422),
    "backslash": (timed("a\\b", 5), 422),
}


@pytest.mark.parametrize(("toleration", "status"), REFUSED.values(), ids=REFUSED)
def test_illegal_tolerations_are_refused_as_without_policy(
    toleration: Object, status: int, admission: Admission
) -> None:
    for namespace in ("default", "opted-out"):
        with pytest.raises(RefusedError) as refused:
            admission.dry(pod_with([toleration]), namespace)
        assert refused.value.status == status


@pytest.mark.parametrize("count", [500, 1000])
def test_too_many_tolerations_stay_untouched(count: int, admission: Admission) -> None:
    given = [timed(f"{KEY}-{n}", n) for n in range(count)]
    pod = admission.dry(pod_with(given))
    assert spec_of(pod)[:count] == given
    assert annotation_of(pod) is None


KEPT: Final = {
    None: [{**timed(KEY, None), "tolerationSeconds": 30}],
    MORE: [{**timed(KEY, None), "tolerationSeconds": 30, "builtInSeconds": 3630}],
}


def test_a_fitting_annotation_is_kept(admission: Admission, more: int | None) -> None:
    """A copy of a pod, and the copy of a copy, keep their seconds."""
    pod = admission.dry(pod_with([timed(KEY, 30)]))
    for _ in range(2):
        copy = admission.dry(pod_with(spec_of(pod), annotation=annotation_of(pod)))
        assert (spec_of(copy), annotation_of(copy)) == (spec_of(pod), annotation_of(pod))
        pod = copy
    assert entries_of(pod)[:1] == KEPT[more]


FORGED: Final = {
    "other-seconds-in-the-spec": (
        f'[{{"key":"{KEY}","operator":"Exists","effect":"NoExecute","tolerationSeconds":1,"builtInSeconds":99}}]'
    ),
    "other-key": '[{"key":"x","operator":"Exists","effect":"NoExecute","tolerationSeconds":1,"builtInSeconds":30}]',
    "other-order": (
        f'[{{"tolerationSeconds":1,"builtInSeconds":30,"key":"{KEY}","operator":"Exists","effect":"NoExecute"}}]'
    ),
    "no-list": "{}",
    "empty": "",
    "no-json": "[{",
    "null": "null",
    "huge": "x" * 200_000,
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_what_does_not_fit_is_rewritten(text: str, admission: Admission, more: int | None) -> None:
    pod = admission.dry(pod_with([timed(KEY, 30)], annotation=text))
    assert (spec_of(pod), entries_of(pod)) == expected(CREATED["some"], more)


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_without_seconds_an_annotation_stays_as_written(text: str, admission: Admission) -> None:
    pod = admission.dry(pod_with([{"operator": "Exists"}], annotation=text))
    assert (spec_of(pod), annotation_of(pod)) == ([{"operator": "Exists"}], text)


def test_a_fitting_forgery_only_sets_seconds(admission: Admission, more: int | None) -> None:
    """Who may write it may write the seconds of the spec as well."""
    forged = KEPT[more][0] | {"tolerationSeconds": 1}
    text = json.dumps([forged], separators=(",", ":"))
    there = timed(KEY, None) if more is None else timed(KEY, 3630)
    pod = admission.dry(pod_with([there], annotation=text))
    assert spec_of(pod)[0] == there
    assert entries_of(pod)[0] == forged


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "evictstream", "opted-out"])
def test_pods_of_other_namespaces_stay_untouched(namespace: str, admission: Admission) -> None:
    pod = admission.dry(pod_with([timed(KEY, 30)]), namespace)
    assert spec_of(pod)[0] == timed(KEY, 30)
    assert annotation_of(pod) is None


def test_mirror_pods_stay_untouched(admission: Admission) -> None:
    mirror = pod_with([timed(KEY, 30)])
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "x"}
    mirror["spec"]["nodeName"] = "n"
    pod = admission.dry(mirror)
    assert spec_of(pod)[0] == timed(KEY, 30)
    assert annotation_of(pod) is None


def test_a_dry_run_shows_the_result_and_leaves_nothing(admission: Admission, more: int | None) -> None:
    asked = pod_with([timed(KEY, 30)])
    shown = admission.dry(asked)
    assert not admission.exists(f"/api/v1/namespaces/default/pods/{asked['metadata']['name']}")
    made = admission.create(asked)
    assert (spec_of(made), annotation_of(made)) == (spec_of(shown), annotation_of(shown))
    name = made["metadata"]["name"]
    edited = [timed(KEY, 50), *spec_of(made)[1:]]
    patched = admission.patch(name, {"spec": {"tolerations": edited}}, query="?dryRun=All")
    assert entries_of(patched)[0] == moved(timed(KEY, 50), 50, more)[1]
    assert admission.get(name)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
