from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from evictstream.streams.deed_log import INTERVAL_SECONDS, MOST_CLUSTERS, OTHERS, DeedLog


class Clock:
    """Monotonic seconds that the test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_storm_is_some_lines_and_one_with_counts(clock: Clock) -> None:
    deeds = DeedLog(3, clock)
    taken = [deeds.takes("eviction issued", f"c{number % 2}") for number in range(9_000)]
    assert taken == [True] * 3 + [False] * 8_997
    with capture_logs() as logged:
        deeds.tell()
        assert logged == [], "the interval is not over"
        clock.now += INTERVAL_SECONDS
        deeds.tell()
        deeds.tell()
    (line,) = logged
    assert (line["event"], line["of"], line["count"]) == ("lines left out", "eviction issued", 8_997)
    assert line["clusters"] == {"c0": 4_498, "c1": 4_499}
    assert line["seconds"] == INTERVAL_SECONDS


def test_each_event_has_a_limit_of_its_own(clock: Clock) -> None:
    deeds = DeedLog(1, clock)
    assert [deeds.takes(event, "c") for event in ("one", "one", "two", "two")] == [True, False, True, False]
    clock.now += INTERVAL_SECONDS
    deeds.tell()
    assert deeds.takes("one", "c"), "a new interval"


def test_a_calm_time_has_no_counts(clock: Clock) -> None:
    deeds = DeedLog(3, clock)
    with capture_logs() as logged:
        assert deeds.takes("eviction issued", "c1")
        clock.now += INTERVAL_SECONDS
        deeds.tell()
        deeds.end()
    assert logged == []


def test_counts_have_the_level_of_what_they_stand_for(clock: Clock) -> None:
    deeds = DeedLog(0, clock)
    deeds.takes("eviction result", "c", "warning")
    deeds.takes("eviction result", "c")
    with capture_logs() as logged:
        deeds.end()
    assert [line["log_level"] for line in logged] == ["warning", "info"]


def test_each_outcome_is_counted_by_itself(clock: Clock) -> None:
    deeds = DeedLog(1, clock)
    for outcome in ("Succeeded", "Gone", "Gone", "Failed"):
        deeds.takes("eviction answered", "c", outcome=outcome)
    with capture_logs() as logged:
        deeds.end()
    assert [(line["outcome"], line["count"]) for line in logged] == [("Gone", 2), ("Failed", 1)]


def test_only_some_clusters_are_named(clock: Clock) -> None:
    deeds = DeedLog(0, clock)
    for number in range(MOST_CLUSTERS + 5):
        for _ in range(2 if number < MOST_CLUSTERS else 1):
            deeds.takes("eviction issued", f"c{number}")
    with capture_logs() as logged:
        deeds.end()
    assert len(logged[0]["clusters"]) == MOST_CLUSTERS + 1
    assert logged[0]["clusters"][OTHERS] == 5
