"""Commands say of which cluster they are, as its feed has said it."""

from __future__ import annotations

import json

import pytest

from evictstream.models.messages.command import decode_command
from tests.streams.worker.story import NOON_US, TAINT, Story


class NamedStory(Story):
    """A story whose feed may say the UID of its cluster."""

    def uid(self, at: float, uid: str, *, epoch: int = 0) -> None:
        value = json.dumps({"cluster": "lab", "type": "HEARTBEAT", "clusterUid": uid, "epoch": epoch}).encode()
        for topic in ("nodes", "pods"):
            self.raw(at, topic, value)

    def uids(self) -> list[str | None]:
        """Return the UIDs in the commands since the last call, `None` where a command has none."""
        sent = self.outbox.messages.pop("commands", [])
        return [decode_command(command.value).cluster_uid for command in sent]


@pytest.fixture
def story() -> NamedStory:
    told = NamedStory()
    told.node(0, TAINT)
    return told


def test_commands_name_the_cluster_that_the_feed_named(story: NamedStory) -> None:
    story.uid(1, "kube-system")
    story.pod(2, "soon", 60)
    story.pod(2, "now", None)
    story.fire(3)
    story.node(4)
    assert story.uids() == ["kube-system"] * 4  # `Schedule`, `Evict`, and a `Cancel` for each


def test_commands_name_no_cluster_before_the_feed_does(story: NamedStory) -> None:
    story.pod(1, "now", None)
    story.heartbeat(2)
    story.fire(3)
    assert [command.value.count(b"clusterUid") for command in story.outbox.messages["commands"]] == [0]


def test_a_rebuilt_cluster_is_named_from_its_epoch_on(story: NamedStory) -> None:
    story.uid(1, "old")
    story.pod(1, "a", 60)
    story.uid(2, "new", epoch=1)
    story.fire(61)
    assert story.uids() == ["old", "new"]


def test_the_cluster_is_named_after_a_restart(story: NamedStory) -> None:
    story.uid(1, "kube-system")
    story.pod(1, "now", None)
    rows = dict(story.outbox.rows)
    restarted = NamedStory()
    for key, value in rows.items():
        restarted.logic.load(key, value)
    restarted.logic.loaded()
    restarted.logic.fire(NOON_US + 9_000_000, 100, restarted.outbox)
    assert restarted.uids() == ["kube-system"]
