from __future__ import annotations

import pytest

from tests.bench.figures import Bound, Goal


@pytest.mark.parametrize(
    ("bound", "reached"),
    [
        pytest.param(Bound.AT_LEAST, [False, True, True], id="at-least"),
        pytest.param(Bound.BELOW, [True, False, False], id="below"),
        pytest.param(Bound.AT_MOST, [True, True, False], id="at-most"),
    ],
)
def test_which_values_reach_a_goal_of_ten(bound: Bound, reached: list[bool]) -> None:
    assert [Goal(bound, 10.0).is_met_by(value) for value in (9.9, 10.0, 10.1)] == reached
