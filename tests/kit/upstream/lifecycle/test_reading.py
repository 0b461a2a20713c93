from __future__ import annotations

import msgspec
import pytest

from evictstream.kit.upstream.lifecycle import Condition, WatchedNode, WatchedNodeObject, read_watched_node
from evictstream.models.kubernetes import FieldTimeError, MissingFieldError, ObjectError, Taint, WrongKindError

NOON_US = 1_420_113_600_000_000  # 2015-01-01T12:00:00Z


def read(text: str) -> WatchedNode:
    return read_watched_node(msgspec.json.decode(text, type=WatchedNodeObject))


def test_whole_node() -> None:
    text = """{"kind": "Node", "apiVersion": "v1",
        "metadata": {"name": "n", "uid": "u", "labels": {"a": "b", "c": null},
                     "creationTimestamp": "2015-01-01T12:00:00Z"},
        "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24",
                 "taints": [{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2015-01-01T12:00:00Z"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "M",
                   "lastHeartbeatTime": "2015-01-01T12:00:00Z", "lastTransitionTime": null}]}}"""
    assert read(text) == WatchedNode(
        "n",
        "u",
        {"a": "b", "c": ""},
        NOON_US,
        is_unschedulable=True,
        conditions=(Condition("Ready", "False", "R", "M", NOON_US, None),),
        taints=(Taint("k", "v", "NoExecute", NOON_US),),
    )


@pytest.mark.parametrize(
    "rest",
    [
        '"metadata": {"name": "n"}',
        '"apiVersion": "v1", "metadata": {"name": "n"}, "spec": {}, "status": {}',
        '"metadata": {"name": "n", "labels": null}, "spec": null, "status": null',
        '"metadata": {"name": "n"}, "spec": {"taints": null, "unschedulable": null}, "status": {"conditions": null}',
    ],
    ids=["trimmed", "empty parts", "null parts", "null lists"],
)
def test_what_is_absent_is_empty(rest: str) -> None:
    assert read(f'{{"kind": "Node", {rest}}}') == WatchedNode("n")


@pytest.mark.parametrize(
    ("text", "error", "field"),
    [
        ("{}", MissingFieldError, "kind"),
        ('{"kind": "Pod", "metadata": {"name": "n"}}', WrongKindError, "kind"),
        ('{"kind": "Node", "apiVersion": "v2", "metadata": {"name": "n"}}', WrongKindError, "apiVersion"),
        ('{"kind": "Node"}', MissingFieldError, "metadata"),
        ('{"kind": "Node", "metadata": {"uid": "u"}}', MissingFieldError, "metadata.name"),
        (
            '{"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "soon"}}',
            FieldTimeError,
            "metadata.creationTimestamp",
        ),
        (
            '{"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [{}, {"lastHeartbeatTime": ""}]}}',
            FieldTimeError,
            "status.conditions[1].lastHeartbeatTime",
        ),
    ],
    ids=["no kind", "a pod", "another version", "no metadata", "no name", "no creation time", "no heartbeat"],
)
def test_what_cannot_be_read_is_named(text: str, error: type[ObjectError], field: str) -> None:
    with pytest.raises(error) as refusal:
        read(text)
    assert refusal.value.field == field
