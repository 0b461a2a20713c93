"""What the policy makes of changes of pods: entries follow edits, and nothing else is written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Final

import pytest

from tests.e2e.api_client import Object, RefusedError
from tests.e2e.handover.admission import (
    ANNOTATION,
    MORE,
    Admission,
    Tolerations,
    annotation_of,
    defaults,
    entries_of,
    fresh_name,
    moved,
    pod_with,
    pods_in,
    spec_of,
    timed,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

ONE: Final = "example.com/one"
TWO: Final = "example.com/two"

Write = Callable[[Admission, Object, Tolerations], Object]


def put(admission: Admission, pod: Object, tolerations: Tolerations) -> Object:
    changed = copy.deepcopy(pod)
    changed["spec"]["tolerations"] = tolerations
    return admission.put(changed)


def put_blindly(admission: Admission, pod: Object, tolerations: Tolerations) -> Object:
    """Put a pod as a client does that has never seen the annotation."""
    changed = copy.deepcopy(pod)
    changed["spec"]["tolerations"] = tolerations
    del changed["metadata"]["annotations"]
    return admission.put(changed)


def merge(admission: Admission, pod: Object, tolerations: Tolerations) -> Object:
    return admission.patch(pod["metadata"]["name"], {"spec": {"tolerations": tolerations}})


def strategic(admission: Admission, pod: Object, tolerations: Tolerations) -> Object:
    return admission.patch(pod["metadata"]["name"], {"spec": {"tolerations": tolerations}}, "strategic-merge")


def json_patch(admission: Admission, pod: Object, tolerations: Tolerations) -> Object:
    change = [{"op": "replace", "path": "/spec/tolerations", "value": tolerations}]
    return admission.patch(pod["metadata"]["name"], change, "json")


WAYS: Final[dict[str, Write]] = {
    "put": put,
    "put-blindly": put_blindly,
    "merge": merge,
    "strategic": strategic,
    "json": json_patch,
}


@pytest.fixture
def pod(admission: Admission) -> Object:
    """A pod with two moved tolerations, beside those of dead nodes."""
    return admission.create(pod_with([timed(ONE, 30), timed(TWO, 40)]))


def both(more: int | None, *own: tuple[str, int]) -> tuple[Tolerations, Tolerations]:
    """Return tolerations and entries of a pod with these keys and seconds, in this order."""
    pairs = [moved(timed(key, seconds), seconds, more) for key, seconds in own]
    spec, entries = defaults(more)
    return [each for each, _ in pairs] + spec, [entry for _, entry in pairs] + entries


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("seconds", [5, 30, 600, 0, -3], ids=["shorter", "same", "longer", "none", "negative"])
def test_an_edit_of_seconds_is_followed(
    write: Write, seconds: int, pod: Object, admission: Admission, more: int | None
) -> None:
    edited = write(admission, pod, [timed(ONE, seconds), *spec_of(pod)[1:]])
    spec, entries = both(more, (ONE, seconds), (TWO, 40))
    if more is not None and seconds < 0:
        spec[0] = timed(ONE, MORE)
        entries[0]["builtInSeconds"] = MORE
    assert (spec_of(edited), entries_of(edited)) == (spec, entries)


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_a_further_toleration_is_moved(write: Write, pod: Object, admission: Admission, more: int | None) -> None:
    edited = write(admission, pod, [*spec_of(pod), timed("example.com/three", 7)])
    spec, entries = both(more, (ONE, 30), (TWO, 40))
    added, entry = moved(timed("example.com/three", 7), 7, more)
    assert (spec_of(edited), entries_of(edited)) == ([*spec, added], [*entries, entry])


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_another_order_keeps_all_seconds(write: Write, pod: Object, admission: Admission, more: int | None) -> None:
    edited = write(admission, pod, spec_of(pod)[::-1])
    before = {each["key"]: each for each in entries_of(pod)}
    assert spec_of(edited) == spec_of(pod)[::-1]
    assert {each["key"]: each for each in entries_of(edited)} == before


@pytest.mark.parametrize("text", [None, pytest.param("other-label", id="beside-another-change")])
def test_an_annotation_that_is_taken_off_comes_back(text: str | None, pod: Object, admission: Admission) -> None:
    metadata: Object = {"annotations": {ANNOTATION: None}, **({"labels": {"a": text}} if text else {})}
    changed = admission.patch(pod["metadata"]["name"], {"metadata": metadata})
    assert (spec_of(changed), annotation_of(changed)) == (spec_of(pod), annotation_of(pod))


def test_seconds_taken_off_the_spec_are_for_ever(pod: Object, admission: Admission, more: int | None) -> None:
    """With a backstop; otherwise nothing changes in the spec, and the seconds stay in force."""
    changed = merge(admission, pod, [timed(ONE, None), *spec_of(pod)[1:]])
    assert spec_of(changed)[0] == timed(ONE, None)
    own = [each for each in entries_of(changed) if each["key"] == ONE]
    # What is left of the entry, if anything, does not fit the spec.
    assert [each for each in own if "builtInSeconds" not in each] == (
        [] if more else [moved(timed(ONE, 30), 30, None)[1]]
    )


def test_the_same_toleration_without_seconds_goes_first(pod: Object, admission: Admission, more: int | None) -> None:
    changed = merge(admission, pod, [timed(ONE, None), *spec_of(pod)])
    assert spec_of(changed)[0] == timed(ONE, None)
    fitting = [each for each in entries_of(changed) if each["key"] == ONE and "builtInSeconds" not in each]
    assert fitting == ([] if more else [moved(timed(ONE, 30), 30, None)[1]])


def test_an_entry_left_out_on_purpose_stays_out(pod: Object, admission: Admission, more: int | None) -> None:
    """This is how seconds become for ever without a backstop; with one the spec says so."""
    rest = json.dumps(entries_of(pod)[1:], separators=(",", ":"))
    changed = admission.patch(pod["metadata"]["name"], {"metadata": {"annotations": {ANNOTATION: rest}}})
    assert annotation_of(changed) == rest
    assert spec_of(changed) == spec_of(pod)


def test_repeated_applies_of_a_client_write_nothing(admission: Admission, more: int | None) -> None:
    """A client-side apply sends the list of its manifest as often as it differs from what is there."""
    made = admission.create(pod_with([timed(ONE, 30)]))
    name, manifest = made["metadata"]["name"], {"spec": {"tolerations": [timed(ONE, 30)]}}
    applied = [admission.patch(name, manifest, "strategic-merge") for _ in range(3)]
    assert {each["metadata"]["resourceVersion"] for each in applied[1:]} == {applied[0]["metadata"]["resourceVersion"]}
    assert {each["metadata"]["generation"] for each in applied} == {applied[0]["metadata"]["generation"]}
    assert entries_of(applied[-1])[0] == moved(timed(ONE, 30), 30, more)[1]
    edited = admission.patch(name, {"spec": {"tolerations": [timed(ONE, 31)]}}, "strategic-merge")
    assert entries_of(edited)[0] == moved(timed(ONE, 31), 31, more)[1]


def test_server_side_apply_neither_conflicts_nor_fights(admission: Admission, more: int | None) -> None:
    name = fresh_name()

    def apply(seconds: int, manager: str) -> Object:
        path = f"{pods_in()}/{name}?fieldManager={manager}"
        return admission.client.call(
            "PATCH", path, pod_with([timed(ONE, seconds)], name=name), "application/apply-patch+yaml"
        )

    applied = [apply(30, "owner") for _ in range(3)]
    assert {each["metadata"]["generation"] for each in applied} == {applied[0]["metadata"]["generation"]}
    assert entries_of(apply(31, "owner"))[0] == moved(timed(ONE, 31), 31, more)[1]
    with pytest.raises(RefusedError, match=r"\.spec\.tolerations") as refused:
        apply(32, "another")
    assert refused.value.status == 409


def test_writes_that_are_no_edits_change_nothing(pod: Object, admission: Admission) -> None:
    name = pod["metadata"]["name"]
    path = f"{pods_in()}/{name}"
    status = {"status": {"phase": "Running"}}
    admission.client.call("PATCH", f"{path}/status", status, "application/merge-patch+json")
    container = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "img"}]}}
    admission.client.call("PATCH", f"{path}/ephemeralcontainers", container, "application/strategic-merge-patch+json")
    resized = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]}}
    with pytest.raises(RefusedError) as refused:  # the pod has no requests, so its class would change
        admission.client.call("PATCH", f"{path}/resize", resized, "application/strategic-merge-patch+json")
    assert refused.value.status == 422
    admission.patch(name, {"metadata": {"labels": {"a": "b"}}})
    found = admission.get(name)
    assert (spec_of(found), annotation_of(found)) == (spec_of(pod), annotation_of(pod))


SUBRESOURCES: Final = {
    "status": ("PATCH", "status", "application/merge-patch+json"),
    "ephemeral-containers": ("PATCH", "ephemeralcontainers", "application/strategic-merge-patch+json"),
}


@pytest.mark.parametrize("value", ["[]", None], ids=["other", "taken-off"])
def test_the_guard_refuses_the_annotation_by_status(value: str | None, pod: Object, admission: Admission) -> None:
    name = pod["metadata"]["name"]
    change: Object = {"metadata": {"annotations": {ANNOTATION: value}}, "status": {"phase": "Running"}}
    with pytest.raises(RefusedError, match="by way of the status") as refused:
        admission.client.call("PATCH", f"{pods_in()}/{name}/status", change, "application/merge-patch+json")
    assert refused.value.status == 422
    assert admission.get(name)["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]


def test_ephemeral_containers_carry_no_annotation(pod: Object, admission: Admission) -> None:
    name = pod["metadata"]["name"]
    change: Object = {
        "metadata": {"annotations": {ANNOTATION: "[]"}},
        "spec": {"ephemeralContainers": [{"name": "debug", "image": "img"}]},
    }
    way = "application/strategic-merge-patch+json"
    admission.client.call("PATCH", f"{pods_in()}/{name}/ephemeralcontainers", change, way)
    assert annotation_of(admission.get(name)) == annotation_of(pod)


@pytest.mark.parametrize("kind", ["of-the-pod", "of-the-collection"])
def test_the_guard_refuses_the_annotation_by_binding(kind: str, pod: Object, admission: Admission) -> None:
    name = pod["metadata"]["name"]
    target = {"kind": "Node", "name": "n"}
    binding: Object = {"metadata": {"name": name, "annotations": {ANNOTATION: "[]"}}, "target": target}
    path = f"{pods_in()}/{name}/binding" if kind == "of-the-pod" else "/api/v1/namespaces/default/bindings"
    with pytest.raises(RefusedError, match="may not be set by a Binding") as refused:
        admission.client.create(path, binding)
    assert refused.value.status == 422
    del binding["metadata"]["annotations"]
    admission.client.create(path, binding)
    bound = admission.get(name)
    assert bound["spec"]["nodeName"] == "n"
    assert (spec_of(bound), annotation_of(bound)) == (spec_of(pod), annotation_of(pod))


def test_without_the_guard_both_ways_are_open(any_admission: Admission) -> None:
    """So the guard is needed where rights on status or Bindings alone are given away."""
    any_admission.use(MORE, guard=False)
    name = any_admission.create(pod_with([timed(ONE, 30)]))["metadata"]["name"]
    change: Object = {"metadata": {"annotations": {ANNOTATION: "[]"}}}
    any_admission.client.call("PATCH", f"{pods_in()}/{name}/status", change, "application/merge-patch+json")
    assert annotation_of(any_admission.get(name)) == "[]"
    binding: Object = {"metadata": {"name": name, "annotations": {ANNOTATION: "[1]"}}, "target": {"name": "n"}}
    any_admission.client.create(f"{pods_in()}/{name}/binding", binding)
    assert annotation_of(any_admission.get(name)) == "[1]"


def test_an_empty_patch_moves_pods_from_before(admission: Admission, more: int | None) -> None:
    """Once; a second one writes nothing."""
    namespace = f"before-{more or 0}"
    out, kept = {"evictstream.io/handover": "off"}, {"evictstream.io/handover": None}
    admission.client.create("/api/v1/namespaces", {"metadata": {"name": namespace, "labels": out}})
    wait_until(lambda: admission.exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
    names = [admission.create(pod_with([timed(ONE, 30)]), namespace)["metadata"]["name"] for _ in range(20)]
    assert {annotation_of(admission.get(name, namespace)) for name in names} == {None}
    path = f"/api/v1/namespaces/{namespace}"
    admission.client.call("PATCH", path, {"metadata": {"labels": kept}}, "application/merge-patch+json")
    wait_until(lambda: annotation_of(admission.dry(pod_with([timed(ONE, 30)]), namespace)) is not None)
    for name in names:
        before = admission.get(name, namespace)
        changed = admission.patch(name, {}, namespace=namespace)
        assert (spec_of(changed), entries_of(changed)) == both(more, (ONE, 30))
        assert changed["metadata"]["generation"] == before["metadata"]["generation"] + 1
        assert admission.patch(name, {}, namespace=namespace)["metadata"] == changed["metadata"]
