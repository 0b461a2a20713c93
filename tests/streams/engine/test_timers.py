"""The heap of wake-ups."""

from __future__ import annotations

from streams.engine.timers import LEAN_FLOOR, TimerHeap, Wakeup


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


def test_flapping_does_not_grow_the_heap_without_bound() -> None:
    """A timer that is moved a million times leaves old wake-ups behind; a rebuild from the truth drops them."""
    truth: list[Wakeup] = [(10**9, b"lab/n", "the-one")]
    heap = TimerHeap(lambda: truth)
    for number in range(1_000_000):
        heap.push((number, b"lab/n", "the-one"))
        assert len(heap) <= LEAN_FLOOR + 1
    heap.rebuild()
    assert len(heap) == 1


def test_a_rebuild_keeps_what_is_wanted() -> None:
    truth: list[Wakeup] = [(number, b"lab/n", f"p{number}") for number in range(LEAN_FLOOR)]
    heap = TimerHeap(lambda: truth)
    heap.rebuild()
    assert drain(heap, LEAN_FLOOR) == truth


def test_due_wakeups_can_be_seen_without_taking_them() -> None:
    heap = TimerHeap(list)
    for at_us in (30, 10, 20, 40, 35, 15):
        heap.push((at_us, b"lab/n", str(at_us)))
    assert sorted(at_us for at_us, _, _ in heap.due(30, 100)) == [10, 15, 20, 30]
    assert list(heap.due(9, 100)) == []
    assert len(list(heap.due(40, 3))) <= 3
    assert len(heap) == 6
