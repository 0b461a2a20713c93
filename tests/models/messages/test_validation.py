from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from evictstream.models.kubernetes.shapes import NodeObject, PodObject
from evictstream.models.messages import decoding
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import decode_command
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.watch_event import NodeOfFeed, PodOfFeed, WatchEvent, decode_object, decode_watch_event
from tests.models.messages.test_commands_and_decisions import told

NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "7", "labels": {"a": "b"}},
    "spec": {"taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-11-21T02:15:53Z"}], "providerID": "x"},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}]},
}
POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "8", "deletionTimestamp": None},
    "spec": {"nodeName": "n1", "tolerations": [{"operator": "Exists", "tolerationSeconds": -(10**30)}]},
    "status": {"phase": "Running", "hostIP": "10.0.0.1"},
}
RESULT = {
    "apiVersion": "evictstream.io/v1",
    "kind": "EvictionResult",
    "evictionId": "0" * 32,
    "attempt": 1,
    "cluster": "c",
    "namespace": "ns",
    "pod": "p",
    "podUid": "u",
    "node": "n1",
    "outcome": "Succeeded",
}


def event(**fields: Any) -> WatchEvent:
    return decode_watch_event(json.dumps({"cluster": "c", "type": "MODIFIED"} | fields))


def test_watch_events() -> None:
    node = decode_object(event(object=NODE, observedAt="2026-11-21T02:15:53.105869Z"))
    assert isinstance(node, NodeOfFeed)
    pod = decode_object(event(object=POD))
    assert isinstance(pod, PodOfFeed)
    assert pod.spec is not None
    assert pod.spec.tolerations is not None
    assert pod.spec.tolerations[0].toleration_seconds == -(10**30)
    event(object=NODE | {"spec": {"taints": [{"key": "a", "timeAdded": "0000-01-01T00:00:00Z"}]}})
    event(type="BOOKMARK", object={"kind": "Pod", "metadata": {"resourceVersion": "9"}})
    assert event(type="HEARTBEAT", listedAt="2026-11-21T02:15:53Z").listed_at is not None
    for kind in ("FORGET", "ACCEPT_GAP"):
        event(type=kind)
        event(type=kind, object=None)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="a change without its object"),
        pytest.param({"object": {"kind": "Pod"}}, id="an object without metadata"),
        pytest.param({"object": NODE | {"kind": "Service"}}, id="another kind"),
        pytest.param(
            {"object": NODE | {"spec": {"taints": [{"key": "a", "timeAdded": "2026-11-21"}]}}},
            id="timeAdded is no instant",
        ),
        pytest.param({"type": "ERROR"}, id="unknown type"),
        pytest.param({"type": "FORGET", "listedAt": "2026-11-21T02:15:53Z"}, id="listedAt elsewhere"),
        pytest.param({"type": "FORGET", "cluster": ""}, id="no cluster"),
        pytest.param({"type": "FORGET", "observedAt": "2026-11-21T02:15:53"}, id="no zone"),
        pytest.param({"type": "FORGET", "observedAt": 1}, id="a number is no instant"),
        pytest.param({"type": "FORGET", "clusterUid": "u"}, id="clusterUid elsewhere"),
        pytest.param({"type": "FORGET", "clusterLabels": {}}, id="clusterLabels elsewhere"),
        pytest.param(
            {"type": "FORGET", "clusterProfile": {"namespace": "n", "name": "c"}}, id="clusterProfile elsewhere"
        ),
        pytest.param({"type": "HEARTBEAT", "clusterProfile": {"namespace": "n"}}, id="a profile without its name"),
        pytest.param({"type": "FORGET", "listing": {"resourceVersion": "7", "uids": {}}}, id="listing elsewhere"),
    ],
)
def test_watch_events_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        event(**fields)


def test_results() -> None:
    found = decode_result(json.dumps(RESULT))
    assert (found.outcome, found.observed_at, found.reason) == ("Succeeded", None, "")
    for change in ({"outcome": "Done"}, {"attempt": "1"}, {"kind": "EvictionCommand"}):
        with pytest.raises(Unreadable):
            decode_result(json.dumps(RESULT | change))


OPTIONAL = {"nodeUid", "toleration", "outageStart", "nextAttemptAt", "previous", "warnings"}  # in decisions


def without(message: dict[str, Any], name: str) -> dict[str, Any]:
    return {field: value for field, value in message.items() if field != name}


@pytest.mark.parametrize(
    "change",
    [
        {"apiVersion": "evictstream.io/v2"},
        {"kind": "EvictionResult"},
        {"evictionId": "e1"},
        {"revision": 0},
        {"attempt": -1},
        {"attempt": "1"},
        {"cluster": ""},
        {"podUid": ""},
        {"node": ""},
        {"node": None},
        {"deadline": "2026-11-21T02:15:53"},
        {"deadline": "tomorrow"},
    ],
    ids=str,
)
def test_commands_and_decisions_that_are_refused(change: dict[str, Any]) -> None:
    story = told()
    for message, decode in ((story.commands[0], decode_command), (story.decisions[0], decode_decision)):
        decode(encode(message))
        with pytest.raises(Unreadable):
            decode(json.dumps(json.loads(encode(message)) | change))


def test_commands_and_decisions_need_their_fields() -> None:
    story = told()
    command, decision = json.loads(encode(story.commands[0])), json.loads(encode(story.decisions[0]))
    for name in command:
        with pytest.raises(Unreadable):
            decode_command(json.dumps(without(command, name)))
    for name in decision.keys() - OPTIONAL:
        with pytest.raises(Unreadable):
            decode_decision(json.dumps(without(decision, name)))


def fields(shape: Any) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(shape)}


def test_reader_knows_the_fields_of_a_watch_event() -> None:
    """The reader has structs of its own, in which everything may be absent: see `decoding`."""
    assert fields(decoding.PodWatch) == fields(WatchEvent)
    for shape, published in ((NodeObject, NodeOfFeed), (PodObject, PodOfFeed)):
        assert fields(shape) == fields(published) | {"kind"}
