"""Windows of tolerations by value: they begin when the value came (semantics.md 12.4)."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import RuleParameters
from evictstream.models.kubernetes import NO_EXECUTE, Taint, Toleration
from tests.models.eviction.scene import SICK, SILENT, Scene, text, tolerate

X, Y = (Taint("a", value, NO_EXECUTE) for value in ("x", "y"))
FIVE, NINE = (Taint("a", value, NO_EXECUTE) for value in ("5", "9"))


def compare(operator: str, value: str, seconds: int | None = None) -> Toleration:
    return Toleration("a", operator, value, NO_EXECUTE, seconds)


@pytest.mark.parametrize(
    ("tolerations", "values", "deadline"),
    [
        pytest.param([compare("Equal", "x"), compare("Equal", "y", 300)], [X, Y], 400, id="forever until now"),
        pytest.param([compare("", "x", 150), compare("", "y", 300)], [X, Y], 400, id="for a while until now, longer"),
        pytest.param([compare("", "x", 150), compare("", "y", 10)], [X, Y], 110, id="for a while until now, shorter"),
        pytest.param([compare("", "x", 150), compare("", "y", 0)], [X, Y], 100, id="for no time at all"),
        pytest.param([compare("Equal", "x"), tolerate("a", 300)], [X, Y], 400, id="one before it compares"),
        pytest.param([compare("Equal", "x"), tolerate("", 300)], [X, Y], 400, id="one before it compares, any key"),
        pytest.param([compare("Equal", "z"), tolerate("a", 300)], [X, Y], 400, id="one before it, of no effect"),
        pytest.param([tolerate("a", 300), compare("Equal", "x")], [X, Y], 300, id="one behind it compares"),
        pytest.param([tolerate("a", 300)], [X, Y, X, Y], 300, id="a value that flaps under Exists extends nothing"),
        pytest.param([compare("Gt", "7"), compare("Lt", "7", 300)], [NINE, FIVE], 400, id="Lt"),
        pytest.param([compare("Lt", "7"), compare("Gt", "7", 300)], [FIVE, NINE], 400, id="Gt"),
        pytest.param(
            [compare("Near", "x"), tolerate("a", 300)], [X, Y], 300, id="an unknown operator compares nothing"
        ),
        pytest.param(
            [Toleration("a", "Equal", "x", "NoSchedule"), tolerate("a", 300)], [X, Y], 300, id="another effect"
        ),
        pytest.param([Toleration("b", "Equal", "x"), tolerate("a", 300)], [X, Y], 300, id="another key"),
    ],
)
@pytest.mark.parametrize("padding", [0, 70])
def test_a_window_by_value_begins_with_the_value(
    tolerations: list[Toleration], values: list[Taint], deadline: float, padding: int
) -> None:
    """12.4; a long list is looked up in an index."""
    scene = Scene(rules=RuleParameters(comparison_operators=True))
    scene.pod(0, *(tolerate(f"other-{number}") for number in range(padding)), *tolerations)
    for number, taint in enumerate(values):
        scene.node(number * 100, taint)
    assert (scene.deadline, scene.state) == (deadline, "scheduled")
    scene.restart()
    assert scene.decide_all(50).rows == ()


def test_a_comparison_that_is_switched_off_plays_no_part() -> None:
    scene = Scene()
    scene.pod(0, compare("Gt", "7"), tolerate("a", 300))
    scene.node(0, FIVE)
    scene.node(100, NINE)
    assert scene.deadline == 300


def test_a_value_before_the_pod_leaves_the_window_to_it() -> None:
    scene = Scene()
    scene.node(0, X)
    scene.node(10, Y)
    scene.pod(50, compare("Equal", "y", 300))
    assert scene.deadline == 350


def test_the_message_says_when_the_value_came() -> None:
    scene = Scene()
    scene.pod(0, compare("Equal", "x"), compare("Equal", "y", 300))
    scene.node(0, X)
    scene.node(3600, Y)
    assert scene.actions == ["Schedule 3900"]
    assert scene.commands[-1].window_start == text(3600)


@pytest.mark.parametrize(
    ("own", "other", "deadline"),
    [
        pytest.param("Equal", "Exists", 400, id="its own value plays a part"),
        pytest.param("Exists", "Exists", 300, id="no value plays a part"),
    ],
)
def test_an_outage_is_no_bound_for_another_value(own: str, other: str, deadline: float) -> None:
    """12.5"""
    scene = Scene()
    values = ("planned", "now") if own == "Equal" else ("", "")
    before = Toleration(SICK.key, own, values[0], NO_EXECUTE, None if own == "Equal" else 300)
    scene.pod(0, before, Toleration(SICK.key, own, values[1], NO_EXECUTE, 300), tolerate(SILENT.key, 300))
    scene.node(0, Taint(SICK.key, "planned", NO_EXECUTE), ready="False")
    scene.node(100, Taint(SICK.key, "now", NO_EXECUTE), ready="False")
    assert scene.deadline == deadline


def test_an_outage_is_no_bound_with_the_others_new_value() -> None:
    """12.5: until 100 the other one was tolerated forever, which is no bound."""
    scene = Scene()
    sick = [Toleration(SICK.key, "Equal", "planned"), Toleration(SICK.key, "Equal", "now", NO_EXECUTE, 700)]
    scene.pod(0, *sick, tolerate(SILENT.key, 600))
    scene.node(0, Taint(SICK.key, "planned", NO_EXECUTE), ready="False")
    scene.node(90, Taint(SICK.key, "planned", NO_EXECUTE), SILENT, ready="Unknown")
    assert scene.deadline == 690
    scene.node(100, Taint(SICK.key, "now", NO_EXECUTE), SILENT, ready="Unknown")
    assert scene.deadline == 690


def test_swapped_taints_without_values_are_one_outage_under_equal() -> None:
    """12.4: the value came with the taint, and has not changed since."""
    scene = Scene()
    scene.pod(0, *(Toleration(one.key, "Equal", "", NO_EXECUTE, 300) for one in (SICK, SILENT)))
    scene.node(0, SICK, ready="False")
    scene.node(100, SILENT, ready="Unknown")
    assert scene.deadline == 300
