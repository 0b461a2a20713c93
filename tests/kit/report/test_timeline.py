"""What a report draws: taints from their first sight to their last, every eviction, its story, and silences."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import DifferenceKind, RunDifference
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.replay_report import report_of
from evictstream.kit.report import timeline as limits
from evictstream.kit.report.columns import DrawnOutcome, bin_seconds, counted, drawn
from evictstream.kit.report.report_files import ReportFile
from evictstream.kit.report.timeline import Silence, TaintBar, Timeline, TimelineCollector
from evictstream.streams.errors import WrongUseError
from evictstream.streams.settings import Settings
from tests.kit.report.fleet import CLUSTER, FIRST_MS, OUTAGE_MS, outage, write_report

FIRST_US, TAINTED_US = FIRST_MS * 1_000, (FIRST_MS + OUTAGE_MS) * 1_000


def collected(records: list[RecordedRecord], *, run_on_seconds: float = 30) -> Timeline:
    collector, replay = TimelineCollector(), Replay(Settings(), partitions=1, plays_executor=True)
    evictions = EvictionsOfRun()
    for message in (*replay.run(collector.watched(records)), *replay.run_on(run_on_seconds)):
        collector.take(message)
        if message.topic == "commands":
            evictions.take(message.value)
    return collector.timeline(evictions)


def without_taints(record: RecordedRecord, *, seconds: int, kind: str = "MODIFIED") -> RecordedRecord:
    event = json.loads(record.value or b"")
    event["type"] = kind
    event["object"]["spec"]["taints"] = []
    event["object"]["metadata"]["resourceVersion"] = str(record.offset + 1_000)
    at_ms = record.timestamp + seconds * 1_000
    return msgspec.structs.replace(record, timestamp=at_ms, offset=record.offset + 1, value=json.dumps(event).encode())


def test_a_taint_lasts_until_the_end_of_the_recording() -> None:
    found = collected(list(outage(nodes=1, pods=0)))
    assert found.taints == (TaintBar(CLUSTER, "n-0", "maintenance=<b>now</b>", TAINTED_US, None),)
    assert found.nodes() == [("z-0", CLUSTER, "n-0")]


@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED"])
def test_a_taint_ends_with_its_removal_or_its_node(kind: str) -> None:
    records = list(outage(nodes=1, pods=0))
    found = collected([*records, without_taints(records[-1], seconds=3, kind=kind)])
    assert [one.end_us for one in found.taints] == [TAINTED_US + 3_000_000]


def test_each_eviction_has_its_story() -> None:
    found = collected(list(outage(nodes=1, pods=2)))
    at_once, later = sorted(found.stories.values())
    assert "No toleration of the pod covers the taint" in at_once[0]
    assert at_once[-1].endswith("the pod is terminating. (played)")
    assert "It has to leave at" in later[0]
    assert all(line.startswith("2026-09-21T") for line in (*at_once, *later))


def test_evictions_are_drawn_from_taint_to_command() -> None:
    shown = drawn(collected(list(outage(nodes=2, pods=2)))).evictions
    assert shown["outcome"] == [DrawnOutcome.EVICTED] * 4
    lasting = [end - start for start, end in zip(shown["start"], shown["end"], strict=True)]
    assert sorted(lasting) == [0, 0, 5_000, 5_000]
    assert shown["zone"] == ["z-0", "z-0", "z-1", "z-1"]


def test_what_is_cancelled_ends_there() -> None:
    records = list(outage(nodes=1, pods=2))
    shown = drawn(collected([*records, without_taints(records[-1], seconds=2)])).evictions
    assert sorted(shown["outcome"]) == [DrawnOutcome.CANCELLED, DrawnOutcome.EVICTED]
    assert sum(math.isnan(at) for at in shown["cancelled"]) == 1


def test_what_is_not_due_is_open() -> None:
    shown = drawn(collected(list(outage(nodes=1, pods=2)), run_on_seconds=1)).evictions
    assert sorted(shown["outcome"]) == [DrawnOutcome.EVICTED, DrawnOutcome.OPEN]


def test_a_minute_without_records_is_a_silence() -> None:
    records = list(outage(nodes=1, pods=0))
    found = collected([*records, without_taints(records[-1], seconds=61)])
    assert found.silences == (Silence(CLUSTER, TAINTED_US, TAINTED_US + 61_000_000),)


def test_beyond_the_limit_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_EVICTIONS", 3)
    monkeypatch.setattr(limits, "_MOST_TAINTS", 1)
    found = collected(list(outage(nodes=2, pods=2)))
    assert (len(found.evictions), len(found.stories), len(found.taints), found.left_out) == (3, 3, 1, 2)


@pytest.mark.parametrize(
    ("span_seconds", "expected"),
    [pytest.param(10, 1, id="seconds"), pytest.param(3_600, 15, id="an hour"), pytest.param(10**9, 86_400, id="years")],
)
def test_bins_are_as_fine_as_can_be_seen(span_seconds: int, expected: int) -> None:
    assert bin_seconds(span_seconds * 1_000_000) == expected


def test_counts_fall_to_zero_beside_a_bin() -> None:
    assert counted([5_000_000, 5_500_000], 1) == [(4_000.0, 0), (5_000.0, 2), (6_000.0, 0)]


def test_a_page_in_no_folder_is_refused_before_the_replay(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="is not a folder"):
        ReportFile(tmp_path / "gone" / "x.html")


@pytest.mark.slow  # imports what draws
def test_an_incident_without_taints_is_drawn_too(tmp_path: Path) -> None:
    calm = list(outage(nodes=2, pods=1))[:4]
    write_report(calm, tmp_path / "calm.html")
    assert (tmp_path / "calm.html").stat().st_size


@pytest.mark.slow
def test_the_other_run_reads_the_differences_twice() -> None:
    from evictstream.kit.report.page import _left_there_us  # noqa: PLC0415 - Bokeh takes a second in each process

    class Differences(tuple[RunDifference, ...]):
        __slots__ = ()
        readings = 0

        def __iter__(self) -> Iterator[RunDifference]:
            Differences.readings += 1
            return super().__iter__()

    records = list(outage(nodes=2, pods=20))
    found = report_of(Settings(), lambda: records, partitions=1, plays_executor=True, run_on_seconds=30)
    first, *others = found.evictions.departures()
    later = first._replace(at_us=first.at_us + 9_000_000)
    differences = Differences([RunDifference(DifferenceKind.EARLIER, first, later)])
    drawn_there = sorted(_left_there_us(dataclasses.replace(found, differences=differences)))
    assert drawn_there == sorted([later.at_us, *(one.at_us for one in others)])
    assert Differences.readings == 2
