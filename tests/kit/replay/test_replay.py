"""Recorded incidents through a replay: the same each time, whatever was read together, and in whatever order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from random import Random

import pytest

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.models.eviction.cluster import EpochBegun
from evictstream.models.instants import instant_us
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.incidents import INCIDENTS, incidents
from tests.kit.replay.recorded import PARTITIONS, incident

NAMES = sorted(folder.name for folder in INCIDENTS.iterdir() if folder.is_dir())
AFTERMATH_SECONDS = 60.0
BOTH: tuple[Role, ...] = ("nodes", "pods")


def replayed(
    records: Sequence[RecordedRecord], *, chunk: int = 10_000, plays_executor: bool = True
) -> list[ReplayedMessage]:
    replay = Replay(Settings(), partitions=PARTITIONS, plays_executor=plays_executor)
    return sorted([*replay.run(records, chunk=chunk), *replay.run_on(AFTERMATH_SECONDS)])


def outcomes(messages: Sequence[ReplayedMessage]) -> dict[str, tuple[str, str]]:
    """Return deadline and last action by eviction."""
    found = {}
    for message in messages:
        if message.topic == "commands":
            command = json.loads(message.value)
            found[command["evictionId"]] = command["deadline"], command["action"]
    return found


@pytest.mark.parametrize("name", incidents(NAMES))
def test_any_chunk_gives_the_same_bytes(name: str) -> None:
    records = incident(INCIDENTS / name)
    first = replayed(records)
    assert any(message.topic == "commands" for message in first)
    assert replayed(records, chunk=1) == first
    assert replayed(records, chunk=17) == first


@pytest.mark.parametrize("name", incidents(NAMES))
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.kit) for seed in (1, 2))])
def test_any_interleaving_ends_the_same(name: str, seed: int) -> None:
    records = incident(INCIDENTS / name)
    first = replayed(records, plays_executor=False)
    deadlines = {json.loads(one.value)["deadline"] for one in first if one.topic == "commands"}
    shuffled = interleaved(records, sorted(map(instant_us, deadlines)), Random(seed))  # noqa: S311
    assert shuffled != records
    assert outcomes(replayed(shuffled, plays_executor=False)) == outcomes(first)


def interleaved(records: Sequence[RecordedRecord], deadlines: Sequence[int], draw: Random) -> list[RecordedRecord]:
    """Merge topics anew, each partition's records in their order; a worker reads both topics before it fires."""
    parts: defaultdict[int, list[RecordedRecord]] = defaultdict(list)
    for record in records:
        parts[sum(at_us <= record.timestamp * 1_000 for at_us in deadlines)].append(record)
    found: list[RecordedRecord] = []
    for _, part in sorted(parts.items()):
        logs: defaultdict[tuple[str, int], list[RecordedRecord]] = defaultdict(list)
        for record in part:
            logs[record.topic, record.partition].append(record)
        order = [place for place, log in logs.items() for _ in log]
        draw.shuffle(order)
        found += [logs[place].pop(0) for place in order]
    return found


def test_an_epoch_that_both_topics_name_is_one() -> None:
    records = [
        RecordedRecord(
            topic=topic,
            partition=partition_of(b"lab", PARTITIONS),
            offset=epoch,
            timestamp=1_000 * (epoch + 1),
            key=b"lab",
            value=json.dumps({"cluster": "lab", "type": "HEARTBEAT", "epoch": epoch}).encode(),
        )
        for epoch in range(2)
        for topic in ("nodes", "pods")
    ]
    replay = Replay(Settings(), partitions=PARTITIONS, plays_executor=False)
    assert list(replay.run(records)) == []
    assert replay.epochs == [EpochBegun("lab", 1, "", 2_000_000)]
