from __future__ import annotations

import pytest

from evictstream.kit.recordings.pace import FASTEST, NAP_SECONDS, Pace, Restamp, read_pace
from evictstream.streams.errors import WrongUseError
from tests.streams.feed.clocks import NOW_US, StandingClock

SECOND_US = 1_000_000


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("recorded", 1.0),
        ("fast", None),
        ("10x", 10.0),
        ("0.5x", 0.5),
        ("2.5 x", 2.5),
        ("3", 3.0),
        ("1000000x", FASTEST),
    ],
)
def test_paces(text: str, factor: float | None) -> None:
    assert read_pace(text) == factor


@pytest.mark.parametrize("text", ["", "x", "0x", "-1x", "1000001x", "nanx", "infx", "1e3x", "10y", "slow", "10x "])
def test_no_paces(text: str) -> None:
    with pytest.raises(WrongUseError, match="is not a pace"):
        read_pace(text)


class TestPace:
    def turns(self, factor: float | None, *seconds: float | None, busy: float = 0.0) -> list[float]:
        """When each of the events recorded at `seconds` has its turn, if sending each takes `busy` seconds."""
        standing = StandingClock()
        pace = Pace(factor, standing.clock)
        turns = []
        for at in seconds:
            pace.wait(None if at is None else int(at * SECOND_US) + NOW_US, never)
            turns.append(round(standing.seconds, 6))
            standing.seconds += busy
        return turns

    def test_as_recorded(self) -> None:
        assert self.turns(1.0, 100, 101.5, 101.5, 160) == [0, 1.5, 1.5, 60]

    def test_faster_and_slower(self) -> None:
        assert self.turns(10.0, 0, 15, 600) == [0, 1.5, 60]
        assert self.turns(0.5, 0, 15) == [0, 30]

    def test_as_fast_as_can_be(self) -> None:
        assert self.turns(None, 0, 15, 600) == [0, 0, 0]

    def test_without_times(self) -> None:
        assert self.turns(1.0, None, 100, None, 102) == [0, 0, 0, 2]

    def test_times_that_go_back_do_not_wait_and_move_nothing(self) -> None:
        assert self.turns(1.0, 100, 103, 90, 104) == [0, 3, 3, 4]

    def test_what_sending_takes_does_not_add_up(self) -> None:
        assert self.turns(1.0, 0, 1, 2, 3, busy=0.4) == [0, 1, 2, 3]
        assert self.turns(1.0, 0, 1, 2, 6, busy=2.0) == [0, 2, 4, 6]

    def test_a_stop_is_noticed_within_a_nap(self) -> None:
        standing = StandingClock()
        pace = Pace(1.0, standing.clock)
        pace.wait(0, never)
        pace.wait(3600 * SECOND_US, lambda: standing.seconds > 1)
        assert 1 < standing.seconds <= 1 + NAP_SECONDS
        assert max(standing.slept) <= NAP_SECONDS


def test_restamp_makes_the_first_now_and_keeps_distances() -> None:
    standing = StandingClock()
    restamp = Restamp(standing.clock)
    assert restamp.moved(1_000) == NOW_US
    standing.seconds = 55.0
    assert restamp.moved(1_500) == NOW_US + 500
    assert restamp.moved(900) == NOW_US - 100
