"""Recorded incidents beside what Kubernetes' own controller did, or would have done: each difference has its row."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evictstream.models.instants import instant_us
from evictstream.streams.recordings.record import RecordedRecord
from evictstream.streams.replay.comparison import DifferenceKind, RunDifference, compare, upstream_reason
from evictstream.streams.replay.departures import Departure, circumstances
from evictstream.streams.replay.evictions import EvictionsOfRun
from evictstream.streams.replay.replay import Replay
from evictstream.streams.replay.upstream_run import UpstreamRun
from evictstream.streams.settings import Settings
from tests.streams.replay.recorded import EVICTED, INCIDENTS, PARTITIONS, incident

AFTERMATH_SECONDS = 60.0
SAME, EARLIER, LATER, ONLY_THERE = (
    DifferenceKind.SAME,
    DifferenceKind.EARLIER,
    DifferenceKind.LATER,
    DifferenceKind.ONLY_THERE,
)

RECORDED: dict[str, dict[tuple[DifferenceKind, int | None], int]] = {
    "flapping-taints": {(SAME, None): 80, (ONLY_THERE, 14): 16},
    "manual-taints": {
        (SAME, None): 64,
        (EARLIER, 5): 2,
        (EARLIER, 6): 4,
        (ONLY_THERE, 4): 4,
        (ONLY_THERE, 5): 4,
        (ONLY_THERE, 9): 3,
        (ONLY_THERE, 37): 2,
    },
    "node-conditions": {(SAME, None): 4},
    "recovery-before-deadline": {(SAME, None): 12},
    "single-node-unreachable": {(SAME, None): 20, (ONLY_THERE, 12): 1, (ONLY_THERE, 14): 1, (ONLY_THERE, 33): 2},
    "zone-dead": {(SAME, None): 100},
    "zone-outage-part-recovers": {(SAME, None): 68},
}
MODELLED: dict[str, dict[tuple[DifferenceKind, int | None], int]] = {
    "flapping-taints-no-evictor": {(SAME, None): 80},
    "manual-taints-no-evictor": {
        (SAME, None): 64,
        (EARLIER, 5): 2,
        (EARLIER, 6): 4,
        (LATER, 4): 4,
        (LATER, 5): 4,
        (LATER, 37): 2,
        (ONLY_THERE, 9): 3,
    },
    "recovery-before-deadline-no-evictor": {(SAME, None): 12},
    "single-node-unreachable-no-evictor": {
        (SAME, None): 20,
        (ONLY_THERE, 12): 1,
        (ONLY_THERE, 14): 1,
        (ONLY_THERE, 33): 2,
    },
    "zone-outage-part-recovers-no-evictor": {(SAME, None): 68},
}


def ours(records: list[RecordedRecord]) -> list[Departure]:
    replay, found = Replay(Settings(), partitions=PARTITIONS, plays_executor=True), EvictionsOfRun()
    for message in (*replay.run(records), *replay.run_on(AFTERMATH_SECONDS)):
        if message.topic == "commands":
            found.take(message.value)
    return [departure for one in found if (departure := one.departure()) is not None]


def counted(records: list[RecordedRecord], theirs: list[Departure]) -> dict[tuple[DifferenceKind, int | None], int]:
    found = list(compare(ours(records), theirs))
    differing = [one for one in found if one.kind is not SAME]
    how = dict(circumstances(records, [one.first for one in differing]))
    reasons = [(one.kind, upstream_reason(one.kind, how[one.first]).row) for one in differing]
    return Counter([*reasons, *((SAME, None) for one in found if one.kind is SAME)])


def deletions(folder: Path) -> list[Departure]:
    rows = [json.loads(line) for line in (folder / "upstream.jsonl").read_text().splitlines()]
    return [Departure(instant_us(row["at"]), "lab", row["uid"], f"{row['namespace']}/{row['pod']}", "") for row in rows]


@pytest.mark.parametrize("name", RECORDED)
def test_what_the_recorded_controller_did_otherwise(name: str) -> None:
    assert counted(incident(EVICTED / name), deletions(EVICTED / name)) == RECORDED[name]


@pytest.mark.parametrize("name", MODELLED)
def test_what_the_modelled_controller_would_do_otherwise(name: str) -> None:
    records = incident(INCIDENTS / name)
    upstream = UpstreamRun()
    for record in records:
        upstream.take(record)
    upstream.run_on(records[-1].timestamp * 1_000 + int(AFTERMATH_SECONDS * 1_000_000))
    assert counted(records, upstream.departures) == MODELLED[name]


def test_departures_of_one_pod_are_paired_in_order() -> None:
    def at(*seconds: float) -> list[Departure]:
        return [Departure(int(one * 1_000_000), "c", "u", "ns/p", "n") for one in seconds]

    def kinds(found: list[RunDifference]) -> list[DifferenceKind]:
        return [one.kind for one in found]

    assert kinds(list(compare(at(10, 20), at(10.5, 30)))) == [SAME, EARLIER]
    assert kinds(list(compare(at(10, 20), at(8)))) == [LATER, DifferenceKind.ONLY_HERE]
    assert kinds(list(compare(at(), at(8)))) == [ONLY_THERE]
