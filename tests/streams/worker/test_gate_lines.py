from __future__ import annotations

import dataclasses

from structlog.testing import capture_logs

from evictstream.streams.deed_log import DeedLog
from evictstream.streams.partition.overdue import Waiting
from evictstream.streams.worker.gate_lines import GateLines
from evictstream.streams.worker.gates import Closed, Gate
from evictstream.streams.worker.snapshot import PartitionView, Snapshot
from tests.streams.worker.story import NOON_US, SECOND_US
from tests.streams.worker.test_metrics import view


def views(gate: Gate | None, *partitions: int, due: int = 0) -> tuple[PartitionView, ...]:
    closed = None if gate is None else Closed(gate, "for a reason")
    waiting = {} if gate is None or not due else {(gate, "lab"): Waiting(due, NOON_US)}
    return tuple(dataclasses.replace(view(), partition=n, closed=closed, waiting=waiting) for n in partitions)


def at(seconds: int, *found: PartitionView) -> Snapshot:
    return Snapshot(is_settled=True, partitions=found, at_us=NOON_US + seconds * SECOND_US)


def test_an_outage_is_a_line_at_each_end() -> None:
    lines = GateLines(DeedLog(100))
    with capture_logs() as logged:
        lines.look(at(0, *views(None, 0, 1, 2)))
        for second in range(1, 30):
            lines.look(at(second, *views(Gate.FRESH_VIEW, 0, 1, 2, due=second)))
        lines.look(at(31, *views(None, 0, 1, 2)))
    paused, resumed = logged
    assert (paused["event"], paused["log_level"], paused["gate"]) == ("firing paused", "warning", "fresh-view")
    assert (paused["partitions"], paused["evictions"]) == ([0, 1, 2], 3)
    assert (resumed["event"], resumed["log_level"], resumed["paused_seconds"]) == ("firing resumed", "info", 30)


def test_a_start_is_no_warning() -> None:
    lines = GateLines(DeedLog(100))
    with capture_logs() as logged:
        lines.look(at(0, *views(Gate.CAUGHT_UP, 0)))
    assert [line["log_level"] for line in logged] == ["info"]


def test_another_gate_ends_the_first() -> None:
    lines = GateLines(DeedLog(100))
    with capture_logs() as logged:
        lines.look(at(0, *views(Gate.OWNER, 0), *views(Gate.GAP, 1)))
        lines.look(at(1, *views(Gate.CAUGHT_UP, 0), *views(Gate.GAP, 1)))
    assert [(line["event"], line["gate"]) for line in logged] == [
        ("firing paused", "owner"),
        ("firing paused", "gap"),
        ("firing resumed", "owner"),
        ("firing paused", "caught-up"),
    ]


def test_a_partition_that_moves_away_is_forgotten() -> None:
    lines = GateLines(DeedLog(100))
    lines.look(at(0, *views(Gate.OWNER, 0)))
    with capture_logs() as logged:
        lines.look(at(1))
        lines.look(at(2, *views(None, 0)))
    assert logged == []


def test_a_gate_that_flutters_is_cut_short() -> None:
    lines = GateLines(DeedLog(3))
    with capture_logs() as logged:
        for second in range(20):
            lines.look(at(second, *views(Gate.FRESH_VIEW if second % 2 else None, 0)))
    assert len(logged) == 6
