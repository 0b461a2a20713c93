from __future__ import annotations

import datetime as dt

import pytest

from evictstream.models.instants import FIRST_INSTANT_US, LAST_INSTANT_US, instant_text, instant_us, microseconds


@pytest.mark.parametrize(
    ("at_us", "text"),
    [
        pytest.param(0, "1970-01-01T00:00:00.000000Z", id="epoch"),
        pytest.param(1, "1970-01-01T00:00:00.000001Z", id="one microsecond"),
        pytest.param(-1, "1969-12-31T23:59:59.999999Z", id="before 1970"),
        pytest.param(1_795_227_353_105_869, "2026-11-21T02:15:53.105869Z", id="the example of docs/messages.md"),
        pytest.param(LAST_INSTANT_US, "9999-12-31T23:59:59.999999Z", id="last instant, semantics.md 12.5"),
        pytest.param(LAST_INSTANT_US + 1, "9999-12-31T23:59:59.999999Z", id="past the last one is shown as the last"),
        pytest.param(FIRST_INSTANT_US, "0001-01-01T00:00:00.000000Z", id="first instant"),
    ],
)
def test_text_has_microseconds_and_z(at_us: int, text: str) -> None:
    assert instant_text(at_us) == text


@pytest.mark.parametrize("at_us", [0, -1, 1_795_227_353_105_869, LAST_INSTANT_US, FIRST_INSTANT_US])
def test_text_reads_back_exactly(at_us: int) -> None:
    assert instant_us(instant_text(at_us)) == at_us


def test_zone_does_not_matter() -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    assert microseconds(dt.datetime(1970, 1, 1, 2, 0, 1, tzinfo=east)) == 1_000_000


def test_moment_without_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        microseconds(dt.datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
