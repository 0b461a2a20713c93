"""What is known at the end of records: as the service knows it, with what people ask for beside it."""

from __future__ import annotations

import json

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.cluster_tables import ClusterTables, until
from evictstream.kit.rules.kubectl import parse_taints
from evictstream.kit.what_if.change import NodeChoice, PlannedChange
from evictstream.kit.what_if.facts import PodFacts
from evictstream.kit.what_if.preview import Preview, preview
from evictstream.models.eviction import RuleParameters
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.worker.service_config import partition_config
from evictstream.streams.worker.stored_rows import ENGINE_KEYS
from tests.harness.incidents import INCIDENTS
from tests.kit.replay.recorded import CLUSTER, incident
from tests.kit.replay.test_what_if import BEGIN_MS, SETTINGS, Log

FOR_20_S = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
TAINT = {"key": "a", "effect": "NoExecute"}
OUTAGE = INCIDENTS / "zone-outage-part-recovers-no-evictor"


def tables_of(log: Log) -> ClusterTables:
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(log.records)
    return tables


def small() -> Log:
    log = Log()
    log.node(BEGIN_MS, "n-1", [TAINT], "True")
    log.pod(BEGIN_MS, "web", "n-1", [FOR_20_S], "Running")
    log.pod(BEGIN_MS, "db", "n-1", [FOR_20_S], "Running")
    return log


def signal(log: Log, topic: str, **event: object) -> None:
    value = json.dumps({"cluster": "lab", "epoch": 0} | event).encode()
    log.records.append(
        RecordedRecord(
            topic="nodes" if topic == "nodes" else "pods",
            partition=0,
            offset=len(log.records),
            timestamp=BEGIN_MS + 1_000,
            key=b"lab",
            value=value,
        )
    )


def foreseen(tables: ClusterTables) -> Preview:
    change = PlannedChange(taints=parse_taints(["more:NoExecute", "a-"]))
    choice = NodeChoice(zone="z-a")
    return preview(tables.cluster(CLUSTER), change, choice, at_us=tables.at_us, rules=RuleParameters())


def test_what_a_listing_does_not_hold_is_gone() -> None:
    log = small()
    signal(log, "pods", type="LISTED", listing={"resourceVersion": "99", "uids": {"n-1": ["uid-web"]}})
    known = tables_of(log).cluster("lab")
    assert list(known.nodes["n-1"].aggregate.pods) == list(known.pods) == ["uid-web"]


def test_a_forgotten_cluster_is_not_known() -> None:
    log = small()
    signal(log, "nodes", type="FORGET")
    assert tables_of(log).clusters == []


def test_what_cannot_be_read_is_counted() -> None:
    log = small()
    signal(log, "pods", type="NONSENSE")
    tables = tables_of(log)
    assert (tables.unreadable, tables.clusters) == (1, ["lab"])


def test_facts_of_an_older_version_do_not_count() -> None:
    log = small()
    log.node(BEGIN_MS, "n-1", [], "True")
    late = log.records[0]
    tables = tables_of(log)
    assert not tables.cluster("lab").nodes["n-1"].facts.taints
    tables.take([late])
    assert not tables.cluster("lab").nodes["n-1"].facts.taints


def test_of_an_object_without_records_the_rows_are_known() -> None:
    tables = ClusterTables(SETTINGS, partitions=1)
    rows = dict(rows_of(small().records, 1)[0])
    for key, value in rows.items():
        tables.load(0, key, value)
    tables.loaded()
    known = tables.cluster("lab")
    node = known.nodes["n-1"]
    assert ([one.key for one in node.facts.taints], node.facts.has_all_labels) == (["a"], False)
    assert known.pods.get("uid-web", PodFacts()) == PodFacts(None, None)


def test_rows_with_facts_foresee_what_records_foresee() -> None:
    records = incident(OUTAGE)
    taken = ClusterTables(SETTINGS, partitions=3)
    taken.take(records)
    loaded = ClusterTables(SETTINGS, partitions=3)
    for partition, rows in rows_of(records, 3).items():
        for key, value in rows.items():
            loaded.load(partition, key, value)
    for key in ENGINE_KEYS:
        loaded.load(0, key, b"of the engine")
    loaded.loaded()
    loaded.take_facts(records)
    assert len(foreseen(taken).outcomes) == 84
    assert foreseen(loaded) == foreseen(taken)


def test_records_up_to_an_instant() -> None:
    records = incident(OUTAGE)
    at_us = records[300].timestamp * 1_000
    assert [one.timestamp * 1_000 <= at_us for one in until(records, at_us)] == [True] * 301
    assert list(until(records, None)) == records


def rows_of(records: list[RecordedRecord], partitions: int) -> dict[int, dict[bytes, bytes | None]]:
    """Return the rows that a service writes, by partition."""
    own = SETTINGS.model_copy(update={"topic_prefix": "", "partitions": partitions})
    config = partition_config(own, own.max_record_bytes)
    found: dict[int, dict[bytes, bytes | None]] = {}
    for number in range(partitions):
        logic, outbox = EvictionPartition(number, config), Outbox()
        logic.loaded()
        for record in records:
            if record.partition == number:
                topic = config.nodes_topic if record.topic == "nodes" else config.pods_topic
                for _ in logic.apply(topic, [record], outbox):
                    pass
        found[number] = outbox.rows
    return found
