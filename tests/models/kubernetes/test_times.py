"""What Kubernetes takes for an instant; each line was compared with Go 1.26's `time.Parse(time.RFC3339, …)`."""

from __future__ import annotations

import pytest

from evictstream.models.kubernetes.times import read_time, time_text


@pytest.mark.parametrize(
    ("text", "at_us", "written"),
    [
        pytest.param("2026-11-21T02:15:53Z", 1795227353_000000, "2026-11-21T02:15:53Z", id="as it is written"),
        pytest.param("2026-11-21T02:15:53.5+01:30", 1795221953_500000, "2026-11-21T00:45:53Z", id="fraction and zone"),
        pytest.param("2026-11-21T02:15:53,25Z", 1795227353_250000, "2026-11-21T02:15:53Z", id="a comma"),
        pytest.param("2026-11-21T02:15:53.1234567899Z", 1795227353_123456, "2026-11-21T02:15:53Z", id="cut"),
        pytest.param("2026-11-21T3:04:05Z", 1795230245_000000, "2026-11-21T03:04:05Z", id="hour of one digit"),
        pytest.param("2026-11-21T02:15:53+24:00", 1795140953_000000, "2026-11-20T02:15:53Z", id="a day ahead"),
        pytest.param("2026-11-21T02:15:53-24:60", 1795317353_000000, "2026-11-22T03:15:53Z", id="25 h behind"),
        pytest.param("2026-11-21T02:15:53-00:00", 1795227353_000000, "2026-11-21T02:15:53Z", id="minus nothing"),
        pytest.param("2024-02-29T00:00:00Z", 1709164800_000000, "2024-02-29T00:00:00Z", id="leap day"),
        pytest.param("1969-12-31T23:59:59.5Z", -500000, "1969-12-31T23:59:59Z", id="before 1970"),
        pytest.param("0000-01-01T00:00:00Z", -62167219200_000000, "0000-01-01T00:00:00Z", id="the year 0"),
        pytest.param("0000-02-29T00:00:00Z", -62162121600_000000, "0000-02-29T00:00:00Z", id="which is a leap year"),
        pytest.param("0000-01-01T00:00:00+24:00", -62167305600_000000, "-0001-12-31T00:00:00Z", id="first of all"),
        pytest.param("9999-12-31T23:59:59-24:60", 253402390799_000000, "10000-01-02T00:59:59Z", id="last of all"),
        pytest.param("0001-01-01T00:00:00Z", -62135596800_000000, None, id="zero time is null"),
        pytest.param(f"2026-11-21T02:15:53.{'0' * 100_000}Z", 1795227353_000000, "2026-11-21T02:15:53Z", id="long"),
    ],
)  # fmt: skip
def test_instants(text: str, at_us: int, written: str | None) -> None:
    assert (read_time(text), time_text(at_us)) == (at_us, written)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("2026-11-21", id="a date"),
        pytest.param("2026-11-21T02:15:53", id="no zone"),
        pytest.param("2026-11-21t02:15:53Z", id="small t"),
        pytest.param("2026-11-21T02:15:53z", id="small z"),
        pytest.param("2026-11-21 02:15:53Z", id="a space"),
        pytest.param("2026-11-21T:15:53Z", id="no hour"),
        pytest.param("2026-11-21T2:5:53Z", id="minute of one digit"),
        pytest.param("2026-1-21T02:15:53Z", id="month of one digit"),
        pytest.param("2026-11-21T02:15Z", id="no seconds"),
        pytest.param("2026-11-21T02:15:53.Z", id="no digits behind the point"),
        pytest.param("2026-11-21T02:15:53+0100", id="zone without colon"),
        pytest.param("2026-11-21T02:15:53+25:00", id="zone of 25 hours"),
        pytest.param("2026-11-21T02:15:53+24:61", id="zone of 61 minutes"),
        pytest.param("2026-11-21T24:00:00Z", id="hour 24"),
        pytest.param("2026-11-21T23:60:00Z", id="minute 60"),
        pytest.param("2026-11-21T23:59:60Z", id="leap second"),
        pytest.param("2026-02-29T00:00:00Z", id="no leap year"),
        pytest.param("2026-13-01T00:00:00Z", id="month 13"),
        pytest.param("2026-00-01T00:00:00Z", id="month 0"),
        pytest.param("2026-11-00T00:00:00Z", id="day 0"),
        pytest.param("2026-11-21T02:15:53Z\n", id="line end"),
        pytest.param("٢٠٢٦-11-21T02:15:53Z", id="digits of others"),
        pytest.param("-0001-12-31T00:00:00Z", id="what it writes of the year before 0"),
    ],
)
def test_what_is_no_instant(text: str) -> None:
    assert read_time(text) is None
