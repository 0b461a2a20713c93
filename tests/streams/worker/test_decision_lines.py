"""What a worker logs about single evictions: which events, at which level, with which fields. Never content."""

from __future__ import annotations

import dataclasses

import pytest
from structlog.testing import capture_logs

from evictstream.streams.deed_log import DeedLog
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.worker.decision_lines import DecisionLines
from tests.streams.worker.story import TAINT, Story

PLACE = {"cluster", "namespace", "pod", "uid", "node", "taint", "eviction", "attempt", "verdict", "deadline"}


class LoggedStory(Story):
    """A story whose partition logs what it decides."""

    def __init__(self, limit: int = 100) -> None:
        super().__init__()
        lines = DecisionLines(DeedLog(limit))
        self.config = dataclasses.replace(self.config, on_decided=lines.decided, on_dead_letter=lines.dead_letter)
        self.logic = EvictionPartition(0, self.config)
        self.heartbeat(0)
        self.node(0, TAINT)


def test_each_evict_is_a_line_and_a_success_none() -> None:
    story = LoggedStory()
    with capture_logs() as logged:
        story.pod(1, "a", None)
        story.fire(2)
        story.result(3, "Succeeded")
        story.pod(4, "a", None, "DELETED")
    (line,) = logged
    assert (line["event"], line["log_level"], line["pod"], line["late_seconds"]) == ("eviction issued", "info", "a", 1)
    assert set(line) >= PLACE


@pytest.mark.parametrize(("outcome", "level"), [("Failed", "warning"), ("Refused", "warning"), ("Gone", "info")])
def test_another_result_is_a_line(outcome: str, level: str) -> None:
    story = LoggedStory()
    story.pod(1, "a", None)
    story.fire(2)
    with capture_logs() as logged:
        story.result(3, outcome)
    (line,) = logged
    assert (line["event"], line["log_level"], line["outcome"]) == ("eviction result", level, outcome)
    assert set(line) >= PLACE


def test_a_cancelled_eviction_is_a_line() -> None:
    story = LoggedStory()
    story.pod(1, "a", 300)
    with capture_logs() as logged:
        story.node(2)
    assert [(line["event"], line["log_level"], line["pod"]) for line in logged] == [("eviction cancelled", "info", "a")]


def test_a_dead_letter_is_a_line_without_content() -> None:
    story = LoggedStory()
    with capture_logs() as logged:
        story.raw(1, "pods", b'{"secret of": "somebody"')
    (line,) = logged
    assert (line["event"], line["log_level"], line["reason"]) == ("dead letter", "warning", "BadJson")
    assert (line["cluster"], line["topic"], line["offset"]) == ("lab", "pods", story.offset)
    assert "somebody" not in str(line)
