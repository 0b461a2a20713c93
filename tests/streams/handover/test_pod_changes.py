"""How pods are moved and restored: the patches, and what each answer of the API server comes to."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.streams.handover.api_requests import ApiRequests
from evictstream.streams.handover.pod_changes import (
    ChangeOutcome,
    ChangeReport,
    LoosenPods,
    MovePods,
    RestorePods,
    loosening_patch,
    restoring_patch,
)
from evictstream.streams.handover.pod_states import ClusterPod, NamespaceRules
from tests.harness.examples import examples
from tests.streams.handover.scripted import Answer, Scripted

ANNOTATION: Final = "evictstream.io/tolerations"
KEY: Final = "example.com/k"
TIMED: Final = {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}

Object = dict[str, Any]


def pod(tolerations: list[Object], entries: list[Object] | None, version: str = "1", node: str = "n") -> Object:
    metadata: Object = {"name": "p", "namespace": "shop", "uid": "u", "resourceVersion": version}
    if entries is not None:
        metadata["annotations"] = {ANNOTATION: json.dumps(entries), "other": "stays"}
    return {"metadata": metadata, "spec": {"tolerations": tolerations, "nodeName": node}}


def read(what: Object) -> ClusterPod:
    return msgspec.json.decode(json.dumps(what), type=ClusterPod)


def moved(tolerations: list[Object], more: int | None) -> tuple[list[Object], list[Object]]:
    """Return what the policy makes of tolerations with different keys."""
    spec, entries = [], []
    for one in tolerations:
        identity = {name: value for name, value in one.items() if name != "tolerationSeconds"}
        if "tolerationSeconds" not in one:
            spec.append(one)
            continue
        there = {} if more is None else {"tolerationSeconds": max(one["tolerationSeconds"], 0) + more}
        spec.append({**identity, **there})
        entries.append({**one, **({} if more is None else {"builtInSeconds": there["tolerationSeconds"]})})
    return spec, entries


def patched(what: Object, patch: list[Object]) -> Object:
    """Apply a JSON patch as RFC 6902 says, for the operations that there are."""
    found = copy.deepcopy(what)
    for each in patch:
        *above, last = (part.replace("~1", "/") for part in each["path"].split("/")[1:])
        place: Any = found
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if each["op"] == "test":
            assert place[last] == each["value"]
        elif each["op"] == "remove":
            del place[last]
        else:
            assert each["op"] == "add" or last in place
            place[last] = each["value"]
    return found


def seconds_in_force(what: Object) -> list[int | None]:
    return [one.toleration_seconds for one in read(what).handed().tolerations]


TOLERATIONS: Final = st.lists(
    st.fixed_dictionaries(
        {"effect": st.just("NoExecute")},
        optional={
            "key": st.sampled_from(["a", "b/c", "example.com/k"]),
            "operator": st.sampled_from(["Exists", "Equal"]),
            "value": st.sampled_from(["v", "w"]),
            "tolerationSeconds": st.integers(-(2**63), 10**9 - 1),
        },
    ),
    max_size=6,
    unique_by=lambda one: (one.get("key"), one.get("operator"), one.get("value")),
)


@given(tolerations=TOLERATIONS, more=st.sampled_from([None, 20, 3600]))
@settings(max_examples=examples(200))
def test_what_was_moved_is_restored(tolerations: list[Object], more: int | None) -> None:
    spec, entries = moved(tolerations, more)
    there = pod(spec, entries)
    loose = patched(there, loosening_patch(read(there)))
    assert seconds_in_force(loose) == seconds_in_force(there) == [one.get("tolerationSeconds") for one in tolerations]
    assert not any("tolerationSeconds" in one for one in loose["spec"]["tolerations"])
    for each in (there, loose):
        restored = patched(each, restoring_patch(read(each)))
        assert restored["spec"]["tolerations"] == tolerations
        assert restored["metadata"]["annotations"] == {"other": "stays"}


@pytest.mark.parametrize("patch", [restoring_patch, loosening_patch])
def test_a_patch_is_for_the_version_that_was_read(patch: Callable[[ClusterPod], list[Object]]) -> None:
    assert patch(read(MOVED))[:2] == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
    ]


def test_entries_that_do_not_fit_change_no_seconds() -> None:
    edited = pod([{**TIMED, "tolerationSeconds": 31}], [{**TIMED, "builtInSeconds": 3630}])
    restored = patched(edited, restoring_patch(read(edited)))
    assert restored["spec"]["tolerations"] == [{**TIMED, "tolerationSeconds": 31}]


MOVED: Final = pod([{**TIMED, "tolerationSeconds": 3630}], [{**TIMED, "builtInSeconds": 3630}])
RESTORED: Final = pod([TIMED], None, "3")
REFUSED: Final[Answer] = (422, {}, {"kind": "Status", "message": "no"})
CONFLICT: Final[Answer] = (409, {}, {"kind": "Status", "message": "conflict"})
AWAY: Final[Answer] = (404, {}, {"kind": "Status"})


def version(number: str) -> Object:
    found = copy.deepcopy(MOVED)
    found["metadata"]["resourceVersion"] = number
    return found


RESTORES: Final[dict[str, tuple[list[Answer], ChangeOutcome, int]]] = {
    "done": ([(200, {}, RESTORED)], ChangeOutcome.CHANGED, 1),
    "moved-again-by-the-policy": ([(200, {}, MOVED)], ChangeOutcome.UNCHANGED, 1),
    "gone": ([AWAY], ChangeOutcome.GONE, 1),
    "changed-meanwhile": ([REFUSED, (200, {}, version("2")), (200, {}, RESTORED)], ChangeOutcome.CHANGED, 3),
    "gone-meanwhile": ([REFUSED, AWAY], ChangeOutcome.GONE, 2),
    "restored-meanwhile": ([CONFLICT, (200, {}, RESTORED)], ChangeOutcome.UNCHANGED, 2),
    "refused-as-it-is": ([REFUSED, (200, {}, MOVED)], ChangeOutcome.FAILED, 2),
    "forbidden": ([(403, {}, {"message": "not yours"})], ChangeOutcome.FAILED, 1),
}


@pytest.mark.parametrize(("answers", "outcome", "asked"), RESTORES.values(), ids=RESTORES)
def test_each_answer_to_a_restore_is_counted(
    answers: list[Answer], outcome: ChangeOutcome, asked: int, server: Scripted, requests: ApiRequests
) -> None:
    server.answers = list(answers)
    report = ChangeReport()
    assert RestorePods(requests=requests, is_dry_run=False).apply(read(MOVED), report) is outcome
    assert len(server.asked) == asked
    assert bool(report.failures) == (outcome is ChangeOutcome.FAILED)


def test_a_pod_that_others_always_write_is_left(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [each for n in range(9) for each in (CONFLICT, (200, {}, version(f"{n + 2}")))]
    report = ChangeReport()
    assert RestorePods(requests=requests, is_dry_run=False).apply(read(MOVED), report) is ChangeOutcome.FAILED
    assert report.failures == [("shop/p", "409: conflict")]


MOVES: Final[dict[str, tuple[list[Answer], ChangeOutcome]]] = {
    "done": ([(200, {}, MOVED)], ChangeOutcome.CHANGED),
    "left-by-the-policy": ([(200, {}, RESTORED)], ChangeOutcome.UNCHANGED),
    "gone": ([AWAY], ChangeOutcome.GONE),
    "conflict": ([CONFLICT, (200, {}, MOVED)], ChangeOutcome.CHANGED),
    "refused": ([REFUSED], ChangeOutcome.FAILED),
}


@pytest.mark.parametrize(("answers", "outcome"), MOVES.values(), ids=MOVES)
def test_each_answer_to_a_move_is_counted(
    answers: list[Answer], outcome: ChangeOutcome, server: Scripted, requests: ApiRequests
) -> None:
    server.answers = list(answers)
    move = MovePods(requests=requests, rules=NamespaceRules(), is_dry_run=False)
    assert move.apply(read(RESTORED), ChangeReport()) is outcome
    assert set(map(str, server.bodies)) == {"{}"}


def test_only_pods_of_tainted_nodes_are_loosened(requests: ApiRequests) -> None:
    loosen = LoosenPods(requests=requests, nodes=lambda: frozenset({"n"}))
    assert loosen.why_not(read(MOVED)) is None
    assert loosen.why_not(read({**MOVED, "spec": {**MOVED["spec"], "nodeName": "other"}})) is not None
    assert loosen.why_not(read(RESTORED)) is not None
    endless = {name: value for name, value in TIMED.items() if name != "tolerationSeconds"}
    assert loosen.why_not(read(pod([endless], [TIMED]))) is not None
