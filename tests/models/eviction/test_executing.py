"""semantics.md 12.8 and docs/messages.md#results: attempts, results, retries."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from evictstream.models.eviction import DUPLICATE, STALE, UNCHANGED, EventType, Outcome, RuleParameters
from evictstream.models.kubernetes import Taint, Toleration
from tests.models.eviction.scene import DELETED, SICK, SILENT, START_US, A, B, Scene, seconds_of, text, tolerate, us

ACCEPTED = ("accepted_silence_us", "accepted_limit_us")
FAILING = [Outcome.FAILED, Outcome.OBSOLETE, Outcome.REFUSED]


def issued(*tolerations: Toleration, taint: Taint = A) -> Scene:
    """The first attempt was issued at 60 s, for a window that expired or, without tolerations, at once."""
    scene = Scene()
    scene.pod(0, *(tolerations or (tolerate("a", 60),)))
    scene.node(0, taint)
    scene.fire(60)
    assert scene.state == "issued"
    return scene


def next_attempt(scene: Scene) -> float:
    eviction = scene.aggregate.pods["pod-1"].eviction
    assert eviction is not None
    assert eviction.next_attempt_us is not None
    return (eviction.next_attempt_us - START_US) / 1e6


def test_silence_is_answered_with_another_attempt() -> None:
    scene = issued()
    assert 60 + 27 < next_attempt(scene) <= 60 + 30
    assert scene.fire(86).commands == ()
    scene.run_until(90)
    assert [(c.action, c.attempt, c.revision) for c in scene.commands[1:]] == [("Evict", 1, 1), ("Evict", 2, 1)]
    assert scene.commands[1].eviction_id == scene.commands[2].eviction_id
    assert (scene.kinds[-1], scene.state) == ("Retried", "retrying")


def test_silence_counts_from_the_command_when_the_clock_is_behind() -> None:
    """Repeated by a clock three seconds behind the event time of a new taint; found by the torture, seed 17838."""
    behind, right = issued(), issued()
    for scene, at in ((behind, 92), (right, 95)):
        scene.node(95, A, B)
        scene.fire(at)
        assert (scene.commands[-1].attempt, _seconds(scene.commands[-1].issued_at)) == (2, 95)
    assert next_attempt(behind) == next_attempt(right)


def test_a_slow_clock_does_not_repeat_before_the_deadline() -> None:
    """What is untolerated is due from the edit on, whose event time is ahead; found by the torture, seed 50185."""
    scene = issued()
    scene.node(70, A, B)
    scene.pod(95, tolerate("a", 61))
    scene.fire(92)
    repeat = scene.commands[-1]
    assert (repeat.attempt, _seconds(repeat.deadline), _seconds(repeat.issued_at)) == (2, 95, 95)


def test_a_slow_clock_withdraws_nothing_and_delays_the_repeat() -> None:
    """The swap at 100 found the pod due since 90. To a clock that shows 70 that lies ahead; found by seed 14880."""
    scene = Scene()
    scene.pod(0, tolerate(SILENT.key, 90))
    scene.node(0, SICK)
    scene.fire(60)
    scene.node(100, SILENT)
    assert scene.state == "issued"
    scene.decide_all(70)
    assert scene.state == "issued"
    scene.fire(89.9)
    assert (scene.state, scene.commands[-1].attempt) == ("issued", 1)
    scene.fire(90)
    assert (scene.state, scene.commands[-1].attempt) == ("retrying", 2)
    assert scene.actions == ["Evict 0", "Evict 90"]


def test_held_says_by_what_and_ends_nothing() -> None:
    scene = issued()
    scene.result(62, Outcome.HELD, held_by="b-1")
    held = scene.decisions[-1]
    assert (held.outcome, held.held_by, held.result) == (Outcome.ACCEPTED, "b-1", Outcome.HELD)
    assert (scene.state, next_attempt(scene)) == ("issued", 122)
    scene.fire(122)
    assert (scene.commands[-1].attempt, scene.commands[-1].eviction_id) == (2, scene.commands[0].eviction_id)
    assert scene.decisions[-1].result is None


def test_held_is_repeated_without_end_and_recorded_once() -> None:
    scene = issued()
    for at in range(62, 62 + 7_200, 30):
        assert scene.result(at, Outcome.HELD, held_by="b-1").effect == "changed"
        assert next_attempt(scene) == at + 60
    assert scene.kinds[-2:] == ["Issued", "Reported"]
    assert scene.result(at, Outcome.HELD, held_by="b-1") is DUPLICATE
    scene.result(at + 1, Outcome.HELD, held_by="b-2")
    assert scene.decisions[-1].held_by == "b-2"


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, *FAILING, Outcome.ACCEPTED])
def test_any_outcome_counts_after_held(outcome: Outcome) -> None:
    held, plain = issued(), issued()
    held.result(61, Outcome.HELD, held_by="b-1")
    for scene in (held, plain):
        scene.result(62, outcome)
    assert held.aggregate.pods["pod-1"] == plain.aggregate.pods["pod-1"]


@pytest.mark.parametrize("other", [Outcome.ACCEPTED, Outcome.FAILED, Outcome.SUCCEEDED, Outcome.GONE])
def test_an_observer_neither_ends_nor_moves_an_attempt(other: Outcome) -> None:
    """Whether it speaks before or after the one that acts: all is as if it had said nothing."""
    alone, before, after = issued(), issued(), issued()
    assert before.result(61, Outcome.OBSERVED).effect == "changed"
    assert next_attempt(before) == next_attempt(alone)
    assert before.state == "issued"
    for scene in (alone, before, after):
        scene.result(62, other)
    assert after.result(63, Outcome.OBSERVED) is DUPLICATE
    for scene in (before, after):
        assert (scene.state, next_attempt(scene)) == (alone.state, next_attempt(alone))
    assert before.kinds == [*alone.kinds[:-1], "Reported", *alone.kinds[-1:]]


def test_what_is_only_observed_stays_unanswered() -> None:
    scene = issued()
    scene.result(61, Outcome.OBSERVED)
    assert scene.decisions[-1].next_attempt_at is None
    eviction = scene.aggregate.pods["pod-1"].eviction
    assert eviction is not None
    assert eviction.unanswered_since_us == us(60)


def test_silence_grows_up_to_the_ceiling_and_never_ends() -> None:
    scene = issued()
    scene.run_until(100_000)
    at = [_seconds(command.issued_at) for command in scene.commands[1:]]
    waits = [later - earlier for earlier, later in itertools.pairwise(at)]
    for wait, longest in zip(waits, [30, 60, 120, 240, 300, 300, 300], strict=False):
        assert 0.9 * longest <= wait <= longest
    assert len(waits) > 300, "no upper count"
    assert max(waits) <= 300


@pytest.mark.parametrize("outcome", FAILING)
def test_not_done_leaves_it_owed_with_backoff(outcome: Outcome) -> None:
    scene = issued()
    longest = 1.0
    for _ in range(12):
        at = _seconds(scene.commands[-1].issued_at) + 0.5
        scene.result(at, outcome, reason="webhook")
        assert 0.9 * longest <= next_attempt(scene) - at <= longest
        assert (scene.state, scene.decisions[-1].decision) == ("retrying", "Reported")
        assert (scene.decisions[-1].outcome, scene.decisions[-1].outcome_reason) == (outcome, "webhook")
        scene.run_until(next_attempt(scene))
        longest = min(2 * longest, 300)
    assert [command.attempt for command in scene.commands[1:]] == list(range(1, 14))


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.GONE])
def test_success_stops_repeats_for_a_grace_time(outcome: Outcome) -> None:
    scene = issued()
    scene.result(61, outcome)
    assert next_attempt(scene) == 61 + 120
    scene.run_until(180.9)
    assert len(scene.commands) == 2
    scene.run_until(181)
    assert scene.commands[-1].attempt == 2, "the pod is still there: owed again"


def test_success_then_the_pod_leaves() -> None:
    scene = issued()
    scene.result(61, Outcome.SUCCEEDED)
    scene.pod(62, tolerate("a", 60), terminating=True)
    scene.pod(92, event_type=DELETED)
    scene.run_until(10_000)
    assert scene.actions == ["Schedule 60", "Evict 60"]
    assert scene.kinds == ["Scheduled", "Issued", "Reported", "Completed"]


def test_accepted_holds_the_repeat_back_while_it_is_repeated() -> None:
    scene = issued()
    for at in range(80, 60 + 900, 20):
        scene.result(at, Outcome.ACCEPTED)
        assert next_attempt(scene) == min(at + 60, 60 + 900)
    assert (scene.state, scene.kinds.count("Reported")) == ("issued", 1)
    assert scene.fire(959.9).commands == ()
    scene.run_until(960)
    assert (scene.commands[-1].attempt, _seconds(scene.commands[-1].issued_at)) == (2, 960), "the limit"


def test_accepted_once_holds_the_repeat_back_for_a_while() -> None:
    scene = issued()
    scene.result(61, Outcome.ACCEPTED)
    scene.run_until(121)
    assert (scene.commands[-1].attempt, _seconds(scene.commands[-1].issued_at)) == (2, 121)


@pytest.mark.parametrize("outcome", [*FAILING, Outcome.SUCCEEDED, Outcome.GONE])
def test_any_outcome_counts_after_accepted(outcome: Outcome) -> None:
    accepted, plain = issued(), issued()
    accepted.result(61, Outcome.ACCEPTED)
    for scene in (accepted, plain):
        scene.result(62, outcome)
    assert next_attempt(accepted) == next_attempt(plain)
    assert accepted.state == plain.state
    assert accepted.result(63, Outcome.ACCEPTED) is DUPLICATE


def test_repeated_result_does_not_move_the_next_attempt() -> None:
    scene = issued()
    scene.result(61, Outcome.FAILED)
    before = next_attempt(scene)
    assert scene.result(61.5, Outcome.FAILED) is DUPLICATE
    assert scene.result(61.5, Outcome.REFUSED) is DUPLICATE
    assert next_attempt(scene) == before


def test_success_counts_after_a_failure_but_not_vice_versa() -> None:
    scene = issued()
    scene.result(61, Outcome.FAILED)
    scene.result(61.1, Outcome.SUCCEEDED)
    assert next_attempt(scene) == 61.1 + 120
    assert scene.result(61.2, Outcome.FAILED) is DUPLICATE
    assert scene.result(61.3, Outcome.GONE) is DUPLICATE


def test_result_of_an_old_attempt_counts_for_nothing() -> None:
    scene = issued()
    first = scene.commands[-1]
    scene.result(61, Outcome.FAILED)
    scene.run_until(62)
    assert scene.commands[-1].attempt == 2
    assert scene.result(62.1, Outcome.SUCCEEDED, first) is STALE


def test_result_of_an_old_eviction_counts_for_nothing() -> None:
    scene = issued()
    first = scene.commands[-1]
    scene.node(61)
    scene.node(62, B)
    scene.fire(62)
    assert scene.commands[-1].attempt == 1
    assert scene.result(63, Outcome.SUCCEEDED, first) is STALE


def test_result_after_the_attempt_was_withdrawn_counts_for_nothing() -> None:
    scene = issued()
    evict = scene.commands[-1]
    scene.pod(61, tolerate("a", 100))
    assert scene.result(62, Outcome.FAILED, evict) is STALE
    assert scene.deadline == 100


def test_result_before_anything_was_issued_or_for_an_unknown_pod() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    schedule = scene.commands[-1]
    assert scene.result(1, Outcome.SUCCEEDED, schedule) is STALE
    scene.pod(2, event_type=DELETED)
    assert scene.result(3, Outcome.SUCCEEDED, schedule) is STALE


@pytest.mark.parametrize("end", ["gone", "terminating", "finished", "replaced"])
def test_at_the_retry_pod_is_gone(end: str) -> None:
    """12.8: drop, done"""
    scene = issued()
    scene.result(61, Outcome.FAILED)
    match end:
        case "gone":
            scene.pod(61.1, event_type=DELETED)
        case "terminating":
            scene.pod(61.1, tolerate("a", 60), terminating=True)
        case "finished":
            scene.pod(61.1, tolerate("a", 60), phase="Succeeded")
        case _:
            scene.pod(61.1, tolerate("a"), uid="pod-2")
    assert scene.fire(62) is UNCHANGED
    assert scene.actions == ["Schedule 60", "Evict 60"]


def test_at_the_retry_no_taint_is_left() -> None:
    """12.8: drop, one cancellation"""
    scene = issued()
    scene.result(61, Outcome.FAILED)
    scene.node(61.1)
    scene.run_until(1000)
    assert scene.actions == ["Schedule 60", "Evict 60", "Cancel TaintRemoved"]


def test_at_the_retry_all_is_tolerated_for_ever() -> None:
    """12.8: drop, one cancellation"""
    scene = issued()
    scene.result(61, Outcome.FAILED)
    scene.pod(61.1, tolerate("a"))
    scene.run_until(1000)
    assert scene.actions == ["Schedule 60", "Evict 60", "Cancel Tolerated"]


def test_at_the_retry_some_taint_is_untolerated() -> None:
    """12.8: delete now; the retry tells the newest reason"""
    scene = issued()
    scene.result(61, Outcome.FAILED)
    scene.node(61.1, A, B)
    scene.run_until(62)
    command = scene.commands[-1]
    assert (command.action, command.reason.verdict, command.reason.taint) == ("Evict", "Untolerated", B)
    assert (command.revision, command.attempt, command.deadline) == (2, 2, text(61.1))


def test_at_the_retry_the_window_has_expired() -> None:
    """12.8: delete now at every retry; never a second window"""
    scene = issued()
    for attempt in range(2, 6):
        scene.result(_seconds(scene.commands[-1].issued_at), Outcome.FAILED)
        scene.run_until(next_attempt(scene))
        assert (scene.commands[-1].attempt, scene.commands[-1].deadline) == (attempt, text(60))
    assert scene.actions.count("Schedule 60") == 1


def test_at_the_retry_an_edit_has_moved_the_deadline_ahead() -> None:
    """12.8: schedule for the rest"""
    scene = issued()
    scene.result(61, Outcome.FAILED)
    scene.pod(61.1, tolerate("a", 300))
    scene.run_until(299)
    assert scene.actions == ["Schedule 60", "Evict 60", "Schedule 300"]
    scene.run_until(300)
    assert scene.actions[-1] == "Evict 300"


def test_at_the_retry_a_toleration_was_added() -> None:
    """12.8: window start plus seconds, whether or not an attempt was made"""
    scene = issued(Toleration("x", "Exists"), taint=A)
    scene.result(61, Outcome.FAILED)
    scene.pod(61.1, Toleration("x", "Exists"), tolerate("a", 100))
    assert scene.actions[-1] == "Schedule 100"
    again = issued(Toleration("x", "Exists"), taint=A)
    again.pod(61.1, Toleration("x", "Exists"), tolerate("a", 30))
    assert again.state == "issued", "window start plus 30 has passed: go on"


def test_at_the_retry_another_taint_is_tolerated_for_a_while() -> None:
    """12.8: schedule with the window of that taint"""
    scene = issued(tolerate("a", 60), tolerate("b", 100))
    scene.result(61, Outcome.FAILED)
    scene.node(61.1, B)
    assert scene.actions[-1] == "Schedule 161.1"


def test_retry_times_survive_a_restart() -> None:
    scene = issued()
    scene.result(61, Outcome.FAILED)
    at = next_attempt(scene)
    scene.restart()
    assert scene.timers == {(us(at), "pod-1")}
    scene.run_until(at)
    assert scene.commands[-1].attempt == 2


def test_only_the_timer_issues() -> None:
    """semantics.md 12.6"""
    scene = Scene()
    scene.pod(0)
    scene.node(0, A)
    scene.node(50, A, B)
    scene.pod(60, tolerate("x", 5))
    scene.decide_all(70)
    assert scene.commands == []
    scene.fire(70)
    assert [command.action for command in scene.commands] == ["Evict"]


def test_rules_refuse_attempts_without_a_pause() -> None:
    for field in (*(f"{name}_us" for name in ("retry_base", "retry_ceiling", "silence", "success_grace")), *ACCEPTED):
        with pytest.raises(ValueError, match=field):
            msgspec.structs.replace(RuleParameters(), **{field: 0})
    for field in ("outage_gap_us", "remember_deleted_us"):
        with pytest.raises(ValueError, match=field):
            msgspec.structs.replace(RuleParameters(), **{field: -1})


def test_added_and_modified_events_have_the_same_effect() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), event_type=EventType.ADDED)
    scene.node(0, A, event_type=EventType.ADDED)
    scene.pod(10, tolerate("a", 90), event_type=EventType.ADDED)
    assert scene.actions == ["Schedule 60", "Schedule 90"]


def _seconds(instant: str) -> float:
    return float(seconds_of(instant))
