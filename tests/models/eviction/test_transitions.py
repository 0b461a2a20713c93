"""semantics.md 12.6 as a table: an eviction becomes what the table allows, and nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from evictstream.models.eviction import Due, Eviction, EvictionState, PodState, Verdict
from evictstream.models.eviction.transitions import OUTSTANDING, TRANSITIONS, Transition, TransitionError, move
from tests.models.eviction.scene import A, us

STATES = (None, *EvictionState)
DUE = Due(deadline_us=us(0), verdict=Verdict.UNTOLERATED, taint=A, toleration=None, window_start_us=us(0))


def eviction(state: EvictionState | None, **fields: Any) -> Eviction | None:
    """The third eviction of a pod, after two attempts if it is past its schedule."""
    if state is None:
        return None
    attempted = {"attempt": 2, "issued_at_us": us(1)} if state is not EvictionState.SCHEDULED else {}
    waiting = {"next_attempt_us": us(30)} if state in OUTSTANDING else {}
    return Eviction(**{"state": state, "ordinal": 2, "due": DUE, "revision": 2, **attempted, **waiting, **fields})


def pod_with(open_one: Eviction | None) -> PodState:
    return PodState(
        uid="pod-1",
        address="payments/web-0",
        version=1,
        tolerations=(),
        since_us=us(0),
        tolerations_since_us=us(0),
        opened=2 if open_one is None else 3,
        eviction=open_one,
    )


@pytest.mark.parametrize(("begin", "end"), list(itertools.product(STATES, STATES)))
def test_an_eviction_becomes_only_what_the_table_allows(begin: EvictionState | None, end: EvictionState | None) -> None:
    before, after = eviction(begin, attempt=0), eviction(end)
    pod = pod_with(before)
    if (begin, end) in TRANSITIONS:
        assert move(pod, Transition(before, after)) is (before if after is None else after)
        assert (pod.eviction, pod.opened) == (after, 3)
    else:
        with pytest.raises(TransitionError, match="pod-1"):
            move(pod, Transition(before, after))
        assert (pod.eviction, pod.opened) == (before, 2 if before is None else 3)


@pytest.mark.parametrize(
    ("begin", "after"),
    [
        (None, eviction(EvictionState.SCHEDULED, ordinal=1)),
        (EvictionState.SCHEDULED, eviction(EvictionState.SCHEDULED, ordinal=3)),
        (EvictionState.SCHEDULED, eviction(EvictionState.SCHEDULED, revision=1)),
        (EvictionState.ISSUED, eviction(EvictionState.RETRYING, attempt=1)),
        (EvictionState.ISSUED, eviction(EvictionState.RETRYING, next_attempt_us=None)),
        (EvictionState.ISSUED, eviction(EvictionState.SCHEDULED, attempt=2, next_attempt_us=us(30))),
        (EvictionState.ISSUED, eviction(EvictionState.DONE, next_attempt_us=us(30))),
    ],
    ids=["used id", "other id", "old revision", "old attempt", "no next attempt", "withdrawn but due", "done but due"],
)
def test_an_eviction_becomes_nothing_unsound(begin: EvictionState | None, after: Eviction) -> None:
    before = eviction(begin)
    pod = pod_with(before)
    with pytest.raises(TransitionError):
        move(pod, Transition(before, after))
    assert pod.eviction is before


def test_a_transition_of_an_earlier_state_is_refused() -> None:
    before, now = eviction(EvictionState.ISSUED), eviction(EvictionState.RETRYING)
    with pytest.raises(TransitionError):
        move(pod_with(now), Transition(before, eviction(EvictionState.ISSUED)))


def test_an_eviction_is_never_changed_in_place() -> None:
    open_one: Any = eviction(EvictionState.SCHEDULED)
    with pytest.raises(AttributeError):
        open_one.state = EvictionState.ISSUED
    assert msgspec.structs.replace(open_one, revision=3).ordinal == open_one.ordinal
