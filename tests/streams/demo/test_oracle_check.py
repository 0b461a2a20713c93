"""`check` passes what is right, and says what is wrong with each way to be wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evictstream.models.instants import instant_text
from evictstream.streams.demo.oracle import Seen, check, expected
from evictstream.streams.demo.recording import read_recording
from tests.streams.demo.samples import Event, command, node, pod, taint, tolerates, us

INCIDENT = Path(__file__).parents[3] / "examples" / "incidents" / "zone-outage-part-recovers-no-evictor"

# The pod tolerates the taint, which comes at 10 s, for 20 s; in the second story it is taken back at 25 s.
STAYS = [node(0), pod(1, tolerates(seconds=20)), node(10, taint())]
GOES = [*STAYS, node(25)]


def seen(seconds: float, action: str, deadline: float = 30, **more: Any) -> Seen:
    return Seen(us(seconds), command(action, deadline, **more))


def problems(events: list[Event], *commands: Seen, **more: Any) -> list[str]:
    return check(expected(events), commands, end_us=us(60), **more)


def test_right_commands_pass() -> None:
    assert problems(STAYS, seen(10.01, "Schedule"), seen(30.004, "Evict")) == []
    assert problems(GOES, seen(10.01, "Schedule"), seen(25.01, "Cancel")) == []


@pytest.mark.parametrize(
    ("events", "commands", "sentence"),
    [
        pytest.param(STAYS, [], "was not evicted although it was due", id="nothing came"),
        pytest.param(STAYS, [seen(30, "Evict")], "was not announced", id="not announced"),
        pytest.param(STAYS, [seen(10, "Schedule"), seen(29.9, "Evict")], "0.100 s too early", id="early"),
        pytest.param(STAYS, [seen(10, "Schedule"), seen(36, "Evict")], "was evicted 6.000 s late", id="late"),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", deadline=29)],
            "names a deadline, a verdict or a taint",
            id="wrong deadline",
        ),
        pytest.param(
            STAYS, [seen(10, "Schedule", deadline=40), seen(30, "Evict")], "announces a deadline", id="wrong schedule"
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", key="other")],
            "names a deadline, a verdict or a taint",
            id="wrong taint",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", verdict="Untolerated")],
            "names a deadline, a verdict or a taint",
            id="wrong verdict",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict"), seen(30.5, "Evict", attempt=2)],
            "repeats an attempt that had not failed",
            id="twice",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", attempt=2)],
            "is attempt 2, not 1",
            id="wrong attempt",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict"), seen(33, "Cancel")],
            "came 3.000 s after the pod had been evicted",
            id="after the end",
        ),
        pytest.param(
            STAYS, [seen(10, "Schedule"), seen(20, "Cancel")], "came while the pod had to leave", id="cancelled"
        ),
        pytest.param(GOES, [seen(10, "Schedule")], "was not cancelled", id="not cancelled"),
        pytest.param(
            GOES, [seen(10, "Schedule"), seen(30, "Evict")], "came while nothing was due", id="evicted nevertheless"
        ),
        pytest.param(
            GOES,
            [seen(10, "Schedule"), seen(25, "Cancel", verdict="PodGone")],
            "says PodGone, not TaintRemoved",
            id="wrong reason",
        ),
        pytest.param(
            GOES, [seen(25, "Cancel")], "takes back what was never announced or issued", id="cancel out of nothing"
        ),
        pytest.param(
            GOES,
            [seen(10, "Schedule"), seen(25, "Cancel"), seen(25.1, "Cancel")],
            "came after the same eviction's Cancel",
            id="cancelled twice",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", evictionId="e2")],
            "begins another eviction while",
            id="id changes",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule", revision=3), seen(30, "Evict", revision=2)],
            "has revision 2 after 3",
            id="revision goes back",
        ),
        pytest.param(
            GOES,
            [seen(10, "Schedule"), seen(25, "Cancel"), seen(26, "Evict", podUid="stranger", evictionId="e9")],
            "about a pod that was never there",
            id="stranger",
        ),
    ],
)
def test_wrong_commands_fail(events: list[Event], commands: list[Seen], sentence: str) -> None:
    assert any(sentence in problem for problem in problems(events, *commands)), problems(events, *commands)


def test_failed_attempt_may_be_repeated() -> None:
    first, second = seen(30, "Evict"), seen(31.5, "Evict", attempt=2)
    failed = frozenset({("e1", 1)})
    assert problems(STAYS, seen(10, "Schedule"), first, second, failed=failed) == []


def test_eviction_that_failed_is_taken_back_with_its_reason() -> None:
    events = [*STAYS, node(32)]
    announced, tried = seen(10, "Schedule"), seen(30, "Evict")
    failed = frozenset({("e1", 1)})
    assert problems(events, announced, tried, seen(32, "Cancel", attempt=1), failed=failed) == []
    assert problems(events, announced, tried, failed=failed) == [
        "shop/p-1 on n-1: was not cancelled when nothing was due any more (TaintRemoved)"
    ]


def test_outage_delays_but_excuses_no_wrong_command() -> None:
    outage = (us(20), us(40))
    late = [seen(10, "Schedule"), seen(41, "Evict")]
    assert problems(STAYS, *late) != []
    assert problems(STAYS, *late, outages=[outage]) == []
    # What was due only meanwhile need not be issued, but must be taken back once somebody is there.
    events = [*STAYS, node(35)]
    assert problems(events, seen(10, "Schedule"), seen(41, "Cancel"), outages=[outage]) == []
    assert problems(events, seen(10, "Schedule"), outages=[outage]) != []
    assert problems(events, seen(10, "Schedule"), seen(41, "Evict"), outages=[outage]) != []


def test_pod_may_terminate_for_an_eviction_withdrawn_that_moment() -> None:
    """Evicted, taint off and on again at once: the new eviction ends because the first one worked."""
    events = [*STAYS, node(30.01), node(30.02, taint())]
    commands = [
        seen(10, "Schedule"),
        seen(30, "Evict"),
        seen(30.015, "Cancel", attempt=1),
        seen(30.025, "Schedule", deadline=50.02, evictionId="e2"),
        seen(30.03, "Cancel", deadline=50.02, evictionId="e2", verdict="PodTerminating"),
    ]
    assert problems(events, *commands) == []


def perfect(events: tuple[Event, ...]) -> list[Seen]:
    """What a service would say that knows the oracle's mind and needs 2 ms."""
    found = []
    for uid, expectation in expected(events).items():
        course = expectation.course()
        base = {"podUid": uid, "evictionId": uid, "pod": expectation.pod, "node": expectation.node}
        announced = False
        for span in expectation.spans:
            about = base | {"deadline": instant_text(span.deadline_us or 0), "key": next(iter(span.taints), "gone")}
            why = {"verdict": min(span.why, default="")}
            if span.is_announced:
                found.append(Seen(span.since_us + 2000, command("Schedule", 0, **about, **why)))
                announced = True
            elif span.deadline_us is None and announced:
                found.append(Seen(span.since_us + 2000, command("Cancel", 0, **about, **why)))
                break
            if span.due_us is not None and span.due_us == course.evicted_us:
                found.append(Seen(span.due_us + 2000, command("Evict", 0, **about, **why)))
                break
    return found


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(lambda commands, index: commands.pop(index), id="one missing"),
        pytest.param(
            lambda commands, index: commands[index].command.update(podUid=commands[0].command["podUid"]),
            id="about another pod",
        ),
        pytest.param(
            lambda commands, index: commands[index].command.update(deadline="2026-11-21T11:19:00Z"),
            id="another deadline",
        ),
    ],
)
@pytest.mark.parametrize("action", ["Schedule", "Evict"])
def test_one_wrong_command_among_all_of_an_incident(action: str, tamper: Callable[[list[Seen], int], object]) -> None:
    events = read_recording(INCIDENT).events
    right = perfect(events)
    end_us = max(one.at_us for one in right) + 60_000_000
    assert check(expected(events), right, end_us=end_us) == []
    wrong = copy.deepcopy(right)
    tamper(wrong, max(i for i, one in enumerate(wrong) if one.command["action"] == action))
    assert check(expected(events), wrong, end_us=end_us) != []
