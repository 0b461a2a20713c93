from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evictstream.models.messages.command import CommandContract
from evictstream.models.messages.result import ResultContract
from evictstream.models.messages.watch_event import BookmarkObject, WatchedNode, WatchedPod, WatchEventContract
from evictstream.models.messages.wire import encode
from tests.models.messages.test_wire import told

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


def event(**fields: Any) -> WatchEventContract:
    import json  # noqa: PLC0415

    return WatchEventContract.model_validate_json(json.dumps({"cluster": "c", "type": "MODIFIED"} | fields))


def test_watch_events() -> None:
    node = event(object=NODE, observedAt="2026-11-21T02:15:53.105869Z").object
    assert isinstance(node, WatchedNode)
    pod = event(object=POD).object
    assert isinstance(pod, WatchedPod)
    assert pod.spec is not None
    assert pod.spec.tolerations is not None
    assert pod.spec.tolerations[0].toleration_seconds == -(10**30)
    event(object=NODE | {"spec": {"taints": [{"key": "a", "timeAdded": "0000-01-01T00:00:00Z"}]}})
    bookmark = event(type="BOOKMARK", object={"kind": "Pod", "metadata": {"resourceVersion": "9"}})
    assert isinstance(bookmark.object, BookmarkObject)
    assert event(type="HEARTBEAT", listedAt="2026-11-21T02:15:53Z").listed_at is not None
    assert event(type="FORGET").object is None
    assert event(type="ACCEPT_GAP").object is None


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
        pytest.param({"type": "FORGET", "extra": 1}, id="unknown field in what is ours"),
    ],
)
def test_watch_events_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        event(**fields)


def test_results() -> None:
    result = ResultContract.model_validate(RESULT, strict=False)
    assert (result.outcome, result.observed_at, result.reason) == ("Succeeded", None, "")
    for change in ({"outcome": "Done"}, {"attempt": "1"}, {"extra": 1}, {"kind": "EvictionCommand"}):
        with pytest.raises(ValidationError):
            ResultContract.model_validate(RESULT | change)


def test_command_refuses_unknown_fields_in_what_is_ours_only() -> None:
    import json  # noqa: PLC0415

    command = json.loads(encode(told().commands[0]))
    command["reason"]["toleration"]["newInKubernetes"] = True
    CommandContract.model_validate_json(json.dumps(command))
    command["reason"]["new"] = True
    with pytest.raises(ValidationError):
        CommandContract.model_validate_json(json.dumps(command))
