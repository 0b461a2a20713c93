"""Recorded incidents beside what Kubernetes' own controller did, or would have done: each difference has its row."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evictstream.kit.inputs.opening import live
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import DifferenceKind, RunDifference, compare_runs, upstream_reason
from evictstream.kit.replay.departures import Departure
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.replay_report import report_of
from evictstream.kit.replay.sources import open_source
from evictstream.kit.replay.upstream_run import UpstreamRun
from evictstream.models.instants import instant_us
from evictstream.streams.settings import Settings
from tests.harness.incidents import INCIDENTS, incidents
from tests.kit.replay.recorded import CLUSTER, EVICTED, PARTITIONS, incident

AFTERMATH_SECONDS = 60.0
AUDIT_LOG = INCIDENTS.parent / "audit-log" / "audit.jsonl.gz"
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


def counted(
    records: list[RecordedRecord], recorded: list[Departure] | None = None
) -> dict[tuple[DifferenceKind, int | None], int]:
    """Count how the service differs from the model, or from what was recorded of a real controller."""
    here = ours(records)
    upstream = UpstreamRun(Settings(), partitions=PARTITIONS, service=here, recorded=recorded or ())
    for record in records:
        upstream.take(record)
    upstream.run_on(records[-1].timestamp * 1_000 + int(AFTERMATH_SECONDS * 1_000_000))
    found = compare_runs(here, upstream.departures if recorded is None else recorded)
    return Counter((one.kind, None if one.kind is SAME else upstream_reason(one, upstream).row) for one in found)


def deletions(folder: Path) -> list[Departure]:
    rows = [json.loads(line) for line in (folder / "upstream.jsonl").read_text().splitlines()]
    return [
        Departure(instant_us(row["at"]), "lab", row["uid"], f"{row['namespace']}/{row['pod']}", row["node"])
        for row in rows
    ]


@pytest.mark.parametrize("name", incidents(RECORDED))
def test_what_the_recorded_controller_did_otherwise(name: str) -> None:
    assert counted(incident(EVICTED / name), deletions(EVICTED / name)) == RECORDED[name]


@pytest.mark.parametrize("name", incidents(MODELLED))
def test_what_the_modelled_controller_would_do_otherwise(name: str) -> None:
    assert counted(incident(INCIDENTS / name)) == MODELLED[name]


def test_departures_of_one_pod_are_paired_in_order() -> None:
    def at(*seconds: float) -> list[Departure]:
        return [Departure(int(one * 1_000_000), "c", "u", "ns/p", "n") for one in seconds]

    def kinds(found: list[RunDifference]) -> list[DifferenceKind]:
        return [one.kind for one in found]

    assert kinds(list(compare_runs(at(10, 20), at(10.5, 30)))) == [SAME, EARLIER]
    assert kinds(list(compare_runs(at(10, 20), at(8)))) == [LATER, DifferenceKind.ONLY_HERE]
    assert kinds(list(compare_runs(at(10, 20), at(20.5)))) == [SAME, DifferenceKind.ONLY_HERE]
    assert kinds(list(compare_runs(at(), at(8)))) == [ONLY_THERE]


def test_an_audit_log_is_as_the_model_says() -> None:
    source = open_source(live([str(AUDIT_LOG)]), cluster=CLUSTER, partitions=PARTITIONS)
    found = report_of(
        Settings(),
        source.read,
        partitions=PARTITIONS,
        plays_executor=True,
        run_on_seconds=AFTERMATH_SECONDS,
        against="upstream",
    )
    assert (found.same, found.differences) == (2, ())
