"""semantics.md 12.5 and the examples of 12.7."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import Due, RuleParameters, decide
from evictstream.models.eviction.decision import MOST_COVERAGES, Coverages
from evictstream.models.instants import LAST_INSTANT_US
from evictstream.models.kubernetes import NO_EXECUTE, UNREACHABLE, Taint, Toleration
from tests.models.eviction.scene import NODE, SICK, SILENT, START_US, A, B, Scene, text, tolerate, us


def test_example_tolerates_100_changed_to_30_at_10() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(0, tolerate("a", 100))
    scene.pod(10, tolerate("a", 30))
    assert scene.deadline == 30
    scene.run_until(200)
    assert scene.actions[:3] == ["Schedule 100", "Schedule 30", "Evict 30"]


def test_example_changed_to_30_at_50_is_evicted_at_50() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(0, tolerate("a", 100))
    changes = scene.pod(50, tolerate("a", 30))
    assert scene.deadline == 30
    assert not changes.commands, "what is due at once is not announced"
    changes = scene.fire(50)
    assert [(c.action, c.deadline, c.issued_at) for c in changes.commands] == [("Evict", text(30), text(50))]


def test_example_changed_to_0_at_10_is_evicted_at_10() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(0, tolerate("a", 100))
    scene.pod(10, tolerate("a", 0))
    scene.fire(10)
    assert scene.actions == ["Schedule 100", "Evict 0"]


def test_example_tolerates_1_changed_to_100_at_half() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(0, tolerate("a", 1))
    scene.pod(0.5, tolerate("a", 100))
    scene.run_until(99)
    assert scene.actions == ["Schedule 1", "Schedule 100"]
    scene.run_until(100)
    assert scene.actions[2:] == ["Evict 100"]


def test_example_second_taint_at_10_with_5() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), tolerate("b", 5))
    scene.node(0, A)
    scene.node(10, A, B)
    assert scene.deadline == 15
    assert scene.actions == ["Schedule 60", "Schedule 15"]


def test_example_first_taint_removed_at_20_second_stays() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), tolerate("b", 100))
    scene.node(0, A)
    scene.node(10, A, B)
    scene.node(20, B)
    assert scene.deadline == 110
    assert scene.actions == ["Schedule 60", "Schedule 110"]


def test_example_restart_from_40_to_50() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(0, tolerate("a", 100))
    scene.run_until(40)
    scene.restart()
    scene.decide_all(50)
    assert scene.deadline == 100
    scene.run_until(99.9)
    assert scene.actions == ["Schedule 100"]
    scene.run_until(100)
    assert scene.actions == ["Schedule 100", "Evict 100"]


def test_example_down_from_90_to_120_is_evicted_at_120() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(0, tolerate("a", 100))
    scene.restart()
    scene.decide_all(120)
    changes = scene.fire(120)
    assert [(c.action, c.deadline, c.issued_at) for c in changes.commands] == [("Evict", text(100), text(120))]


@pytest.mark.parametrize(
    ("tolerations", "taints", "deadline"),
    [
        pytest.param([], [], None, id="12.5 no NoExecute taint"),
        pytest.param([], [Taint("a", "", "NoSchedule")], None, id="12.5 other effects do not evict"),
        pytest.param([], [A], 0, id="12.5 untolerated"),
        pytest.param([tolerate("a")], [A], None, id="12.5 tolerated forever"),
        pytest.param([tolerate("a", 60)], [A], 60, id="12.5 for a while"),
        pytest.param([tolerate("a", -5)], [A], 0, id="6.13 negative seconds as 0"),
        pytest.param([tolerate("a", 1), tolerate("b", 100)], [A, B], 1, id="6.13 two taints, 1 s and 100 s"),
        pytest.param([tolerate("a"), tolerate("b", 60)], [A, B], 60, id="6.13 two taints, forever and 60 s"),
        pytest.param([tolerate("a", 60)], [A, B], 0, id="6.13 two taints, one untolerated"),
        pytest.param([tolerate("", 60)], [A, B], 60, id="6.13 every taint, n seconds"),
        pytest.param([Toleration("a", "Exists", "", "NoSchedule")], [A], 0, id="6.13 another effect does not help"),
        pytest.param([Toleration("a", "Exists")], [A], None, id="6.13 no effect helps forever"),
        pytest.param([tolerate("a", 5), tolerate("a")], [A], 5, id="3.4 first match 5 s"),
        pytest.param([tolerate("a"), tolerate("a", 5)], [A], None, id="3.4 first match forever"),
        pytest.param([tolerate("a", 18446744074)], [A], 18446744074, id="12.5 seconds that overflow upstream"),
        pytest.param([tolerate("a", 10**12)], [A], None, id="12.5 past the year 9999"),
        pytest.param([tolerate("a", 10**30)], [A], None, id="12.5 beyond 64 bit"),
        pytest.param([tolerate("a", 10**30), tolerate("b", 60)], [A, B], 60, id="12.5 past 9999 beside 60 s"),
        pytest.param([Toleration("a", "Near", "", "NoExecute")], [A], 0, id="12.3 unknown operator matches nothing"),
    ],
)
def test_deadline(tolerations: list[Toleration], taints: list[Taint], deadline: float | None) -> None:
    scene = Scene()
    scene.pod(0, *tolerations)
    scene.node(0, *taints)
    assert scene.deadline == deadline


def test_the_last_instant_is_a_deadline_one_later_is_none() -> None:
    """12.5: a time past the end of year 9999 is no deadline"""
    seconds, fraction_us = divmod(LAST_INSTANT_US - START_US, 1_000_000)
    scene = Scene()
    scene.node(fraction_us / 1e6, A)
    scene.pod(0, tolerate("a", seconds))
    assert scene.commands[-1].deadline == "9999-12-31T23:59:59.999999Z"
    scene.pod(0, tolerate("a", seconds + 1))
    assert scene.state is None


def test_comparison_operators_behind_one_switch() -> None:
    """3.2 and 11.2"""
    above = Toleration("gpu", "Gt", "750", NO_EXECUTE, 60)
    for on, deadline in ((True, 60), (False, 0)):
        scene = Scene(RuleParameters(comparison_operators=on))
        scene.pod(0, above)
        scene.node(0, Taint("gpu", "800", NO_EXECUTE))
        assert scene.deadline == deadline


def test_pod_that_arrives_later_has_its_own_window() -> None:
    """6.13: evicted 30 s after its arrival"""
    scene = Scene()
    scene.node(0, A)
    scene.pod(50, tolerate("a", 30))
    assert scene.deadline == 80


@pytest.mark.parametrize(
    ("tolerations", "seen", "deadline"),
    [
        pytest.param([300, 300], [(0, [SICK]), (100, [SILENT])], 300, id="300 and 300 mean 300 from the outage"),
        pytest.param([300, 300], [(0, [SICK]), (100, [SICK, SILENT]), (101, [SILENT])], 300, id="swap with both"),
        pytest.param([30, 300], [(0, [SICK]), (10, [SILENT])], 300, id="not less than the larger one"),
        pytest.param([300, 30], [(0, [SICK]), (10, [SILENT])], 40, id="own toleration from own window"),
        pytest.param([300, 30], [(0, [SICK]), (290, [SILENT])], 300, id="the outage is older"),
        pytest.param([30, 30], [(0, [SICK]), (100, [SILENT])], 30, id="outage older than both: overdue at once"),
        pytest.param([None, 30], [(0, [SICK]), (100, [SILENT])], 130, id="other one forever: no bound"),
        pytest.param([300, None], [(0, [SICK]), (100, [SILENT])], None, id="this one forever"),
        pytest.param([-5, -5], [(0, [SICK])], 0, id="negative counts as 0"),
    ],
)
def test_outage_bounds_the_deadline(
    tolerations: list[int | None], seen: list[tuple[float, list[Taint]]], deadline: float | None
) -> None:
    scene = Scene()
    sick, silent = tolerations
    scene.pod(0, tolerate(SICK.key, sick), tolerate(SILENT.key, silent))
    for at, taints in seen:
        scene.node(at, *taints, ready="Unknown")
    assert scene.deadline == deadline


def test_other_health_taint_without_toleration_counts_as_0() -> None:
    """12.5: none: 0, so the bound is that of this taint's own toleration"""
    scene = Scene()
    scene.pod(0, tolerate(SILENT.key, 30), tolerate("a"))
    scene.node(0, SILENT, A, ready="Unknown")
    scene.node(10, A, ready="Unknown")
    scene.node(12, SILENT, A, ready="Unknown")
    assert scene.deadline == 30


def test_outage_counts_from_the_pods_arrival() -> None:
    """12.5: the later of start of outage and first sight of the bound pod"""
    scene = Scene()
    scene.node(0, SICK, ready="False")
    scene.pod(100, tolerate(SICK.key, 300), tolerate(SILENT.key, 300))
    scene.node(200, SILENT, ready="Unknown")
    assert scene.deadline == 400


def test_controller_restart_does_not_begin_a_new_window() -> None:
    """13 row 31: 30 s became 45.5 s upstream"""
    scene = Scene()
    scene.pod(0, tolerate(UNREACHABLE, 30), tolerate(SICK.key, 30))
    scene.node(0, SILENT, ready="Unknown")
    scene.node(15.4, ready="Unknown")
    assert scene.state is None
    scene.node(15.5, SILENT, ready="Unknown")
    assert scene.deadline == 30


def test_recovery_begins_a_new_window() -> None:
    """12.4: a longer gap, or Ready in it, is a fresh start"""
    for gap, ready, deadline in ((5.0, "Unknown", 30), (5.1, "Unknown", 45.1), (1.0, "True", 41)):
        scene = Scene()
        scene.pod(0, tolerate(UNREACHABLE, 30), tolerate(SICK.key, 30))
        scene.node(0, SILENT, ready="Unknown")
        scene.node(10, ready=ready)
        scene.node(10 + gap, SILENT, ready="Unknown")
        assert scene.deadline == deadline


@pytest.mark.parametrize(
    ("changes", "deadline"),
    [
        pytest.param(
            [(10, [Taint("a", "v", NO_EXECUTE)])], 60, id="12.4 a value that nothing looks at keeps the window"
        ),
        pytest.param([(10, []), (20, [A])], 80, id="12.4 a taint that comes back opens a new window"),
        pytest.param([(10, [Taint("a", "", "NoSchedule")]), (20, [A])], 80, id="12.4 another effect closes it"),
        pytest.param([(10, [Taint("a", "", NO_EXECUTE, 5)])], 60, id="12.4 timeAdded appears"),
        pytest.param(
            [(10, [Taint("a", "", NO_EXECUTE, 5)]), (20, [Taint("a", "", NO_EXECUTE, 6)])],
            80,
            id="12.4 later timeAdded: a removal was missed",
        ),
    ],
)
def test_windows(changes: list[tuple[float, list[Taint]]], deadline: float) -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    for at, taints in changes:
        scene.node(at, *taints)
    assert scene.deadline == deadline


def test_untolerated_is_due_since_the_last_of_its_facts() -> None:
    scene = Scene()
    equal = Toleration("a", "Equal", "x", NO_EXECUTE)
    scene.node(0, Taint("a", "x", NO_EXECUTE))
    scene.pod(5, equal)
    assert scene.state is None
    scene.node(20, Taint("a", "y", NO_EXECUTE))
    assert scene.deadline == 20
    decision = scene.decisions[-1]
    assert (decision.decision, decision.verdict, decision.toleration) == ("Due", "Untolerated", None)
    assert decision.window_start == text(5)


def test_warns_of_a_shadowed_toleration() -> None:
    """13 row 23"""
    scene = Scene()
    scene.pod(0, tolerate("a", 5), tolerate("a"))
    scene.pod(0, tolerate("a", 5), uid="pod-2", name="web-1")
    scene.node(0, A)
    assert [decision.warnings for decision in scene.decisions] == [("LaterTolerationDiffers",), ()]


def test_reason_names_taint_toleration_and_outage() -> None:
    """12.1: whatever is decided can be explained afterwards"""
    scene = Scene()
    scene.pod(0, tolerate(SICK.key, 300), tolerate(SILENT.key, 300))
    scene.node(0, SICK, ready="False")
    scene.node(100, SILENT, ready="Unknown")
    decision = scene.decisions[-1]
    assert scene.kinds == ["Scheduled"], "the same deadline: nothing moves, and nothing is said"
    scene.pod(110, tolerate(SICK.key, 200), tolerate(SILENT.key, 250))
    decision = scene.decisions[-1]
    assert (decision.decision, decision.taint, decision.window_start) == ("Moved", SILENT, text(100))
    assert (decision.deadline, decision.outage_start) == (text(250), text(0))
    assert decision.previous is not None
    assert (decision.previous.state, decision.previous.deadline) == ("scheduled", text(300))
    assert (decision.cause.kind, decision.cause.topic, decision.cause.offset) == ("Pod", "evictstream.test", 42)
    assert decision.node == NODE


EARLY, LATE = (Taint(key, "", NO_EXECUTE) for key in ("early", "late"))


@pytest.mark.parametrize(
    ("pod_at", "taints", "reason"),
    [
        pytest.param(20, (LATE, EARLY), LATE, id="both windows begin with the pod"),
        pytest.param(5, (LATE, EARLY), EARLY, id="the later of both windows comes first in node order"),
        pytest.param(5, (EARLY, LATE), EARLY, id="the earlier one comes first"),
    ],
)
def test_the_reason_among_taints_of_one_toleration(pod_at: int, taints: tuple[Taint, Taint], reason: Taint) -> None:
    scene = Scene()
    scene.node(0, EARLY)
    if pod_at == 5:
        scene.pod(pod_at, tolerate("", 60))
    scene.node(10, *taints)
    scene.pod(20, tolerate("", 60))
    eviction = scene.aggregate.pods["pod-1"].eviction
    assert eviction is not None
    assert (eviction.due.taint, scene.deadline) == (reason, 60 + pod_at)


def test_a_step_keeps_a_bounded_number_of_coverages() -> None:
    scene = Scene()
    scene.pod(0)
    scene.node(0, A)
    pod = scene.aggregate.pods["pod-1"]
    coverages: Coverages = {}
    for seconds in range(2 * MOST_COVERAGES):
        pod.tolerations = (tolerate("a", seconds),)
        found = decide(scene.aggregate.node, pod, scene.rules, coverages)
        assert isinstance(found, Due)
        assert found.deadline_us == us(seconds)
    assert len(coverages) == MOST_COVERAGES
