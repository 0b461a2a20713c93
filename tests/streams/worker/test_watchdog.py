"""Each age has its limit, and what is beyond it is named; health says the same (docs/operations.md)."""

from __future__ import annotations

import time

import pytest

from evictstream.streams.engine.core.permit import VALID_SECONDS, Permit
from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.errors import ExitCode, WorkerStuckError
from evictstream.streams.settings import Settings
from evictstream.streams.worker.gates import Closed, Gate
from evictstream.streams.worker.health import Health
from evictstream.streams.worker.snapshot import PartitionView, Snapshot
from evictstream.streams.worker.watchdog import (
    LAST_WORDS_SECONDS,
    LATE_SECONDS,
    LOOK_SECONDS,
    Stuck,
    Watchdog,
    find_stuck,
    wait_limits,
)

LIMITS = {
    WaitKind.LOOP: 60.0,
    WaitKind.TIMERS: 60.0,
    WaitKind.CHANGELOG: 120.0,
    WaitKind.COMMIT: 120.0,
    WaitKind.INPUT: 120.0,
    WaitKind.OWNERSHIP: 300.0,
    WaitKind.FETCH: 300.0,
    WaitKind.HEARTBEAT: 300.0,
}


def no_ages() -> dict[WaitKind, float]:
    return dict.fromkeys(WaitKind, 0.0)


def view(partition: int, closed: Closed | None = None) -> PartitionView:
    return PartitionView(
        partition=partition,
        caught_up=True,
        closed=closed,
        view_age_seconds=0.5,
        lag_seconds={},
        lag_records={},
        pending={},
        waiting={},
    )


class Worker:
    """A worker with made-up ages at second 0, which grow with time."""

    def __init__(self, *views: PartitionView, is_settled: bool = True) -> None:
        self.waits = no_ages()
        self.left: list[BaseException] = []
        self.permit = Permit(time.monotonic)
        self.watchdog = Watchdog(self.ages, LIMITS, self.left.append, self.permit)
        self.health = Health(self.watchdog, lambda: Snapshot(is_settled, views))

    def ages(self, now: float) -> dict[WaitKind, float]:
        return {wait: age and age + now for wait, age in self.waits.items()}

    def watch(self, since: float, seconds: float) -> Stuck | None:
        """Look as often as the thread does."""
        for number in range(int(seconds / LOOK_SECONDS) + 1):
            self.watchdog.look(since + number * LOOK_SECONDS)
        return self.watchdog.stuck


def test_limits_by_default() -> None:
    assert wait_limits(Settings()) == LIMITS


@pytest.mark.parametrize("wait", WaitKind)
def test_stuck_only_beyond_the_limit(wait: WaitKind) -> None:
    limit = LIMITS[wait]
    assert find_stuck(no_ages() | {wait: limit}, LIMITS) is None
    assert find_stuck(no_ages() | {wait: limit + 0.1}, LIMITS) == (wait, limit + 0.1, limit)


def test_the_cause_is_named_and_not_its_effects() -> None:
    """With the event loop stuck, nothing else gets on either."""
    assert find_stuck(dict.fromkeys(WaitKind, 1_000.0), LIMITS) == (WaitKind.LOOP, 1_000.0, 60.0)


def test_stuck_is_final() -> None:
    worker = Worker()
    worker.waits[WaitKind.FETCH] = 299
    assert worker.watchdog.look(1) is None
    assert worker.watchdog.look(2) == (WaitKind.FETCH, 301, 300)
    worker.waits[WaitKind.FETCH] = 0
    assert worker.watchdog.look(3) == (WaitKind.FETCH, 301, 300)


def test_while_it_stops_only_the_loop_counts() -> None:
    worker = Worker()
    worker.waits |= {WaitKind.TIMERS: 70, WaitKind.LOOP: 1}
    worker.watchdog.stopping()
    assert worker.watch(1, 58) is None
    assert worker.watch(59, 1) == (WaitKind.LOOP, 60.5, 60)


@pytest.mark.parametrize("wait", WaitKind)
def test_a_standstill_of_the_process_does_not_count(wait: WaitKind) -> None:
    """Else the thread that runs first on waking would decide whether the worker ends."""
    worker = Worker()
    worker.waits[wait] = 0.5
    standstill = 2 * LIMITS[wait]
    assert worker.watch(0, 1) is None
    assert worker.watchdog.look(1 + standstill) is None
    worker.waits[wait] = 0
    assert worker.watch(1 + standstill, 10) is None
    assert not worker.permit.is_withdrawn


def test_a_stuck_part_is_found_despite_standstills() -> None:
    """Its age grows at each look, and by a second for each standstill."""
    worker = Worker()
    worker.waits[WaitKind.LOOP] = 0.5
    standstills, seconds = 0, 0.0
    while worker.watch(seconds, 9) is None:
        standstills, seconds = standstills + 1, seconds + 9 + 50
    assert standstills == 6
    assert worker.watchdog.stuck is not None
    assert worker.watchdog.stuck.age_seconds == 0.5 + 6 * (9 + LATE_SECONDS)
    assert seconds > 300


def test_a_stuck_worker_loses_its_permit() -> None:
    worker = Worker()
    worker.waits[WaitKind.COMMIT] = 110
    withdrawn = []
    for seconds in (9, 10, 10.5, 11):  # at the limit, beyond it as a probe sees it, and after
        worker.health.live(seconds)
        withdrawn.append(worker.permit.is_withdrawn)
        worker.waits[WaitKind.COMMIT] *= seconds < 10.5
    assert withdrawn == [False, False, True, True]


def test_a_permit_outlasts_looks_but_no_fatal_standstill() -> None:
    shortest = 2.0 + LAST_WORDS_SECONDS  # by the least `stall_limit_seconds`
    assert 3 * LOOK_SECONDS < VALID_SECONDS < shortest


def test_the_error_says_what_was_waited_for() -> None:
    error = WorkerStuckError(wait="commit", age_seconds=121.4, limit_seconds=120.0)
    assert (error.exit_code, error.wait) == (ExitCode.FOUND_PROBLEM, "commit")
    assert error.problem == "stuck: waiting for commit for 121 s, limit 120 s"


def test_livez_within_the_limits() -> None:
    worker = Worker()
    worker.waits[WaitKind.FETCH] = 290.0
    report = worker.health.live(5)
    assert report.status == 200
    assert report.body == {
        "status": "ok",
        "agesSeconds": {
            "loop": 0,
            "timers": 0,
            "changelog": 0,
            "commit": 0,
            "input": 0,
            "ownership": 0,
            "fetch": 295,
            "heartbeat": 0,
        },
    }


def test_livez_beyond_a_limit() -> None:
    worker = Worker()
    worker.waits[WaitKind.COMMIT] = 100.0
    report = worker.health.live(20.5)
    assert report.status == 503
    assert (
        report.body.items() >= {"status": "stuck", "stuck": "commit", "ageSeconds": 120.5, "limitSeconds": 120}.items()
    )


def test_readyz_with_all_gates_open() -> None:
    report = Worker(view(1), view(4)).health.ready(0)
    assert (report.status, report.body) == (200, {"status": "ready", "partitions": [1, 4], "reasons": []})


def test_readyz_of_a_worker_in_reserve() -> None:
    """More workers than partitions: one that owns nothing has nothing to wait for."""
    assert Worker().health.ready(0).status == 200


def test_readyz_names_what_does_not_fire() -> None:
    report = Worker(view(1), view(4, Closed(Gate.CAUGHT_UP, "still reading"))).health.ready(0)
    assert report.status == 503
    assert report.body == {
        "status": "not ready",
        "partitions": [1, 4],
        "reasons": [{"partition": 4, "gate": "caught-up", "reason": "still reading"}],
    }


def test_readyz_before_the_group_has_assigned() -> None:
    assert Worker(is_settled=False).health.ready(0).status == 503


def test_readyz_does_not_trust_an_old_snapshot() -> None:
    worker = Worker(view(1))
    worker.waits[WaitKind.LOOP] = 1.0
    assert worker.health.ready(4).status == 200
    assert worker.health.ready(4.1).status == 503


def test_readyz_while_it_stops() -> None:
    worker = Worker(view(1))
    worker.watchdog.stopping()
    assert worker.health.ready(0).status == 503


def test_an_outage_within_the_limit_is_no_reason_to_end() -> None:
    """Four minutes without a broker: not ready, but alive."""
    worker = Worker(view(0, Closed(Gate.OWNER, "the group confirmed this worker 240 s ago")))
    worker.waits |= {WaitKind.FETCH: 240.0, WaitKind.HEARTBEAT: 240.0}
    assert (worker.health.live(0).status, worker.health.ready(0).status) == (200, 503)
