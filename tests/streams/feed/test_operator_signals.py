from __future__ import annotations

import json

from evictstream.models.messages.decoding import read_node_record
from evictstream.models.messages.events import Origin
from evictstream.models.messages.signals import AcceptGap, Forget
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.feed.operator_signals import accept_gap, forget_cluster
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.streams.feed.reading import read_one

AT_US = 1_800_000_000_000_000


def test_forgetting_reaches_the_clusters_partition(settings: Settings) -> None:
    declare_topics(settings)
    with open_publisher(settings) as publisher:
        forget_cluster(publisher, settings.nodes_topic, "prod-eu-1")
    (record,) = read_one(settings, settings.nodes_topic)
    assert record.partition == partition_of(b"prod-eu-1", settings.partitions)
    assert record.key == b"prod-eu-1"
    assert json.loads(record.value or b"") == {"cluster": "prod-eu-1", "type": "FORGET"}
    found = read_node_record(record.key, record.value, AT_US, Origin("t", 0, 0))
    assert found == Forget("prod-eu-1", AT_US)


def test_accepting_reaches_the_named_clusters(settings: Settings) -> None:
    declare_topics(settings)
    with open_publisher(settings) as publisher:
        accept_gap(publisher, settings.nodes_topic, ("a", "b"))
    records = read_one(settings, settings.nodes_topic)
    assert {record.key: record.partition for record in records} == {
        name: partition_of(name, settings.partitions) for name in (b"a", b"b")
    }
    for record in records:
        found = read_node_record(record.key, record.value, AT_US, Origin("t", 0, 0))
        assert found == AcceptGap((record.key or b"").decode(), AT_US)
