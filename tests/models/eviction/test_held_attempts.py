"""What brakes do to attempts: they put them off, and change nothing else (docs/messages.md#brakes)."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.eviction import Outcome, fire
from evictstream.models.eviction.held_attempts import BOTH_KNOW_US
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.steering.brakes import Brakes, StandingBrake
from evictstream.models.steering.holds import Hold
from tests.models.eviction.scene import START_US, A, Scene, tolerate, us
from tests.models.steering.test_brakes import read, record

HELD = Hold("b1", None)


class BrakedScene(Scene):
    """A pod that is due at 60 s, in a cluster with brakes."""

    brakes: Brakes = read()

    def hold(self, **fields: Any) -> None:
        self.brakes = read(record(**fields), appended_us=START_US)

    def release(self, at: float, **fields: Any) -> None:
        self.brakes = read(record(releasedBy="ben", **fields), appended_us=us(at))

    def of_cluster(self, at: float) -> tuple[StandingBrake, ...]:
        return self.brakes.of_cluster(self.aggregate.cluster, us(at))

    def turn(self, at: float, held_by: str | None = None) -> Hold | None:
        """Let a timer fire; gives what holds the attempt."""
        now = self.of_cluster(at)
        return self.keep(fire(self.aggregate, "pod-1", us(at), self.rules, holders=now, held_by=held_by)).hold

    def attempts(self) -> list[int]:
        return [command.attempt for command in self.commands if command.action == "Evict"]

    def share_seconds(self) -> float:
        (standing,) = self.brakes.standing.values()
        until_us, end_us = standing.until_us("pod-1"), standing.end_us
        assert until_us is not None
        assert end_us is not None
        return (until_us - end_us) / SECOND_US


@pytest.fixture
def scene() -> BrakedScene:
    braked = BrakedScene()
    braked.pod(0, tolerate("a", 60))
    braked.node(0, A)
    return braked


def issued_and_held(scene: BrakedScene, brake: str = "b1") -> None:
    """Issued at 60 s; the executor holds it at 62 s."""
    scene.turn(60)
    scene.result(62, Outcome.HELD, held_by=brake)


def test_what_is_held_is_not_issued(scene: BrakedScene) -> None:
    scene.hold()
    assert scene.turn(59) is None, "nothing is due"
    assert [scene.turn(at) for at in (60, 61, 9_000)] == [HELD] * 3
    assert scene.attempts() == []


def test_a_released_eviction_goes_at_its_share_and_names_it(scene: BrakedScene) -> None:
    scene.hold()
    scene.turn(60)
    scene.release(100)
    at = 100 + scene.share_seconds()
    assert 100 < at < 160
    hold = scene.turn(100)
    assert hold is not None
    assert (hold.until_us, hold.until_us, "pod-1") == (us(at), *max(scene.timers))
    assert scene.turn(at - 0.001) is not None
    assert scene.turn(at, held_by="b1") is None
    assert scene.attempts() == [1]
    assert (scene.decisions[-1].held_by, scene.decisions[-1].outcome) == ("b1", None)


def test_what_becomes_due_after_the_end_is_not_spread(scene: BrakedScene) -> None:
    scene.release(59)
    assert scene.turn(60) is None
    assert (scene.attempts(), scene.decisions[-1].held_by) == ([1], None)


@pytest.mark.parametrize("outcome", [None, Outcome.FAILED, Outcome.REFUSED, Outcome.SUCCEEDED, Outcome.ACCEPTED])
def test_a_repeat_is_held_too(scene: BrakedScene, outcome: Outcome | None) -> None:
    scene.turn(60)
    if outcome is not None:
        scene.result(61, outcome)
    scene.hold()
    assert scene.turn(400) == HELD
    assert scene.attempts() == [1]
    scene.release(500)
    scene.turn(500 + scene.share_seconds())
    assert scene.attempts() == [1, 2]


def test_a_brake_moves_no_deadline_and_no_cancellation(scene: BrakedScene) -> None:
    scene.hold()
    scene.turn(70)
    scene.pod(71, tolerate("a", 100))
    assert scene.turn(80) is None, "the edit has moved its deadline ahead"
    assert scene.turn(100) == HELD
    scene.node(120)
    assert (scene.turn(130), scene.actions) == (None, ["Schedule 60", "Schedule 100", "Cancel TaintRemoved"])


def test_held_by_the_executor_is_looked_at_once(scene: BrakedScene) -> None:
    issued_and_held(scene)
    assert (us(60), "pod-1") in scene.timers
    scene.hold()
    assert scene.turn(62) == Hold("b1", us(122)), "62 + 60 s"
    assert [scene.turn(at) for at in (122, 9_000)] == [HELD] * 2
    assert scene.attempts() == [1]


def test_held_by_the_executor_goes_at_its_share(scene: BrakedScene) -> None:
    issued_and_held(scene)
    scene.hold()
    scene.turn(62)
    scene.release(65, spreadSeconds=10)
    at = 65 + scene.share_seconds()
    assert scene.turn(at - 0.001) is not None
    assert (scene.turn(at), scene.attempts()) == (None, [1, 2]), "long before 62 + 60 s"
    assert scene.decisions[-1].held_by == "b1"


def test_a_brake_the_worker_cannot_judge_is_tried_each_minute(scene: BrakedScene) -> None:
    """Zones are the executor's: the worker's rows have none."""
    issued_and_held(scene)
    scene.hold(zones=["z"])
    assert scene.turn(62) == Hold("b1", us(122))
    assert scene.turn(121.9) is not None
    assert (scene.turn(122), scene.attempts()) == (None, [1, 2])


def test_a_zone_released_goes_at_its_share(scene: BrakedScene) -> None:
    issued_and_held(scene)
    scene.release(64, zones=["z"], spreadSeconds=10)
    at = 64 + scene.share_seconds()
    assert scene.turn(64) == Hold("b1", us(at))
    assert (scene.turn(at), scene.attempts()) == (None, [1, 2])


@pytest.mark.parametrize("is_over", [False, True], ids=["unknown to the worker", "over for the worker"])
def test_an_executor_with_another_view_is_given_time(scene: BrakedScene, is_over: bool) -> None:  # noqa: FBT001 - a case
    if is_over:
        scene.release(50, spreadSeconds=0)
    issued_and_held(scene)
    later = 62 + BOTH_KNOW_US / SECOND_US
    assert scene.turn(62) == Hold("b1", us(later))
    assert (scene.turn(later), scene.attempts()) == (None, [1, 2])


def test_what_is_held_is_found_again_after_a_restart(scene: BrakedScene) -> None:
    issued_and_held(scene)
    scene.hold(endsAt=instant_text(us(3_600)))
    first = scene.turn(62)
    scene.restart()
    assert scene.timers == {(us(60), "pod-1")}
    assert scene.turn(63) == first
