from __future__ import annotations

import json

import pytest

from evictstream.models.messages.decoding import read_node_record
from evictstream.models.messages.events import Origin
from evictstream.models.messages.signals import AcceptGap, Forget
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.operator_signals import accept_gap, forget_cluster
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.streams.feed.reading import read_one

AT_US = 1_800_000_000_000_000


def test_forgetting_reaches_each_partition_and_is_understood(settings: Settings) -> None:
    declare_topics(settings)
    with open_publisher(settings) as publisher:
        assert forget_cluster(publisher, settings.nodes_topic, "prod-eu-1") == (0, 1)
    records = read_one(settings, settings.nodes_topic)
    assert sorted(record.partition for record in records) == [0, 1]
    for record in records:
        assert record.key == b"prod-eu-1/"
        assert json.loads(record.value or b"") == {"cluster": "prod-eu-1", "type": "FORGET"}
        found = read_node_record(record.key, record.value, AT_US, Origin("t", 0, 0))
        assert found == Forget("prod-eu-1", AT_US)


@pytest.mark.parametrize(
    ("asked", "told"),
    [((), (0, 1, 2)), ((2,), (2,)), ((2, 0, 2), (0, 2))],
    ids=["all", "one", "two-one-of-them-twice"],
)
def test_accepting_reaches_the_named_partitions(
    asked: tuple[int, ...], told: tuple[int, ...], make_settings: MakeSettings
) -> None:
    settings = make_settings(partitions=3)
    declare_topics(settings)
    with open_publisher(settings) as publisher:
        assert accept_gap(publisher, settings.nodes_topic, asked) == told
    records = read_one(settings, settings.nodes_topic)
    assert sorted(record.partition for record in records) == list(told)
    for record in records:
        assert record.key == b"*/"
        found = read_node_record(record.key, record.value, AT_US, Origin("t", 0, 0))
        assert found == AcceptGap(AT_US)


def test_a_partition_that_is_none_sends_nothing(settings: Settings) -> None:
    declare_topics(settings)
    with open_publisher(settings) as publisher:
        with pytest.raises(WrongUseError, match="has 2 partitions, none numbered 2"):
            accept_gap(publisher, settings.nodes_topic, (0, 2))
        assert publisher.acknowledged == {}
