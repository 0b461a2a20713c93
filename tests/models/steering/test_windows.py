"""When windows are open, in local times."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.see.window_texts import read_window, window_text
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy_clauses import DAYS, PolicyWindow
from evictstream.models.steering.windows import Windows, is_zone

HOUR_US = 3_600 * SECOND_US


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp()) * SECOND_US


@pytest.mark.parametrize(
    ("windows", "now", "span"),
    [
        pytest.param(["22:00-05:00 UTC"], "2026-11-25T23:00Z", ("2026-11-25T22:00Z", "2026-11-26T05:00Z"), id="open"),
        pytest.param(["22:00-05:00 UTC"], "2026-11-26T04:59Z", ("2026-11-25T22:00Z", "2026-11-26T05:00Z"), id="before"),
        pytest.param(["22:00-05:00 UTC"], "2026-11-26T05:00Z", ("2026-11-26T22:00Z", "2026-11-27T05:00Z"), id="ended"),
        pytest.param(
            ["Fri 22:00-05:00 UTC"], "2026-11-26T23:00Z", ("2026-11-27T22:00Z", "2026-11-28T05:00Z"), id="another day"
        ),
        pytest.param(
            ["Fri 22:00-05:00 UTC"], "2026-11-28T05:00Z", ("2026-12-04T22:00Z", "2026-12-05T05:00Z"), id="next week"
        ),
        pytest.param(
            ["10:00-12:00 Asia/Kolkata"], "2026-11-26T04:30Z", ("2026-11-26T04:30Z", "2026-11-26T06:30Z"), id="a zone"
        ),
        pytest.param(
            ["10:00-12:00 UTC", "11:00-13:00 UTC", "13:00-14:00 UTC"],
            "2026-11-26T11:30Z",
            ("2026-11-26T10:00Z", "2026-11-26T14:00Z"),
            id="windows that overlap or touch are one",
        ),
        pytest.param(
            ["02:30-04:00 Europe/Berlin"],
            "2026-03-29T00:00Z",
            ("2026-03-29T01:30Z", "2026-03-29T02:00Z"),
            id="a time that is left out",
        ),
        pytest.param(
            ["02:30-04:00 Europe/Berlin"],
            "2026-10-25T00:00Z",
            ("2026-10-25T00:30Z", "2026-10-25T03:00Z"),
            id="a time that comes twice counts the first time",
        ),
    ],
)
def test_the_span_is_the_open_or_the_next_one(windows: list[str], now: str, span: tuple[str, str]) -> None:
    found = Windows([read_window(text) for text in windows]).span(at(now))
    assert found == tuple(map(at, span))


def test_windows_that_leave_no_gap_are_always_open() -> None:
    windows = Windows([read_window("00:00-12:00 UTC"), read_window("12:00-00:00 UTC")])
    for hours in range(400):
        now_us = at("2026-11-26T00:00Z") + hours * HOUR_US
        span = windows.span(now_us)
        assert span.from_us <= now_us < span.to_us


TIMES = st.times().map(lambda time: f"{time:%H:%M}")
WINDOWS = st.builds(
    PolicyWindow,
    begins=TIMES,
    ends=TIMES,
    zone=st.just("UTC"),
    days=st.sets(st.sampled_from(DAYS)).map(tuple),
)


def is_open(window: PolicyWindow, now: dt.datetime) -> bool:
    def begins_on(day: dt.date) -> bool:
        return not window.days or DAYS[day.weekday()] in window.days

    time, today = f"{now:%H:%M}", now.date()
    if window.begins < window.ends:
        return begins_on(today) and window.begins <= time < window.ends
    return (begins_on(today) and time >= window.begins) or (
        begins_on(today - dt.timedelta(days=1)) and time < window.ends
    )


@given(windows=st.lists(WINDOWS, min_size=1, max_size=4), minutes=st.lists(st.integers(0, 20_000), max_size=20))
def test_spans_say_what_a_calendar_says(windows: list[PolicyWindow], minutes: list[int]) -> None:
    looked_up = Windows(windows)  # asked in any order
    for minute in minutes:
        now_us = at("2026-11-20T00:00Z") + minute * 60 * SECOND_US
        span = looked_up.span(now_us)
        now = dt.datetime.fromtimestamp(now_us / SECOND_US, dt.UTC)
        assert (span.from_us <= now_us < span.to_us) == any(is_open(window, now) for window in windows)
        assert now_us < span.to_us


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("Mon-Fri 22:00-05:00 Europe/Berlin", {"days": DAYS[:5], "zone": "Europe/Berlin"}),
        ("Sat-Mon,Wed 22:00-05:00 UTC", {"days": ("Mon", "Wed", "Sat", "Sun")}),
        ("22:00-05:00 UTC", {}),
    ],
)
def test_a_window_is_read_and_written(text: str, window: dict[str, Any]) -> None:
    found = read_window(text)
    assert found == PolicyWindow(**{"begins": "22:00", "ends": "05:00", "zone": "UTC", **window})
    assert read_window(window_text(found)) == found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("22:00-05:00", "is not a window"),
        ("Mo 22:00-05:00 UTC", "is not a window"),
        ("Mon- 22:00-05:00 UTC", "is not a window"),
        ("22:00-24:00 UTC", "no clock shows"),
        ("22:00-05:60 UTC", "no clock shows"),
        ("22:00-05:00 Middle/Earth", "no time zone"),
        ("22:00-05:00 ../../etc/passwd", "no time zone"),
        ("22:00-05:00 Europe", "no time zone"),
        ("22:00-05:00 UTC UTC", "is not a window"),
    ],
)
def test_what_is_no_window_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        read_window(text)


def test_strange_names_are_no_zones() -> None:
    assert not any(map(is_zone, ("", "/", "x" * 300, "a\0b", "Europe/", "localtime/..")))
