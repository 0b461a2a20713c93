"""The heap of wake-ups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from evictstream.streams.engine.core.timers import LEAN_FLOOR, TimerHeap, Wakeup
from tests.harness.examples import examples


def drain(heap: TimerHeap, now_us: int) -> list[Wakeup]:
    found = []
    while (wakeup := heap.pop_due(now_us)) is not None:
        found.append(wakeup)
    return found


def test_due_wakeups_come_in_time_order_and_only_when_due() -> None:
    heap = TimerHeap(list)
    for at_us in (30, 10, 20, 40):
        heap.push((at_us, b"lab/n", str(at_us)))
    assert heap.next_at_us() == 10
    assert [wakeup[0] for wakeup in drain(heap, 30)] == [10, 20, 30]
    assert heap.next_at_us() == 40
    assert drain(heap, 39) == []


def test_an_empty_heap_is_never_due() -> None:
    heap = TimerHeap(list)
    assert heap.next_at_us() is None
    assert heap.pop_due(10**18) is None


def test_wakeups_in_the_middle_of_a_step_come_after_it() -> None:
    heap = TimerHeap(list)
    for at_us, node in ((10, b"lab/n"), (20, b"lab/m")):
        heap.push((at_us, node, "uid"))
    heap.hold(b"lab/n")
    due = drain(heap, 30)
    assert [heap.keeps(wakeup) for wakeup in due] == [True, False]
    assert heap.next_at_us() is None, "else the timer service would take it again and again"
    heap.release()
    assert drain(heap, 30) == due[:1]
    assert not heap.keeps(due[0])


@pytest.mark.slow
def test_flapping_does_not_grow_the_heap_without_bound() -> None:
    """A timer that is moved a million times leaves old wake-ups behind; a heap made from the truth drops them."""
    heap = TimerHeap(lambda: [[(10**9, b"lab/n", "the-one")]])
    for number in range(1_000_000):
        heap.push((number, b"lab/n", "the-one"))
        assert len(heap) <= LEAN_FLOOR + 3
    heap.rebuild()
    assert len(heap) == 1


def test_a_rebuild_keeps_what_is_wanted() -> None:
    truth: list[Wakeup] = [(number, b"lab/n", f"p{number}") for number in range(LEAN_FLOOR)]
    heap = TimerHeap(lambda: [truth])
    heap.rebuild()
    assert drain(heap, LEAN_FLOOR) == truth


def test_a_doubled_heap_is_replaced_in_slices() -> None:
    """All at once it would stop the event loop: 300 ms with a hundred thousand wake-ups."""
    taken = 0

    def truth() -> Iterator[list[Wakeup]]:
        nonlocal taken
        for number in range(2 * LEAN_FLOOR):
            taken += 1
            yield [(number, b"lab/n", f"p{number}")]

    heap = TimerHeap(truth)
    heap.rebuild()
    for number in range(2 * LEAN_FLOOR + 1):
        heap.push((number, b"lab/n", "old"))
    for number in range(2 * LEAN_FLOOR):
        before = taken
        heap.push((0, b"lab/n", f"new{number}"))
        assert taken == before + 1


def test_due_wakeups_can_be_seen_without_taking_them() -> None:
    heap = TimerHeap(list)
    for at_us in (30, 10, 20, 40, 35, 15):
        heap.push((at_us, b"lab/n", str(at_us)))
    assert sorted(at_us for at_us, _, _ in heap.due(30, 100)) == [10, 15, 20, 30]
    assert list(heap.due(9, 100)) == []
    assert len(list(heap.due(40, 3))) <= 3
    assert len(heap) == 6


class Wanting(RuleBasedStateMachine):
    """Wake-ups that come, move and go, beside a table of what is wanted; the heap is replaced every few steps."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: dict[bytes, dict[str, int]] = {}
        self.now_us = 0
        self.heap = TimerHeap(
            lambda: ([(at_us, key, uid) for uid, at_us in self.wanted[key].items()] for key in list(self.wanted)),
            lean_floor=4,
        )
        self.heap.rebuild()

    @rule(node=st.sampled_from([b"a", b"b", b"c", b"d"]), uid=st.sampled_from("xyz"), wait_us=st.integers(0, 20))
    def want(self, node: bytes, uid: str, wait_us: int) -> None:
        self.wanted.setdefault(node, {})[uid] = self.now_us + wait_us
        self.heap.push((self.now_us + wait_us, node, uid))

    @rule(node=st.sampled_from([b"a", b"b", b"c", b"d"]), uid=st.sampled_from("xyz"))
    def want_no_more(self, node: bytes, uid: str) -> None:
        self.wanted.get(node, {}).pop(uid, None)

    @rule(passed_us=st.integers(1, 10), limit=st.integers(1, 6))
    def fire_some(self, passed_us: int, limit: int) -> None:
        self.now_us += passed_us
        last_us = 0
        for _ in range(limit):
            wakeup = self.heap.pop_due(self.now_us)
            if wakeup is None:
                break
            at_us, node, uid = wakeup
            assert last_us <= at_us <= self.now_us
            last_us = at_us
            if self.wanted.get(node, {}).get(uid) == at_us:
                del self.wanted[node][uid]

    @rule()
    def take_over(self) -> None:
        self.heap.rebuild()

    @invariant()
    def nothing_wanted_is_missing(self) -> None:
        due = set(self.heap.due(10**9, 10**6))
        wanted = {(at_us, node, uid) for node, uids in self.wanted.items() for uid, at_us in uids.items()}
        assert wanted <= due
        first = self.heap.next_at_us()
        assert first == min((at_us for at_us, _, _ in due), default=None)

    @invariant()
    def what_is_outdated_stays_bounded(self) -> None:
        most_new = 4 * 3 + 4 + 1  # what is wanted, and a push for each node and one to end
        assert len(self.heap) <= (2 * most_new + 1) + most_new


@pytest.mark.slow
def test_whatever_comes_moves_or_goes_nothing_wanted_is_missing() -> None:
    run_state_machine_as_test(
        Wanting, settings=settings(max_examples=examples(200), stateful_step_count=60, deadline=None)
    )
