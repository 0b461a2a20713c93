"""semantics.md 12.8: what waits in the queue of an executor that reports is not issued again."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import EventType, Outcome, fire
from evictstream.models.eviction.executor_queue import ExecutorQueue
from tests.models.eviction.scene import A, Scene, tolerate, us
from tests.models.eviction.test_executing import issued, next_attempt

LIMIT = 900


def report(at: float, to: float = 60) -> ExecutorQueue:
    """Reported at `at`: all that was issued until `to` was read."""
    return ExecutorQueue(us(at), us(to))


def attempt_at(scene: Scene, at: float, queue: ExecutorQueue | None) -> int | None:
    """Attempt that is issued when the wake-up comes then; None if none is."""
    changes = scene.keep(fire(scene.aggregate, "pod-1", us(at), scene.rules, queue=queue))
    return changes.commands[-1].attempt if changes.commands else None


@pytest.mark.parametrize(
    ("queue", "attempt"),
    [
        pytest.param(None, 2, id="no report"),
        pytest.param(report(80), None, id="in the queue"),
        pytest.param(report(80, to=70), None, id="before others"),
        pytest.param(report(59.9, to=90), 2, id="30 s old"),
        pytest.param(report(60.1, to=90), None, id="almost 30 s old"),
        pytest.param(report(80, to=59.999999), 2, id="issued after what was read"),
        pytest.param(report(200), None, id="reported after the worker's clock"),
    ],
)
def test_a_fresh_report_of_its_queue_holds_an_attempt_back(queue: ExecutorQueue | None, attempt: int | None) -> None:
    scene = issued()
    assert attempt_at(scene, 90, queue) == attempt


def test_what_is_held_writes_nothing_and_wakes_later() -> None:
    scene = issued()
    changes = fire(scene.aggregate, "pod-1", us(90), scene.rules, queue=report(80))
    assert (changes.rows, changes.commands, changes.decisions) == ((), (), ())
    assert changes.wakeups == [(us(110), "pod-1")]
    assert attempt_at(scene, 110, report(80)) == 2, "its executor is gone"


def test_reports_without_end_hold_for_a_limited_time() -> None:
    scene = issued()
    for at in range(90, 60 + LIMIT, 10):
        assert attempt_at(scene, at, report(at)) is None
    assert attempt_at(scene, 60 + LIMIT, report(60 + LIMIT)) == 2
    assert attempt_at(scene, 60 + 2 * LIMIT - 1, report(60 + 2 * LIMIT - 1, to=60 + LIMIT)) is None, "counted anew"
    assert attempt_at(scene, 60 + 2 * LIMIT, report(60 + 2 * LIMIT, to=60 + LIMIT)) == 3


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.OBSERVED])
def test_what_was_accepted_or_observed_waits_in_the_queue(outcome: Outcome) -> None:
    scene = issued()
    scene.result(61, outcome)
    assert attempt_at(scene, 130, report(125)) is None


@pytest.mark.parametrize(
    "queue",
    [
        pytest.param(None, id="nobody acts"),
        pytest.param(report(59), id="nobody has acted since"),
        pytest.param(report(60), id="nobody has acted later"),
    ],
)
def test_what_was_only_observed_is_not_repeated(queue: ExecutorQueue | None) -> None:
    scene = issued()
    scene.result(61, Outcome.OBSERVED)
    for at in (90, 200, 100_000):
        changes = fire(scene.aggregate, "pod-1", us(at), scene.rules, queue=queue)
        assert (changes.rows, changes.commands, changes.wakeups) == ((), (), ())


def test_what_was_only_observed_is_issued_once_an_executor_reports() -> None:
    scene = issued()
    scene.result(61, Outcome.OBSERVED)
    assert attempt_at(scene, 7_200, report(7_200, to=0)) == 2, "it has not read the first"
    scene.result(7_201, Outcome.OBSERVED)
    assert attempt_at(scene, 9_000, report(7_200, to=0)) is None, "it did not act on the second"


def test_a_report_before_the_silence_is_over_repeats_nothing_early() -> None:
    scene = issued()
    scene.result(61, Outcome.OBSERVED)
    changes = fire(scene.aggregate, "pod-1", us(62), scene.rules, queue=report(62, to=0))
    assert (changes.commands, changes.wakeups) == ((), [(us(next_attempt(scene)), "pod-1")])


@pytest.mark.parametrize("change", ["edited", "withdrawn", "gone"])
def test_what_was_only_observed_still_follows_its_pod(change: str) -> None:
    scene = issued()
    scene.result(61, Outcome.OBSERVED)
    match change:
        case "edited":
            scene.pod(70, tolerate("a", 100))
            assert attempt_at(scene, 100, None) == 2
        case "withdrawn":
            scene.node(70)
            assert scene.actions[-1] == "Cancel TaintRemoved"
        case _:
            scene.pod(70, tolerate("a", 60), event_type=EventType.DELETED)
            assert scene.kinds[-1] == "Completed"


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.OBSOLETE, Outcome.REFUSED, Outcome.SUCCEEDED])
def test_what_was_answered_waits_in_no_queue(outcome: Outcome) -> None:
    scene = issued()
    scene.result(61, outcome)
    at = next_attempt(scene)
    assert attempt_at(scene, at, report(at)) == 2


def test_no_report_holds_a_first_attempt_back() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    assert attempt_at(scene, 60, report(60, to=100)) == 1


def test_what_is_scheduled_again_is_issued_whatever_waits() -> None:
    scene = issued()
    scene.pod(70, tolerate("a", 100))
    assert scene.state == "scheduled"
    assert attempt_at(scene, 100, report(100, to=200)) == 2


def test_a_cancel_does_not_wait_for_the_queue() -> None:
    scene = issued()
    scene.node(70)
    assert scene.actions[-1] == "Cancel TaintRemoved"
