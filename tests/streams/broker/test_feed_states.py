"""What is kept of a fed cluster: the newest epoch, whoever wrote last."""

from __future__ import annotations

import msgspec
import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.feed_states import FeedState, read_fed, read_state
from evictstream.streams.broker.producers import open_producer
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
        publisher.send(settings.feeds_topic, b"other", b"{")
        publisher.send(settings.feeds_topic, b"other", msgspec.json.encode(state(7, 7)), partition=0)
        publisher.flush()
    assert read_state(settings, "lab") == found
    fed = read_fed(settings)
    assert fed.keys() == {"other"} | ({"lab"} if written else set())
    assert all(at_us > 0 for at_us in fed.values())


TEXT = msgspec.json.encode(state(1, 20))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        pytest.param([TEXT, None], None, id="tombstone"),
        pytest.param([TEXT, None, msgspec.json.encode(state(0, 5))], state(0, 5), id="begun again after a tombstone"),
        pytest.param([b"{"], None, id="no JSON"),
        pytest.param([b"\xff"], None, id="no UTF-8"),
        pytest.param([b"[" * 20_000], None, id="too deep"),
        pytest.param([TEXT.replace(b"20", b'"20"')], None, id="a text for a number"),
        pytest.param([TEXT.replace(b'"uid"', b"null")], None, id="no UID"),
        pytest.param([TEXT.replace(b'"uid"', b'""')], None, id="an empty UID"),
        pytest.param([TEXT.replace(b'"epoch":1', b'"epoch":1' + b"0" * 40)], None, id="an epoch without end"),
        pytest.param([TEXT.replace(b'"epoch":1', b'"epoch":2147483647')], None, id="an epoch that none can follow"),
        pytest.param([TEXT.replace(b"20", b"-1")], None, id="a version below all"),
        pytest.param([TEXT.replace(b"20", b"9" * 19 + b"9")], None, id="a version above all"),
        pytest.param([TEXT, b"{"], state(1, 20), id="what was kept before counts"),
    ],
)
def test_what_cannot_be_read_does_not_count(
    written: list[bytes | None], found: FeedState | None, settings: Settings
) -> None:
    declare_topics(settings)
    with open_producer(settings, delivery_seconds=30.0) as producer:
        for value in written:
            producer.send(settings.feeds_topic, key=b"lab", value=value, partition=0)
        producer.flush()
    assert read_state(settings, "lab") == found
    assert read_fed(settings).keys() == (set() if found is None else {"lab"})


def test_without_the_topic_nothing_is_fed(settings: Settings) -> None:
    assert read_fed(settings) == {}
