"""When a kind is listed again beside its watch; the clock is the test's."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from evictstream.streams.errors import ApiRefusedError, KubernetesError
from evictstream.streams.feed.fleet import LISTED_WITHIN, relist_interval
from evictstream.streams.feed.listing import CompleteListing
from evictstream.streams.feed.relisting import LISTING_SHARE, RETRY_SECONDS, SPREAD, Relisting
from evictstream.streams.settings import Settings

DAY = 86_400.0
PATIENCE_SECONDS = 20.0
TOO_LATE = ApiRefusedError(host="h", path="/api/v1/pods", status=410, reason="expired")


class Run:
    """A clock, a relisting, and what its listings come to."""

    def __init__(self, seconds: float = DAY) -> None:
        self.now = 0.0
        self.runs = 0
        self.takes = 1.0
        self.error: BaseException | None = None
        self.hold = threading.Event()
        self.hold.set()
        self.relisting = Relisting(name="test", seconds=seconds, clock=lambda: self.now, run=self._list)

    def _list(self, is_abandoned: Callable[[], bool]) -> CompleteListing | None:
        self.runs += 1
        self.hold.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error
        return None if is_abandoned() else CompleteListing("9", 0, self.takes, 0, 0)

    def at(self, seconds: float) -> int:
        """Look at an instant, and return how many listings were begun until then."""
        self.now = seconds
        self.relisting.begin_if_due()
        self.relisting.join(PATIENCE_SECONDS)
        return self.runs


def test_nothing_is_listed_again_before_the_first_listing() -> None:
    assert Run().at(10 * DAY) == 0


def test_it_is_listed_again_within_the_interval() -> None:
    run = Run()
    run.relisting.listed(1.0)
    assert run.at(SPREAD * DAY - 2.0) == 0
    assert run.at(DAY) == 1
    assert run.at(DAY) == 1  # and then counts anew
    assert run.at(2 * DAY) == 2


def test_many_clusters_are_spread() -> None:
    begun = 0
    for _ in range(200):
        run = Run()
        run.relisting.listed(1.0)
        begun += run.at((SPREAD + 1) / 2 * DAY)
    assert 50 < begun < 150


def test_a_listing_takes_a_tenth_of_the_time_at_most() -> None:
    run = Run(seconds=10.0)
    run.now = 30.0
    run.relisting.listed(30.0)
    assert run.at(LISTING_SHARE * 30.0 - 1.0) == 0
    assert run.at(LISTING_SHARE * 30.0) == 1


@pytest.mark.parametrize("error", [TOO_LATE, KubernetesError("it does not serve")])
def test_what_the_api_server_broke_off_is_begun_again(error: KubernetesError) -> None:
    run = Run()
    run.relisting.listed(0.0)
    run.error = error
    assert run.at(DAY) == 1
    assert run.relisting.failure is None
    assert run.at(DAY + RETRY_SECONDS - 1.0) == 1
    run.error = None
    assert run.at(DAY + RETRY_SECONDS) == 2
    assert run.at(DAY + 2 * RETRY_SECONDS) == 2


def test_any_other_error_is_the_sessions() -> None:
    run = Run()
    run.relisting.listed(0.0)
    run.error = RuntimeError("of the feed itself")
    run.at(DAY)
    assert run.relisting.failure is run.error


def test_an_abandoned_listing_counts_for_nothing() -> None:
    run = Run()
    run.relisting.listed(0.0)
    run.hold.clear()
    run.now = DAY
    run.relisting.begin_if_due()
    assert run.relisting.is_running
    run.relisting.begin_if_due()  # one at a time
    run.relisting.abandon()
    run.hold.set()
    assert run.at(3 * DAY) == 1
    run.relisting.listed(0.0)
    assert run.at(4 * DAY) == 2


@pytest.mark.parametrize(
    ("hours", "kept_hours", "found_hours"),
    [
        pytest.param(24.0, 168.0, 24.0, id="as-set"),
        pytest.param(24.0, float("inf"), 24.0, id="kept-for-ever"),
        pytest.param(24.0, 24.0, 24.0 * LISTED_WITHIN, id="kept-for-a-day"),
        pytest.param(500.0, 168.0, 168.0 * LISTED_WITHIN, id="set-beyond-what-is-kept"),
    ],
)
def test_topics_hold_a_whole_listing_however_long_they_keep(
    hours: float, kept_hours: float, found_hours: float
) -> None:
    assert relist_interval(Settings(feed_relist_hours=hours), kept_hours * 3_600) == found_hours * 3_600
