"""How the pods of an owner grow fewer: each deadline by itself while there is room, and nothing is lost in the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.eviction.workloads import Descent, descent
from evictstream.models.messages.workload import MOST_STEPS_OF_WORKLOAD
from tests.harness.counted import steps_anew


def test_pods_of_one_deadline_leave_together() -> None:
    assert descent(5, {9: 1, 4: 3}) == (Descent(4, 4, 2), Descent(9, 9, 1))


def test_without_a_deadline_there_is_no_step() -> None:
    assert descent(3, {}) == ()


def test_the_last_step_names_first_and_last_of_the_rest() -> None:
    found = descent(100, dict.fromkeys(range(50), 2))
    assert found[:15] == tuple(Descent(at, at, 98 - 2 * at) for at in range(15))
    assert found[15:] == (Descent(15, 49, 0),)


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 5))
def test_steps_are_those_of_a_count_anew(deadlines: list[int], stay: int) -> None:
    bound = len(deadlines) + stay
    found = descent(bound, {at: deadlines.count(at) for at in deadlines})
    assert tuple(map(tuple, found)) == steps_anew(bound, deadlines)
    assert len(found) <= MOST_STEPS_OF_WORKLOAD
    # Who believes that a step is over at its beginning never counts on a pod that has left.
    for at in range(42):
        told = min([bound, *(step.left for step in found if step.at_us <= at)])
        assert told <= bound - sum(each <= at for each in deadlines)
