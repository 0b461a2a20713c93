"""An attempt says how old what it rests on may be: when its cluster's feed was last heard."""

from __future__ import annotations

import json

from evictstream.models.instants import instant_text
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, Story


def heard(story: Story) -> list[tuple[str, str | None]]:
    """What was decided, and when the feed was heard before."""
    decisions = [json.loads(message.value) for message in story.outbox.messages["decisions"]]
    return [(one["decision"], one.get("heardAt")) for one in decisions]


def at(seconds: float) -> str:
    return instant_text(NOON_US + round(seconds * SECOND_US))


def due_pod() -> Story:
    story = Story()
    story.pod(1, "p", None)
    return story


def test_each_attempt_names_the_newest_heartbeats() -> None:
    story = due_pod()
    story.heartbeat(5)
    story.node(10, TAINT)
    story.fire(12)
    story.result(13, "Obsolete")
    story.heartbeat(13.5)
    story.fire(15)
    assert heard(story) == [("Issued", at(5)), ("Reported", None), ("Retried", at(13.5))]


def test_the_topic_that_was_heard_last_does_not_count() -> None:
    story = due_pod()
    story.heartbeat(5)
    story.raw(9, "nodes", b'{"cluster":"lab","type":"HEARTBEAT"}')
    story.node(10, TAINT)
    story.fire(12)
    assert heard(story) == [("Issued", at(5))]


def test_a_feed_without_heartbeats_names_none() -> None:
    story = due_pod()
    story.node(10, TAINT)
    story.fire(12)
    assert heard(story) == [("Issued", None)]
