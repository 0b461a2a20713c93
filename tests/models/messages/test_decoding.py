from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from evictstream.models.eviction import EventType, NodeEvent, Origin, Outcome, PodEvent, ResultEvent
from evictstream.models.kubernetes import Taint, Toleration
from evictstream.models.messages.decoding import read_node_record, read_pod_record, read_result_record
from evictstream.models.messages.envelope import DEFAULT_LIMITS, InputLimits
from evictstream.models.messages.signals import Unbound
from evictstream.models.messages.unreadable import Unreadable

APPEND_US = 1_795_227_353_000_000  # 2026-11-21T02:15:53Z
ORIGIN = Origin("t", 1, 2)
SECRET = "hunter2"
NODE: dict[str, Any] = {
    "cluster": "c",
    "type": "ADDED",
    "observedAt": "2026-11-21T02:15:52.5Z",
    "object": {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "7"},
        "spec": {"taints": [{"key": "a", "effect": "NoExecute"}]},
    },
}
POD: dict[str, Any] = {
    "cluster": "c",
    "type": "MODIFIED",
    "object": {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"namespace": "ns", "name": "web-0", "uid": "p1", "resourceVersion": "8"},
        "spec": {"nodeName": "n1", "tolerations": [{"operator": "Exists", "tolerationSeconds": 5}]},
        "status": {"phase": "Running"},
    },
}
RESULT: dict[str, Any] = {
    "apiVersion": "evictstream.io/v1",
    "kind": "EvictionResult",
    "evictionId": "e1",
    "attempt": 2,
    "cluster": "c",
    "namespace": "ns",
    "pod": "web-0",
    "podUid": "p1",
    "node": "n1",
    "outcome": "Failed",
    "reason": "webhook",
    "observedAt": "2026-11-21T02:15:52Z",
}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for name, value in changes.items():
        result[name] = merged(result[name], value) if isinstance(value, dict) and name in result else value
    return result


def node(changes: dict[str, Any] | None = None, key: bytes | None = b"c") -> object:
    return read_node_record(key, json.dumps(merged(NODE, changes or {})).encode(), APPEND_US, ORIGIN)


def pod(changes: dict[str, Any] | None = None, key: bytes | None = b"c") -> object:
    return read_pod_record(key, json.dumps(merged(POD, changes or {})).encode(), APPEND_US, ORIGIN)


def result(changes: dict[str, Any] | None = None, key: bytes | None = b"c") -> object:
    return read_result_record(key, json.dumps(merged(RESULT, changes or {})).encode(), APPEND_US, ORIGIN)


def test_node_event() -> None:
    event = node()
    assert isinstance(event, NodeEvent)
    assert (event.type, event.at_us, event.origin) == (EventType.ADDED, APPEND_US - 500_000, ORIGIN)
    assert (event.node.name, event.node.uid, event.node.taints) == ("n1", "u1", (Taint("a", "", "NoExecute"),))


def test_pod_event() -> None:
    event = pod()
    assert isinstance(event, PodEvent)
    assert (event.type, event.at_us, event.origin) == (EventType.MODIFIED, APPEND_US, ORIGIN)
    assert event.pod.tolerations == (Toleration("", "Exists", "", "", 5),)


def test_result_event() -> None:
    assert result() == ResultEvent(
        node="n1",
        eviction_id="e1",
        attempt=2,
        pod_uid="p1",
        outcome=Outcome.FAILED,
        reason="webhook",
        at_us=APPEND_US - 1_000_000,
        origin=ORIGIN,
    )
    assert isinstance(result({"observedAt": None}), ResultEvent)


def test_held_is_accepted_with_the_id_of_a_brake() -> None:
    held = result({"outcome": "Accepted", "heldBy": "b-1"})
    assert isinstance(held, ResultEvent)
    assert (held.outcome, held.held_by) == (Outcome.HELD, "b-1")
    failed = result({"heldBy": "b-1"})
    assert isinstance(failed, ResultEvent)
    assert failed.outcome is Outcome.FAILED
    for wrong in ({"outcome": "Held", "heldBy": "b-1"}, {"outcome": "Accepted", "heldBy": "no id"}):
        with pytest.raises(Unreadable):
            result(wrong)


def test_a_change_tells_its_epoch() -> None:
    for event in (node({"epoch": 3}), pod({"epoch": 3})):
        assert isinstance(event, NodeEvent | PodEvent)
        assert event.epoch == 3


def test_unbound_pod_is_ignored() -> None:
    for name in (None, ""):
        assert pod({"object": {"spec": {"nodeName": name}}}) == Unbound("c")


@pytest.mark.parametrize(
    ("observed", "at_us"),
    [
        pytest.param(None, APPEND_US, id="none: append time"),
        pytest.param("2026-11-21T02:15:52.999999Z", APPEND_US - 1, id="as observed"),
        pytest.param("2026-11-21T03:15:52.999999+01:00", APPEND_US - 1, id="any zone"),
        pytest.param("2026-11-21T02:15:53.000001Z", APPEND_US, id="not after the append"),
        pytest.param("2026-11-21T02:14:53Z", APPEND_US - 60_000_000, id="just the minute before"),
        pytest.param("2026-11-21T02:14:52Z", APPEND_US - 60_000_000, id="not earlier than the minute before"),
        pytest.param("0001-01-01T00:00:00Z", APPEND_US - 60_000_000, id="the first instant"),
    ],
)
def test_event_time(observed: str | None, at_us: int) -> None:
    """docs/messages.md#the-time-that-counts: a function of the log alone"""
    event = node({"observedAt": observed})
    assert isinstance(event, NodeEvent)
    assert event.at_us == at_us


READERS = [read_node_record, read_pod_record, read_result_record]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        pytest.param(b"c", None, "NullValue", id="null value"),
        pytest.param(None, b"{}", "BadKey", id="no key"),
        pytest.param(b"", b"{}", "BadKey", id="empty key"),
        pytest.param(b"c/n1", b"{}", "BadKey", id="cluster and node, as in keys of earlier versions"),
        pytest.param(b"c/", b"{}", "BadKey", id="a slash at the end"),
        pytest.param(b"c\xff", b"{}", "BadKey", id="not UTF-8"),
        pytest.param(b"c\0", b"{}", "BadKey", id="NUL, which separates the parts of row keys"),
        pytest.param(b"c" * 771, b"{}", "BadKey", id="771 bytes"),
        pytest.param(b"c", b"", "BadJson", id="empty"),
        pytest.param(b"c", b"{", "BadJson", id="cut"),
        pytest.param(b"c", b"nope", "BadJson", id="text"),
        pytest.param(b"c", b'{"cluster":"\xff"}', "BadJson", id="value not UTF-8"),
        pytest.param(b"c", b'{"cluster":"\\ud800"}', "BadJson", id="half a surrogate"),
        pytest.param(b"c", b"[]", "WrongType", id="a list"),
        pytest.param(b"c", b'{"cluster":1}', "WrongType", id="a number for a text"),
        pytest.param(b"c", b'{"observedAt":"hunter2"}', "BadTime", id="no instant"),
        pytest.param(b"c", b'{"observedAt":"2026-11-21T02:15:53"}', "BadTime", id="no zone"),
        pytest.param(b"c", b'{"observedAt":"2026-13-21T02:15:53Z"}', "BadTime", id="month 13"),
        pytest.param(b"c", b'{"observedAt":5}', "WrongType", id="a number for an instant"),
        pytest.param(b"c", b"{}", "MissingField", id="empty object"),
    ],
)
def test_unreadable(reader: Any, key: bytes | None, value: bytes | None, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        reader(key, value, APPEND_US, ORIGIN)
    assert caught.value.reason == reason
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("reader", [read_node_record, read_pod_record])
def test_nesting_without_end_is_unreadable(reader: Any) -> None:
    value = b'{"cluster":"c","type":"ADDED","object":{"spec":{"tolerations":' + b"[" * 100_000
    with pytest.raises(Unreadable) as caught:
        reader(b"c", value, APPEND_US, ORIGIN)
    assert caught.value.reason in ("BadJson", "WrongType")


def test_oversized() -> None:
    assert DEFAULT_LIMITS.largest_value_bytes == 1_572_864
    for reader in READERS:
        with pytest.raises(Unreadable) as caught:
            reader(b"c", b" " * 11, APPEND_US, ORIGIN, InputLimits(largest_value_bytes=10))
        assert (caught.value.reason, caught.value.detail) == ("Oversized", "11 bytes, limit 10")


def test_a_node_uid_too_long_for_a_row_is_oversized() -> None:
    """A row of a node remembers all that its name has had for an hour."""
    for length, is_read in ((1024, True), (1025, False)):
        metadata = {**NODE["object"]["metadata"], "uid": "u" * length}
        value = json.dumps({**NODE, "object": {**NODE["object"], "metadata": metadata}}).encode()
        with contextlib.nullcontext() if is_read else pytest.raises(Unreadable, match="Oversized"):
            read_node_record(b"c", value, APPEND_US, ORIGIN)


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        pytest.param({"cluster": None}, "MissingField", "cluster", id="no cluster"),
        pytest.param({"cluster": "other"}, "ForeignCluster", "cluster differs", id="another cluster"),
        pytest.param({"type": None}, "MissingField", "type", id="no type"),
        pytest.param({"type": "ERROR"}, "UnknownEventType", "type", id="an error of the watch"),
        pytest.param({"type": "added"}, "UnknownEventType", "type", id="case counts"),
        pytest.param({"object": None}, "MissingField", "object", id="no object"),
        pytest.param({"object": {"kind": None}}, "MissingField", "object.kind", id="no kind"),
        pytest.param({"object": {"kind": "Service"}}, "WrongKind", "object.kind", id="another kind"),
        pytest.param({"object": {"apiVersion": "v2"}}, "WrongKind", "object.apiVersion", id="another version"),
        pytest.param({"object": {"metadata": None}}, "MissingField", "object.metadata", id="no metadata"),
        pytest.param({"object": {"metadata": {"name": None}}}, "MissingField", "object.metadata.name", id="no name"),
        pytest.param({"object": {"metadata": {"uid": ""}}}, "MissingField", "object.metadata.uid", id="no UID"),
        pytest.param(
            {"object": {"metadata": {"resourceVersion": ""}}},
            "MissingField",
            "object.metadata.resourceVersion",
            id="no version",
        ),
        pytest.param({"object": {"metadata": {"uid": 1}}}, "WrongType", "$.object.metadata.uid", id="UID no text"),
        pytest.param({"object": {"spec": []}}, "WrongType", "$.object.spec", id="spec a list"),
    ],
)
def test_watch_events_that_are_dead_letters(changes: dict[str, Any], reason: str, detail: str) -> None:
    for reader in (node, pod):
        with pytest.raises(Unreadable) as caught:
            reader(changes)
        assert caught.value.reason == reason
        assert detail in caught.value.detail


def test_kinds_belong_to_their_topics() -> None:
    for reader, value in ((read_node_record, POD), (read_pod_record, NODE)):
        with pytest.raises(Unreadable) as caught:
            reader(b"c", json.dumps(value).encode(), APPEND_US, ORIGIN)
        assert caught.value.reason in ("WrongKind", "WrongType")


def test_odd_values_are_no_reason() -> None:
    """semantics.md 12.3"""
    odd = {"key": "not a key!", "operator": "Near", "value": "-", "effect": "Later", "tolerationSeconds": -(10**30)}
    event = pod({"object": {"spec": {"tolerations": [odd]}, "status": {"phase": "Dancing"}}})
    assert isinstance(event, PodEvent)
    assert event.pod.tolerations[0].toleration_seconds == -(10**30)


def test_wrong_type_in_tolerations_names_the_path_only() -> None:
    with pytest.raises(Unreadable) as caught:
        pod({"object": {"spec": {"tolerations": [{"key": {SECRET: SECRET}}]}}})
    assert (caught.value.reason, caught.value.detail) == ("WrongType", "object.spec.tolerations[0].key")


def test_bad_time_in_a_taint() -> None:
    with pytest.raises(Unreadable) as caught:
        node({"object": {"spec": {"taints": [{"key": "a", "timeAdded": SECRET}]}}})
    assert (caught.value.reason, caught.value.detail) == ("BadTime", "object.spec.taints[0].timeAdded")


def test_a_taint_of_the_year_0_is_no_dead_letter() -> None:
    """The API server takes such a `timeAdded`, and gives it to every watch."""
    event = node({"object": {"spec": {"taints": [{"key": "a", "timeAdded": "0000-01-01T00:00:00Z"}]}}})
    assert isinstance(event, NodeEvent)
    assert event.node.taints[0].time_added_us == -62_167_219_200_000_000


@pytest.mark.parametrize("reader", [node, pod, result])
def test_key_and_value_must_name_one_cluster(reader: Any) -> None:
    with pytest.raises(Unreadable) as caught:
        reader(key=b"d")
    assert caught.value.reason == "ForeignCluster"


@pytest.mark.parametrize("reader", [node, pod, result])
def test_a_key_with_the_node_says_what_is_wrong(reader: Any) -> None:
    """Feeds and executors of the earlier contract wrote `<cluster>/<node>`."""
    with pytest.raises(Unreadable) as caught:
        reader(key=b"c/n1")
    assert (caught.value.reason, caught.value.detail) == (
        "BadKey",
        "not a cluster's name: it has a slash, which ends the cluster's name in rows",
    )


def named(name: str | None) -> list[tuple[Any, dict[str, Any], str]]:
    """Return each reader, the changes that give the record's node this name, and the path of the name."""
    return [
        (node, {"object": {"metadata": {"name": name}}}, "object.metadata.name"),
        (pod, {"object": {"spec": {"nodeName": name}}}, "object.spec.nodeName"),
        (result, {"node": name}, "node"),
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("n/1", "BadName", id="slash"),
        pytest.param("n\0", "BadName", id="NUL"),
        pytest.param("n" * 254, "Oversized", id="254 characters"),
        pytest.param("ü" * 127, "Oversized", id="254 bytes"),
    ],
)
def test_a_name_that_no_node_has_is_a_dead_letter(name: str, reason: str) -> None:
    for reader, changes, path in named(name):
        with pytest.raises(Unreadable) as caught:
            reader(changes)
        assert (caught.value.reason, caught.value.detail) == (reason, path)


def test_a_name_of_253_characters_is_read() -> None:
    for reader, changes, _ in named("n" * 253):
        assert reader(changes)


def test_a_result_needs_the_name_of_its_node() -> None:
    with pytest.raises(Unreadable) as caught:
        result({"node": ""})
    assert (caught.value.reason, caught.value.detail) == ("MissingField", "node")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "EvictionCommand"}, "WrongKind"),
        ({"apiVersion": "evictstream.io/v2"}, "WrongKind"),
        ({"outcome": "hunter2"}, "UnknownOutcome"),
        ({"attempt": "2"}, "WrongType"),
        ({"attempt": None}, "WrongType"),
        ({"podUid": None}, "WrongType"),
        ({"observedAt": "yesterday"}, "BadTime"),
    ],
)
def test_results_that_are_dead_letters(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        result(changes)
    assert caught.value.reason == reason
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("field", sorted(set(RESULT) - {"reason", "observedAt"}))
def test_results_need_their_fields(field: str) -> None:
    value = {name: content for name, content in RESULT.items() if name != field}
    with pytest.raises(Unreadable) as caught:
        read_result_record(b"c", json.dumps(value).encode(), APPEND_US, ORIGIN)
    assert caught.value.reason == "MissingField"
    assert field in caught.value.detail
