from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.demo.judgement import plan_of
from evictstream.kit.demo.summary import Counts, Kill, Summary, count
from evictstream.kit.demo.topics import Seen
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import command, node, pod, taint, tolerates, us


def seen(seconds: float, action: str, eviction: str, deadline: float, **more: object) -> Seen:
    return Seen(us(seconds), command(action, deadline, evictionId=eviction, **more))


COMMANDS = [
    seen(0, "Schedule", "a", 10),
    seen(0, "Schedule", "b", 10),
    seen(1, "Schedule", "b", 20, revision=2),
    seen(10.004, "Evict", "a", 10),
    seen(11.5, "Evict", "a", 10, attempt=2),
    seen(15, "Schedule", "c", 40),
    seen(16, "Cancel", "c", 40),
    seen(26, "Evict", "b", 20),
    seen(30.01, "Evict", "d", 30),
]
OUTAGE = (us(18), us(25))


def test_commands_are_counted_by_eviction() -> None:
    counts = count(COMMANDS, [OUTAGE], {})
    assert (counts.scheduled, counts.moved, counts.cancelled, counts.issued, counts.repeated) == (3, 1, 1, 3, 1)


def test_lateness_is_seconds_from_deadline_to_the_first_evict() -> None:
    counts = count(reversed(COMMANDS), [OUTAGE], {})
    assert counts.lateness == pytest.approx((0.004, 6.0, 0.01))
    assert counts.lateness_undisturbed == pytest.approx((0.004, 0.01))


def test_nothing_is_late_before_its_deadline_was_known() -> None:
    """The pod's tolerations were edited at second 20, to a time that was over at second 10."""
    pods = [pod(0, tolerates(seconds=100), uid="u"), pod(20, tolerates(seconds=10), uid="u")]
    plans = plan_of([node(0, taint()), *pods], Settings())
    assert count([seen(20.5, "Evict", "a", 10, podUid="u")], [], plans).lateness == (0.5,)
    assert count([seen(20.5, "Evict", "a", 10, podUid="u")], [], {}).lateness == (10.5,)


KILL = Kill(worker=2, pid=77, at_us=us(18), partitions=(1, 3), pending=5, heir=1, taken_over_us=us(25))
SUMMARY = Summary(
    incident="outage",
    kafka="a Kafka",
    pods=9,
    counts=count(COMMANDS, [OUTAGE], {}),
    spared=2,
    kill=KILL,
    problems=(),
    logs=None,
)


def test_good_end() -> None:
    text = "\n".join(SUMMARY.lines())
    assert "scheduled      3" in text
    assert "issued         3  evictions, 1 of them again after a failed delete" in text
    assert "p50 10 ms, max 6.00 s" in text
    assert "max 10 ms without the 1 that fell into the takeover" in text
    assert "kills      1, survived: worker 1 took over in 7.0 s" in text
    assert "from worker 2 (process 77, SIGKILL, 5 deadlines pending)" in text
    assert "2 pods stayed" in text
    assert "The oracle agrees" in text
    assert SUMMARY.as_json() | {"kafka": ""} == {
        "incident": "outage",
        "kafka": "",
        "pods": 9,
        "scheduled": 3,
        "moved": 1,
        "cancelled": 1,
        "issued": 3,
        "repeated": 1,
        "spared": 2,
        "latenessP50Seconds": 0.01,
        "latenessMaxSeconds": 6.0,
        "latenessMaxOutsideTakeoverSeconds": 0.01,
        "kills": 1,
        "killsSurvived": 1,
        "takeoverSeconds": 7.0,
        "problems": [],
        "logs": None,
    }


def test_bad_end_names_every_problem_and_the_logs() -> None:
    summary = dataclasses.replace(SUMMARY, problems=("one", "two"), logs="/tmp/x")  # noqa: S108 - only a text
    text = "\n".join(summary.lines())
    assert "2 problem(s):\n  one\n  two\nthe workers' logs are in /tmp/x" in text
    assert "agrees" not in text


def test_hundreds_of_problems_are_not_all_printed() -> None:
    summary = dataclasses.replace(SUMMARY, problems=tuple(f"problem {number}" for number in range(300)))
    assert len(summary.lines()) < 40
    assert "  and 280 more; -o json lists all" in summary.lines()
    assert len(summary.as_json()["problems"]) == 300


def test_nothing_happened() -> None:
    empty = Counts()
    summary = dataclasses.replace(SUMMARY, counts=empty, kill=None, spared=0)
    assert "nothing was due" in "\n".join(summary.lines())
    assert "kills      none" in "\n".join(summary.lines())
    assert summary.as_json()["latenessMaxSeconds"] is None


def test_kill_that_nobody_survived() -> None:
    summary = dataclasses.replace(SUMMARY, kill=dataclasses.replace(KILL, heir=None, taken_over_us=None))
    assert "1, not survived: no worker took over" in "\n".join(summary.lines())
    assert summary.as_json()["killsSurvived"] == 0
