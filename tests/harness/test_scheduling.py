"""Tests go to processes of pytest-xdist in their order: long ones one by one, short ones by file."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness.scheduling import FEWEST_WAITING, IN_ONE_PROCESS, SHORT_SECONDS, Scheduling, in_order

WHOLE = min(IN_ONE_PROCESS)
SEVERAL = [f"tests/test_{file}.py::test_{number}" for file in "abc" for number in range(8)]


class Process:
    """What the scheduler knows of a process."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.asked: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.asked += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(tests: list[str]) -> tuple[Scheduling, list[Process]]:
    scheduling = Scheduling(SimpleNamespace(getvalue=lambda _: ["2*popen"], getoption=lambda _: None))
    processes = [Process(), Process()]
    for process in processes:
        scheduling.add_node(process)
        scheduling.add_node_collection(process, tests)
    scheduling.schedule()
    return scheduling, processes


def test_nothing_is_known_yet_so_each_begins_with_few() -> None:
    _, processes = scheduled(SEVERAL)
    assert [process.asked for process in processes] == [[0, 1, 2], [3, 4, 5]]


def test_after_a_long_test_one_more_is_sent() -> None:
    scheduling, (first, _) = scheduled(SEVERAL)
    scheduling.mark_test_complete(first, 0, SHORT_SECONDS)
    assert first.asked == [0, 1, 2, 6]


def test_after_a_short_test_the_whole_file_is_sent() -> None:
    scheduling, (first, second) = scheduled(SEVERAL)
    scheduling.mark_test_complete(first, 0, 0.01)
    assert first.asked == [0, 1, 2, 6, 7]
    scheduling.mark_test_complete(second, 3, 0.01)
    assert second.asked == [3, 4, 5, *range(8, 16)]


def test_a_file_that_shares_stays_together() -> None:
    tests = [*(f"{WHOLE}::test_{number}" for number in range(9)), *SEVERAL]
    _, processes = scheduled(tests)
    assert [process.asked for process in processes] == [[*range(9)], [9, 10, 11]]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 24])
def test_each_test_is_run_once_and_all_processes_end(count: int) -> None:
    scheduling, processes = scheduled(SEVERAL[:count])
    done: list[int] = []
    for turn in range(count):
        process = max(processes, key=lambda one: len(scheduling.node2pending[one]))
        waiting = scheduling.node2pending[process]
        assert len(waiting) > 1 or process.shutting_down, "it would wait for a test behind this one"
        assert len(waiting) >= min(FEWEST_WAITING, count - turn) or not scheduling.pending
        done.append(waiting[0])
        scheduling.mark_test_complete(process, waiting[0], 0.01 if turn % 3 else 1.0)
    assert sorted(done) == list(range(count))
    assert all(process.shutting_down for process in processes) or not count


class Item:
    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid = nodeid
        self._marks = marks

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self._marks else None


def test_tests_that_wait_lie_among_those_that_compute() -> None:
    items: list[Any] = [
        *(Item(test) for test in SEVERAL),
        *(Item(f"tests/test_k.py::test_{number}", "kafka") for number in range(3)),
        Item("tests/test_k.py::test_long", "kafka", "slow"),
        Item("tests/test_z.py::test_long", "slow"),
        *(Item(f"{WHOLE}::test_{number}", *marks) for number, marks in enumerate([(), ("slow",)])),
    ]
    in_order(items)
    files = [
        (file, len(list(found))) for file, found in itertools.groupby(one.nodeid.partition("::")[0] for one in items)
    ]
    k, (a, b, c) = ("tests/test_k.py", 1), [(f"tests/test_{file}.py", 8) for file in "abc"]
    assert files == [(WHOLE, 2), k, ("tests/test_z.py", 1), k, a, k, b, k, c]
    assert items[2].nodeid.endswith("test_long")
