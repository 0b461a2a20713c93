"""Recorded incidents as records of a few partitions, and what a replay makes of files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from evictstream.kit.inputs.opening import live
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.sources import open_source
from evictstream.models.instants import instant_text, instant_us
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.incidents import events_of

EVICTED = Path(__file__).parents[1] / "upstream" / "taint_eviction" / "recorded"
"""Incidents in which Kubernetes' own controller evicted."""
PARTITIONS = 3
CLUSTER = "lab"
AFTERMATH_SECONDS = 60.0

Outcomes = dict[tuple[str, str], tuple[str, str]]


def incident(folder: Path) -> list[RecordedRecord]:
    """Return an incident's records in the order of their times."""
    found, offsets = [], dict[tuple[str, int], int]()
    for event in events_of(folder):
        thing = event["object"]
        event = {"cluster": CLUSTER, **event}  # noqa: PLW2901 - kubectl records none
        is_node = thing["kind"] == "Node"
        key = event["cluster"].encode()
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


def outcomes(names: Sequence[Path], *, at: str | None = None) -> Outcomes:
    """Return deadline and instant of each command, by UID of the pod and action."""
    source = open_source(live(str(name) for name in names), cluster=CLUSTER, partitions=PARTITIONS, at=at)
    run = Replay(Settings(), partitions=source.partitions, plays_executor=True)
    found = {}
    for message in (*run.run(source.read()), *run.run_on(AFTERMATH_SECONDS)):
        if message.topic == "commands":
            command = json.loads(message.value)
            found[command["podUid"], command["action"]] = command["deadline"], instant_text(message.at_us)
    assert found
    assert not source.unreadable
    return found
