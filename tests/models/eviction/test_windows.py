"""semantics.md 12.4: since when a taint is on the node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.eviction.decision import untolerated_since_us, window_start_us
from evictstream.models.eviction.state import PodState, TaintState
from evictstream.models.eviction.taint_history import advance_taints
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Taint

NOW = 100
A = Taint("a", "", NO_EXECUTE)


def kept(value: str = "", since: int = 10, value_since: int = 10, added: int | None = None) -> TaintState:
    return TaintState(Taint("a", value, NO_EXECUTE), since, value_since, added)


@pytest.mark.parametrize(
    ("known", "seen", "result"),
    [
        pytest.param([], [A], [kept("", NOW, NOW)], id="opens when it is first seen"),
        pytest.param([], [Taint("a", "", NO_EXECUTE, 5)], [kept("", NOW, NOW, 5)], id="timeAdded is never the start"),
        pytest.param([kept()], [A], [kept()], id="unchanged"),
        pytest.param([kept()], [], [], id="removed"),
        pytest.param([kept()], [Taint("a", "", NO_SCHEDULE)], [], id="another effect is a removal"),
        pytest.param([], [Taint("a", "", NO_SCHEDULE)], [], id="other effects are not kept"),
        pytest.param(
            [kept()], [Taint("a", "v", NO_EXECUTE)], [kept("v", 10, NOW)], id="a change of the value keeps the window"
        ),
        pytest.param(
            [kept(added=5)],
            [Taint("a", "", NO_EXECUTE, 6)],
            [kept("", NOW, NOW, 6)],
            id="later timeAdded: a removal was missed",
        ),
        pytest.param([kept(added=5)], [Taint("a", "", NO_EXECUTE, 5)], [kept(added=5)], id="same timeAdded"),
        pytest.param([kept(added=5)], [Taint("a", "", NO_EXECUTE, 4)], [kept(added=4)], id="earlier timeAdded"),
        pytest.param([kept()], [Taint("a", "", NO_EXECUTE, 6)], [kept(added=6)], id="timeAdded appears"),
        pytest.param([kept(added=5)], [A], [kept(added=5)], id="timeAdded vanishes, what was seen last stays seen"),
        pytest.param(
            [kept(), TaintState(Taint("b", "", NO_EXECUTE), 20, 20, None)],
            [Taint("b", "", NO_EXECUTE), Taint("c", "", NO_EXECUTE), A],
            [
                TaintState(Taint("b", "", NO_EXECUTE), 20, 20, None),
                TaintState(Taint("c", "", NO_EXECUTE), NOW, NOW, None),
                kept(),
            ],
            id="node order is that of the object",
        ),
        pytest.param(
            [kept("x"), kept("y", 20, 20)],
            [Taint("a", "y", NO_EXECUTE), Taint("a", "x", NO_EXECUTE)],
            [kept("y", 20, 20), kept("x")],
            id="a key listed twice, which the API server would not accept",
        ),
    ],
)
def test_taints_keep_their_beginnings(known: list[TaintState], seen: list[Taint], result: list[TaintState]) -> None:
    assert advance_taints(known, seen, NOW) == tuple(result)


def pod_of(*, since: int, edited: int) -> PodState:
    return PodState(
        uid="uid", address="ns/name", version=1, tolerations=(), since_us=since, tolerations_since_us=edited
    )


@pytest.mark.parametrize(("taint_since", "pod_since", "start"), [(10, 20, 20), (20, 10, 20), (10, 10, 10)])
def test_window_opens_at_the_later_of_the_two(taint_since: int, pod_since: int, start: int) -> None:
    pod = pod_of(since=pod_since, edited=pod_since)
    assert window_start_us(kept(since=taint_since, value_since=taint_since), pod) == start


@pytest.mark.parametrize("latest", range(4))
def test_untolerated_since_the_last_of_four_facts(latest: int) -> None:
    facts = [10, 10, 10, 10]
    facts[latest] = 50
    taint_since, value_since, pod_since, edited = facts
    pod = pod_of(since=pod_since, edited=edited)
    assert untolerated_since_us(kept(since=taint_since, value_since=value_since), pod) == 50


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "y"])
TAINTS = st.builds(
    Taint, KEYS, VALUES, st.sampled_from([NO_EXECUTE, NO_EXECUTE, NO_SCHEDULE]), st.sampled_from([None, 1, 2])
)


def taken_one_by_one(known: list[TaintState], seen: list[Taint]) -> list[TaintState | None]:
    """Which known taint each seen one continues, by looking through all of them each time."""
    left, found = list(known), []
    for taint in seen:
        same = [state for state in left if state.taint.key == taint.key]
        best = next((state for state in same if state.taint.value == taint.value), same[0] if same else None)
        if best is not None:
            left.remove(best)
        found.append(best)
    return found


@given(st.lists(TAINTS, max_size=8), st.lists(TAINTS, max_size=8))
def test_each_taint_continues_the_one_a_full_scan_finds(before: list[Taint], seen: list[Taint]) -> None:
    known = [
        TaintState(Taint(taint.key, taint.value, NO_EXECUTE), since, since, taint.time_added_us)
        for since, taint in enumerate(before)
    ]
    seen = [taint for taint in seen if taint.effect == NO_EXECUTE]
    expected = taken_one_by_one(known, seen)
    for state, continued, taint in zip(advance_taints(known, seen, NOW), expected, seen, strict=True):
        assert advance_taints([] if continued is None else [continued], [taint], NOW) == (state,)
