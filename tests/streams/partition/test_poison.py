"""Records that once ended every worker that read them, again and again; now they are data."""

from __future__ import annotations

import json

import pytest

from evictstream.models.messages.object_limits import LARGEST_LIST
from evictstream.streams.engine.core.logic import SLICE_COST
from evictstream.streams.engine.core.outbox import Outbox
from tests.streams.worker.story import TAINT, FakeRecord, Story

POD = b'{"cluster":"lab","type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"x",'
BEHIND = (
    b'"name":"p","uid":"p","resourceVersion":"200"},'
    b'"spec":{"nodeName":"n","tolerations":%s},"status":{"phase":"Running"}}}'
)


@pytest.mark.parametrize(
    ("tolerations", "reason"),
    [
        pytest.param(b'[{"key":"a\xff"}]', b"BadJson", id="broken UTF-8 in a text that is used"),
        pytest.param(b'[{"tolerationSeconds":' + b"9" * 5_000 + b"}]", b"WrongType", id="a number of 5,000 digits"),
        pytest.param(b"[" + b"{}," * 2_000 + b"{}]", b"Undecidable", id="empty entries, six times as large in a row"),
        pytest.param(b"[" * 5_000, b"BadJson", id="nesting without end"),
    ],
)
def test_unreadable_tolerations_of_a_known_pod_are_a_dead_letter(tolerations: bytes, reason: bytes) -> None:
    story = Story()
    story.pod(0, "p", 60)
    story.raw(1, "pods", POD + BEHIND % tolerations)
    (letter,) = story.outbox.messages["dead-letters"]
    assert dict(letter.headers)["reason"] == reason


def test_each_record_beyond_a_limit_is_a_dead_letter() -> None:
    story = Story()
    beyond = POD + BEHIND % (b"[" + b"{}," * LARGEST_LIST + b"{}]")
    later = (POD + BEHIND % b"[]").replace(b'"lab",', b'"lab","epoch":1,').replace(b'"p"', b'"q"')
    for second, value in enumerate((beyond, beyond, later, beyond)):  # new, known, and then of an epoch that has ended
        story.raw(second, "pods", value)
    assert len(story.outbox.messages["dead-letters"]) == 3


AFFINITY = b'],"affinity":{"nodeAffinity":[%s]}'


def test_a_pod_is_decided_however_large_what_decides_nothing_is() -> None:
    story = Story()
    story.node(0, TAINT)
    large = AFFINITY % b",".join([b'{"operator":"DoesNotExist"}'] * 70_000) + b',"x":['
    story.raw(1, "pods", POD + BEHIND % (b"[" + large + b"]"))
    story.fire(2)
    assert [message.key for message in story.outbox.messages["commands"]] == [b"lab"]
    assert "dead-letters" not in story.outbox.messages


@pytest.mark.parametrize("levels", [990, 1_500, 9_995, 200_000])
def test_a_deep_record_costs_no_other_one_anything(levels: int) -> None:
    story = Story()
    story.node(0, TAINT)
    deep = b'[{"x":' * levels + b"1" + b"}]" * levels
    story.raw(1, "pods", POD.replace(b'"Pod",', b'"Pod","managedFields":%s,' % deep) + BEHIND % b"[]")
    story.raw(1, "nodes", b'{"cluster":"lab","type":"MODIFIED","object":{"kind":"Node","metadata":%s}}' % deep)
    story.raw(1, "results", b'{"cluster":"lab","kind":%s}' % deep)
    story.pod(2, "other", None)
    story.fire(3)
    assert [json.loads(message.value)["pod"] for message in story.outbox.messages["commands"]] == ["other"]
    letters = story.outbox.messages["dead-letters"]
    assert {dict(letter.headers)["reason"] for letter in letters} <= {b"BadJson", b"WrongType", b"Oversized"}
    assert len(letters) == 3


def test_many_earlier_nodes_do_not_make_a_row_too_large() -> None:
    story = Story()
    for number in range(60):
        meta = {"name": "n", "uid": f"u{number}" * 100, "resourceVersion": "9" * 120 + str(number)}
        story.event(number, "nodes", "DELETED", {"kind": "Node", "metadata": meta, "spec": {"x": "y" * 20_000}})
    assert max(len(value or b"") for value in story.outbox.rows.values()) < 32 * 1_024


def test_costly_records_are_stepped_with_pauses() -> None:
    story = Story()
    records = []
    for number in range(5):
        meta = {"name": "n", "uid": "node", "resourceVersion": str(number + 1)}
        taints = [{"key": f"t{taint}", "effect": "NoExecute"} for taint in range(500)]
        obj = {"kind": "Node", "metadata": meta, "spec": {"taints": taints}}
        value = json.dumps({"cluster": "lab", "type": "MODIFIED", "object": obj}).encode()
        records.append(FakeRecord(number + 10, story.now_us // 1000, b"lab", value))
    parts = list(story.logic.apply("nodes", records, Outbox()))
    assert [part.position for part in parts if part.cost >= SLICE_COST] == [11, 12, 13, 14, 15]


def test_large_pods_are_stepped_with_pauses() -> None:
    story = Story()
    value = POD + BEHIND % b"[]" + b" " * 9_000
    values = [value.replace(b'"200"', b'"%d"' % number) for number in range(1, 5)]
    records = [FakeRecord(number, story.now_us // 1000, b"lab", one) for number, one in enumerate(values, start=10)]
    parts = list(story.logic.apply("pods", records, Outbox()))
    assert [part.position for part in parts if part.cost >= SLICE_COST] == [11, 12, 13, 14]


def test_a_pod_that_ends_after_the_forgetting_gets_new_ids() -> None:
    story = Story()
    story.pod(0, "p", 60)
    story.node(1, {"key": "lab", "effect": "NoExecute"})
    story.forget(2)
    story.pod(3, "p", 60, "DELETED")
    story.pod(4, "p", 60)
    story.node(5, {"key": "lab", "effect": "NoExecute"})
    sent = [json.loads(message.value) for message in story.outbox.messages["commands"]]
    names = [command["evictionId"] for command in sent if command["action"] == "Schedule"]
    assert len(names) == len(set(names)) == 2
