"""Lists as kubectl and the API server write them."""

from __future__ import annotations

import io
import json

import pytest

from evictstream.kit.recordings import AuditChange, Entry, Flaw, Skipped, read_items
from evictstream.kit.recordings.entries import Item
from tests.streams.feed.samples import Object, kubectl_line, node, pod


def read(found: Object, indent: int | None = 4) -> list[Item]:
    return [
        item
        for item in read_items("f", io.BytesIO(json.dumps(found, indent=indent).encode()))
        if not isinstance(item, AuditChange)
    ]


def without_kind(found: Object) -> Object:
    return {name: value for name, value in found.items() if name not in {"kind", "apiVersion"}}


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize(
    "found",
    [
        pytest.param({"apiVersion": "v1", "items": [node(), pod()], "kind": "List"}, id="kubectl"),
        pytest.param({"kind": "NodeList", "apiVersion": "v1", "items": [without_kind(node())]}, id="api-server-nodes"),
        pytest.param(
            {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [without_kind(pod())]},
            id="api-server-pods",
        ),
    ],
)
def test_each_item_is_there(found: Object, indent: int | None) -> None:
    items = read(found, indent)
    expected = {"NodeList": [node()], "PodList": [pod()], "List": [node(), pod()]}[found["kind"]]
    assert [json.loads(bytes(item.object)) for item in items if isinstance(item, Entry)] == expected
    for item in items:
        assert isinstance(item, Entry)
        assert (item.type, item.is_listed, item.observed_at_us, item.node_name) == ("ADDED", True, None, "n-1")


def test_other_objects_are_left_out() -> None:
    items = read({"kind": "List", "items": [{"kind": "Service", "metadata": {"name": "s"}}, node()]})
    assert [type(item) for item in items] == [Skipped, Entry]


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        pytest.param(
            {"kind": "PodList", "metadata": {"continue": "abc"}, "items": []}, "one page of a list", id="page"
        ),
        pytest.param({"kind": "List", "items": [{"kind": 7}]}, "WrongType", id="kind-is-a-number"),
        pytest.param({"kind": "PodList", "items": [{"metadata": []}]}, "WrongType", id="metadata-is-a-list"),
    ],
)
def test_flaws_of_lists(found: Object, problem: str) -> None:
    (item,) = read(found)
    assert isinstance(item, Flaw)
    assert problem in item.problem


def test_changes_may_follow_a_list_in_one_file() -> None:
    data = json.dumps({"kind": "List", "items": [node()]}).encode() + b"\n" + kubectl_line(pod(), "MODIFIED")
    assert [item.type for item in read_items("f", io.BytesIO(data)) if isinstance(item, Entry)] == [
        "ADDED",
        "MODIFIED",
    ]
