"""Every message that is written can be read back, and is what the page on messages shows."""

from __future__ import annotations

import json

import pytest

from evictstream.models.eviction import Outcome
from evictstream.models.kubernetes import NO_EXECUTE, Taint, Toleration
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.decision import DecisionRecord, decode_decision
from tests.models.eviction.scene import DELETED, SICK, SILENT, A, Scene, tolerate


def told() -> Scene:
    """A story in which every action, decision and optional part occurs."""
    scene = Scene()
    huge = Toleration("h", "Equal", "v", NO_EXECUTE, 10**30)
    scene.pod(0, tolerate("a", 60), tolerate("a"), huge, tolerate("", 70))
    scene.pod(0, uid="pod-2", name="web-1")
    scene.node(0, A)
    scene.pod(1, tolerate("a", 50))
    scene.run_until(50)
    scene.result(51, Outcome.FAILED, reason="webhook said no")
    scene.pod(51.1, tolerate("a", 100))
    scene.run_until(140)
    scene.node(141, Taint("a", "v", NO_EXECUTE))
    scene.pod(142, tolerate("a", 100), terminating=True)
    scene.node(150, SICK, ready="False")
    scene.pod(150, tolerate("", 30), uid="pod-3", name="web-3")
    scene.node(160, SILENT, ready="Unknown")
    scene.pod(161, tolerate("", 25), uid="pod-3", name="web-3")
    scene.node(170)
    scene.pod(171, uid="pod-3", name="web-3", event_type=DELETED)
    return scene


def messages(story: Scene) -> list[EvictionCommand | DecisionRecord]:
    return [*story.commands, *story.decisions]


@pytest.fixture(scope="module")
def story() -> Scene:
    return told()


def test_story_has_everything(story: Scene) -> None:
    assert {str(command.action) for command in story.commands} == {"Schedule", "Evict", "Cancel"}
    assert len(set(story.kinds)) == 9
    assert any(decision.outage_start for decision in story.decisions)
    assert any(decision.warnings for decision in story.decisions)
    assert any(decision.outcome_reason for decision in story.decisions)
    assert any(decision.toleration is None for decision in story.decisions)


def test_messages_read_back_as_they_were(story: Scene) -> None:
    for message in messages(story):
        text = encode(message)
        decode = decode_command if isinstance(message, EvictionCommand) else decode_decision
        assert encode(decode(text)) == text


def test_command_as_in_architecture_section_4(story: Scene) -> None:
    assert json.loads(encode(story.commands[0])) == {
        "apiVersion": "evictstream.io/v1",
        "kind": "EvictionCommand",
        "action": "Schedule",
        "evictionId": story.commands[0].eviction_id,
        "revision": 1,
        "attempt": 0,
        "cluster": "prod-eu-1",
        "namespace": "payments",
        "pod": "web-0",
        "podUid": "pod-1",
        "node": "node-0123",
        "nodeUid": "node-1",
        "reason": {
            "taint": {"key": "a", "effect": "NoExecute"},
            "toleration": {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            "verdict": "TolerationExpires",
        },
        "windowStart": "2026-11-21T02:15:53.000000Z",
        "deadline": "2026-11-21T02:16:53.000000Z",
        "issuedAt": "2026-11-21T02:15:53.000000Z",
    }


def test_decision_tells_cause_previous_and_warnings(story: Scene) -> None:
    moved = next(decision for decision in story.decisions if decision.decision == "Moved")
    found = json.loads(encode(moved))
    assert found["cause"] == {
        "kind": "Pod",
        "at": "2026-11-21T02:15:54.000000Z",
        "topic": "evictstream.test",
        "partition": 3,
        "offset": 42,
    }
    assert found["previous"] == {
        "state": "scheduled",
        "deadline": "2026-11-21T02:16:53.000000Z",
        "revision": 1,
        "attempt": 0,
    }
    issued = next(decision for decision in story.decisions if decision.decision == "Issued")
    assert json.loads(encode(issued))["cause"].keys() == {"kind", "at"}
    assert json.loads(encode(story.decisions[0]))["warnings"] == ["LaterTolerationDiffers"]
