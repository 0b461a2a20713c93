"""What is kept of a fed cluster: the newest epoch, whoever wrote last."""

from __future__ import annotations

import msgspec
import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.feed_states import FeedState, read_state
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.settings import Settings


def state(epoch: int, version: int) -> FeedState:
    return FeedState(cluster_uid="uid", epoch=epoch, resource_version=version)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([state(0, 10), state(0, 20)], state(0, 20), id="the last one"),
        pytest.param([state(0, 90), state(1, 20), state(0, 99)], state(1, 20), id="a late one of an earlier epoch"),
    ],
)
def test_the_highest_epoch_counts(written: list[FeedState], found: FeedState | None, settings: Settings) -> None:
    declare_topics(settings)
    with open_publisher(settings, also=[settings.feeds_topic]) as publisher:
        for one in written:
            publisher.send(settings.feeds_topic, b"lab", msgspec.json.encode(one), partition=0)
        publisher.send(settings.feeds_topic, b"other", msgspec.json.encode(state(7, 7)), partition=0)
        publisher.flush()
    assert read_state(settings, "lab") == found
