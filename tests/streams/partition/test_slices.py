"""A change of a node with many pods goes on in slices: others work in between, and all of it is written or nothing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from evictstream.models.eviction import PODS_IN_SLICE
from evictstream.models.messages.object_limits import LARGEST_LIST
from evictstream.streams.engine.core.logic import Part
from evictstream.streams.engine.core.outbox import Outbox
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, FakeRecord, Story

PODS = 4 * PODS_IN_SLICE
SECONDS = [{"operator": "Exists", "tolerationSeconds": 60}]


class Crowd(Story):
    """A node with many pods in the cluster `lab`, and one with a single pod in the cluster `calm`."""

    def __init__(self, pods: int = PODS) -> None:
        super().__init__()
        for number in range(pods):
            self.pod(0, f"p{number}", 60)
        self.other("pods", {"kind": "Pod", "metadata": self.meta("c", namespace="x"), "spec": self.spec("m")})

    def meta(self, name: str, **more: str) -> dict[str, str]:
        return {"name": name, "uid": name, "resourceVersion": str(self.offset + 100), **more}

    def spec(self, node: str) -> dict[str, Any]:
        return {"nodeName": node, "tolerations": SECONDS}

    def other(self, topic: str, obj: dict[str, Any]) -> None:
        value = json.dumps({"cluster": "calm", "type": "MODIFIED", "object": obj}).encode()
        self.raw(0, topic, value, key=b"calm")

    def begin_taint(self, at: float) -> Iterator[Part]:
        """Begin the step for a taint on the crowded node."""
        self.now_us = NOON_US + round(at * SECOND_US)
        self.offset += 1
        obj = {"kind": "Node", "metadata": self.meta("n"), "spec": {"taints": [TAINT]}}
        value = json.dumps({"cluster": "lab", "type": "MODIFIED", "object": obj}).encode()
        self.outbox = Outbox()
        record = FakeRecord(self.offset, self.now_us // 1000, b"lab", value)
        return iter(self.logic.apply("nodes", [record], self.outbox))

    def sent(self, topic: str = "commands") -> list[dict[str, Any]]:
        return [json.loads(message.value) for message in self.outbox.messages.get(topic, ())]


def unfinished(parts: Iterator[Part]) -> Iterator[Part]:
    """Give the parts of the one step that is taken, up to the last."""
    return itertools.takewhile(lambda part: not part.is_last, parts)


def test_the_outbox_has_nothing_of_an_unfinished_step() -> None:
    story = Crowd()
    slices = story.begin_taint(1)
    pauses = 0
    for part in unfinished(slices):
        pauses += 1
        assert part.position == story.offset, "the position stays before the record"
        assert not story.outbox
    assert pauses >= PODS // PODS_IN_SLICE - 1
    assert [command["action"] for command in story.sent()] == ["Schedule"] * PODS
    assert len(story.sent("decisions")) == PODS
    assert len(story.outbox.rows) == PODS + 1


def test_other_nodes_fire_in_the_middle_of_a_step() -> None:
    story = Crowd()
    story.other("nodes", {"kind": "Node", "metadata": story.meta("m"), "spec": {"taints": [TAINT]}})
    slices = story.begin_taint(0)
    next(slices)
    next(slices)
    story.fire(120)  # the pods of the first slice are due by then as well
    assert [(command["action"], command["cluster"]) for command in story.sent()] == [("Evict", "calm")]
    for _ in slices:
        pass
    for _ in range(0, PODS + 1, 100):  # a hundred at a time
        story.fire(120)
    story.fire(120)
    evicted = {command["pod"] for command in story.sent() if command["action"] == "Evict"}
    assert evicted == {"c"} | {f"p{number}" for number in range(PODS)}, "what came due meanwhile was kept"


def test_a_small_node_is_stepped_without_a_pause() -> None:
    story = Crowd(pods=3)
    assert [part.is_last for part in story.begin_taint(1)] == [True]
    assert len(story.sent()) == 3


def test_deciding_anew_after_a_take_over_pauses_between_nodes() -> None:
    story = Crowd()
    list(story.begin_taint(1))
    assert len(list(story.logic.caught_up(story.now_us, Outbox()))) >= 2


def test_forgetting_a_cluster_is_written_whole() -> None:
    story = Crowd()
    list(story.begin_taint(1))
    story.offset += 1
    story.outbox = Outbox()
    value = json.dumps({"cluster": "lab", "type": "FORGET"}).encode()
    record = FakeRecord(story.offset, story.now_us // 1000 + 1, b"lab", value)
    pauses = 0
    for part in unfinished(story.logic.apply("nodes", [record], story.outbox)):
        pauses += 1
        assert part.position == story.offset
        assert not story.outbox
    assert pauses >= PODS // PODS_IN_SLICE
    assert [command["action"] for command in story.sent()] == ["Cancel"] * PODS


def test_forgetting_passes_over_a_node_that_empties_meanwhile() -> None:
    story = Crowd()
    gone = {"kind": "Pod", "metadata": story.meta("g", namespace="x"), "spec": story.spec("n2")}
    story.raw(1, "pods", json.dumps({"cluster": "lab", "type": "DELETED", "object": gone}).encode())
    story.offset += 1
    value = json.dumps({"cluster": "lab", "type": "FORGET"}).encode()
    forgetting = story.logic.apply(
        "nodes", [FakeRecord(story.offset, story.now_us // 1000 + 1, b"lab", value)], story.outbox
    )
    next(iter(forgetting))
    story.fire(2 * 3600)
    list(forgetting)
    story.fire(2 * 3600)
    assert story.logic.next_due_at_us() is None
    assert "lab" not in story.logic.open_evictions()


def test_an_object_beyond_a_limit_is_one_counted_dead_letter() -> None:
    story = Crowd(pods=1)
    list(story.begin_taint(1))
    tolerations = [{"key": f"t{number}"} for number in range(LARGEST_LIST + 1)]
    meta = story.meta("p0", namespace="x")
    story.event(
        2, "pods", "MODIFIED", {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "n", "tolerations": tolerations}}
    )
    (letter,) = story.outbox.messages["dead-letters"]
    assert dict(letter.headers)["reason"] == b"Undecidable"
    assert [command["action"] for command in story.sent()] == ["Schedule", "Cancel"]
    found = story.scrape()
    assert found["evictstream_dead_letters_total", "Undecidable"] == 1
    assert found["evictstream_events_total", "pods", "undecidable"] == 1


def test_costly_wakeups_fill_a_turn_sooner() -> None:
    story = Crowd(pods=100)
    taints = [{"key": f"t{number}", "effect": "NoExecute"} for number in range(LARGEST_LIST // 2)]
    story.node(0, *taints)
    story.outbox = Outbox()
    story.now_us += 60 * SECOND_US
    handled = story.logic.fire(story.now_us, 100, story.outbox)
    assert handled >= 100
    assert 0 < len(story.sent()) < 20
