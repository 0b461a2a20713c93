from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import LifecycleSettings, Passage, ZoneState, disruption_step

SETTINGS = LifecycleSettings(large_cluster_size_threshold=5)
INITIAL = ZoneState.INITIAL
NORMAL = ZoneState.NORMAL
PARTIAL = ZoneState.PARTIAL_DISRUPTION
FULL = ZoneState.FULL_DISRUPTION

ALL_UP = ["True", "True"]
ALL_DOWN = ["Unknown", "False"]
FEW_OF_FIVE_UP = ["True", "True", "Unknown", "Unknown", "Unknown"]
FEW_OF_SIX_UP = ["True", "True", "Unknown", "Unknown", "Unknown", "Unknown"]


@pytest.mark.parametrize(
    ("before", "ready", "passage", "states", "rates"),
    [
        pytest.param({}, {}, "none", {}, {}, id="handleDisruption: no nodes"),
        pytest.param({}, {"a": ALL_UP}, "none", {"a": NORMAL}, {"a": 0.1}, id="8.3 first sight: normal"),
        pytest.param({"a": NORMAL}, {"a": ALL_UP}, "none", {"a": NORMAL}, {}, id="8.4 no change keeps the limiter"),
        pytest.param(
            {"a": NORMAL}, {"a": FEW_OF_FIVE_UP}, "none", {"a": PARTIAL}, {"a": 0.0}, id="8.4 partial, small: stops"
        ),
        pytest.param(
            {"a": NORMAL}, {"a": FEW_OF_SIX_UP}, "none", {"a": PARTIAL}, {"a": 0.01}, id="8.4 partial, large: slow"
        ),
        pytest.param(
            {"a": PARTIAL},
            {"a": FEW_OF_SIX_UP},
            "none",
            {"a": PARTIAL},
            {},
            id="handleDisruption: a partial zone that grows keeps its rate",
        ),
        pytest.param({"a": PARTIAL}, {"a": ALL_UP}, "none", {"a": NORMAL}, {"a": 0.1}, id="8.4 partial to normal"),
        pytest.param(
            {"a": NORMAL, "b": NORMAL},
            {"a": ALL_DOWN, "b": ALL_UP},
            "none",
            {"a": FULL, "b": NORMAL},
            {"a": 0.1},
            id="8.4 full, another zone is not: normal rate",
        ),
        pytest.param(
            {"a": PARTIAL, "b": NORMAL},
            {"a": ALL_DOWN, "b": ALL_UP},
            "none",
            {"a": FULL, "b": NORMAL},
            {"a": 0.1},
            id="8.4 partial to full: from 0 back to the normal rate",
        ),
        pytest.param({"a": NORMAL}, {"a": ALL_DOWN}, "entered", {"a": FULL}, {"a": 0.0}, id="8.4 one zone, all down"),
        pytest.param({}, {"a": ["False"]}, "entered", {"a": FULL}, {"a": 0.0}, id="8.4 one node, down from the start"),
        pytest.param(
            {"a": FULL, "b": NORMAL},
            {"a": ALL_DOWN, "b": ALL_DOWN},
            "entered",
            {"a": FULL, "b": FULL},
            {"a": 0.0, "b": 0.0},
            id="8.4 the last zone goes: all stop",
        ),
        pytest.param(
            {"a": FULL, "b": FULL},
            {"a": ALL_DOWN, "b": ALL_DOWN},
            "remains",
            {"a": FULL, "b": FULL},
            {},
            id="handleDisruption: still down everywhere",
        ),
        pytest.param(
            {"a": FULL},
            {"a": ALL_DOWN, "b": ALL_DOWN},
            "entered",
            {"a": FULL, "b": FULL},
            {"a": 0.0, "b": 0.0},
            id="handleDisruption: a new zone that is down enters once more",
        ),
        pytest.param(
            {"a": FULL, "b": FULL},
            {"a": ALL_UP, "b": ALL_DOWN},
            "left",
            {"a": NORMAL, "b": FULL},
            {"a": 0.1, "b": 0.1},
            id="8.4 leaving: each zone gets the rate of its state",
        ),
        pytest.param(
            {"a": FULL},
            {"a": FEW_OF_FIVE_UP},
            "left",
            {"a": PARTIAL},
            {"a": 0.0},
            id="8.4 leaving into partial disruption",
        ),
        pytest.param(
            {"a": FULL, "gone": NORMAL},
            {"a": ALL_DOWN},
            "remains",
            {"a": FULL},
            {},
            id="handleDisruption: a zone without nodes is forgotten",
        ),
        pytest.param({"a": FULL}, {}, "none", {}, {}, id="handleDisruption: all nodes gone or excluded"),
        pytest.param(
            {"a": NORMAL, "b": NORMAL},
            {"a": [None, None], "b": [None]},
            "entered",
            {"a": FULL, "b": FULL},
            {"a": 0.0, "b": 0.0},
            id="8.3 no condition counts as not ready",
        ),
    ],
)
def test_step(
    before: dict[str, ZoneState],
    ready: dict[str, list[str | None]],
    passage: str,
    states: dict[str, ZoneState],
    rates: dict[str, float],
) -> None:
    step = disruption_step(before, ready, SETTINGS)
    assert (step.passage, step.states, step.rates) == (Passage(passage), states, rates)


ZONES = st.dictionaries(
    st.sampled_from("abc"), st.lists(st.sampled_from(["True", "False", "Unknown", None]), min_size=1, max_size=7)
)


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from(list(ZoneState))), ZONES)
def test_a_second_look_at_the_same_nodes_changes_nothing(
    before: dict[str, ZoneState], ready: dict[str, list[str | None]]
) -> None:
    first = disruption_step(before, ready, SETTINGS)
    second = disruption_step(first.states, ready, SETTINGS)
    assert second.states == first.states
    assert second.rates == {}
    assert second.passage in (Passage.NONE, Passage.REMAINS)
