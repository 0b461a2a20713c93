"""Recorded incidents as records of a few partitions."""

from __future__ import annotations

import json
from pathlib import Path

from evictstream.models.instants import instant_us
from evictstream.streams.demo.recording import read_recording
from evictstream.streams.engine.kafka.partitioner import partition_of
from evictstream.streams.recordings.record import RecordedRecord

INCIDENTS = Path(__file__).parents[3] / "examples" / "incidents"
EVICTED = Path(__file__).parents[2] / "models" / "upstream" / "taint_eviction" / "recorded"
"""Incidents in which Kubernetes' own controller evicted."""
PARTITIONS = 3
CLUSTER = "lab"


def incident(folder: Path) -> list[RecordedRecord]:
    """Return an incident's records in the order of their times."""
    found, offsets = [], dict[tuple[str, int], int]()
    for event in read_recording(folder).events:
        thing = event["object"]
        event = {"cluster": CLUSTER, **event}  # noqa: PLW2901 - kubectl records none
        is_node = thing["kind"] == "Node"
        node = thing["metadata"]["name"] if is_node else thing["spec"].get("nodeName", "")
        key = f"{event['cluster']}/{node}".encode()
        topic, partition = "nodes" if is_node else "pods", partition_of(key, PARTITIONS)
        offset = offsets[topic, partition] = offsets.get((topic, partition), -1) + 1
        record = RecordedRecord(
            topic="nodes" if is_node else "pods",
            partition=partition,
            offset=offset,
            timestamp=-(-instant_us(event["observedAt"]) // 1_000),
            key=key,
            value=json.dumps(event).encode(),
        )
        found.append(record)
    return found
