"""A judge that asks for promptness passes what is right, and names each way to be wrong.

As the demo asks for it: everything within 5 s, no `Evict` more than 1 s after its reason went.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import pytest

from evictstream.kit.demo.judgement import EARLY_US, PATIENCE_US, VIEW_US, oracle_limits
from evictstream.kit.oracle import InputRecord, Promptness, Stretch, judge
from evictstream.kit.oracle.decision import MayStay, MustLeave
from evictstream.models.instants import instant_text
from evictstream.streams.settings import Settings
from tests.harness.incidents import INCIDENTS, events_of
from tests.kit.demo.samples import Event, at, command, node, pod, taint, tolerates, us
from tests.kit.oracle.plan import PodPlan
from tests.kit.oracle.written import Seen, answer, plan_of, records_of, seen, told

INCIDENT = INCIDENTS / "zone-outage-part-recovers-no-evictor"

# The pod tolerates the taint, which comes at 10 s, for 20 s; in the second story it is taken back at 25 s.
STAYS = [node(0), pod(1, tolerates(seconds=20)), node(10, taint())]
GOES = [*STAYS, node(25)]


def rules(
    events: Sequence[Event],
    *commands: Seen,
    answers: Sequence[InputRecord] = (),
    excused: Sequence[Stretch] = (),
    end_us: int = us(60),
) -> set[str]:
    violations = judge(
        [*records_of(events), *answers],
        told(commands),
        ended_at_us=end_us,
        partitions=1,
        limits=oracle_limits(Settings()),
        early_us=EARLY_US,
        promptness=Promptness(late_us=PATIENCE_US, view_us=VIEW_US, excused=tuple(excused)),
    )
    return {violation.rule for violation in violations}


def test_right_commands_pass() -> None:
    assert rules(STAYS, seen(10.01, "Schedule"), seen(30.004, "Evict")) == set()
    assert rules(GOES, seen(10.01, "Schedule"), seen(25.01, "Cancel")) == set()


@pytest.mark.parametrize(
    ("events", "commands", "rule"),
    [
        pytest.param(STAYS, [], "not announced", id="nothing came"),
        pytest.param(STAYS, [seen(30, "Evict")], "not announced", id="not announced"),
        pytest.param(STAYS, [seen(10, "Schedule"), seen(29.9, "Evict")], "early", id="early"),
        pytest.param(STAYS, [seen(10, "Schedule"), seen(36, "Evict")], "late", id="late"),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", deadline=29)],
            "unfounded",
            id="wrong deadline",
        ),
        pytest.param(STAYS, [seen(10, "Schedule", deadline=40), seen(30, "Evict")], "unfounded", id="wrong schedule"),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", key="other")],
            "unfounded",
            id="wrong taint",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", verdict="Untolerated")],
            "unfounded",
            id="wrong verdict",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict"), seen(30.5, "Evict", attempt=2)],
            "repeated too soon",
            id="twice",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", attempt=2)],
            "does not grow",
            id="wrong attempt",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict"), seen(33, "Cancel")],
            "unfounded",
            id="after the end",
        ),
        pytest.param(STAYS, [seen(10, "Schedule"), seen(20, "Cancel")], "unfounded", id="cancelled"),
        pytest.param(GOES, [seen(10, "Schedule")], "not cancelled", id="not cancelled"),
        pytest.param(GOES, [seen(10, "Schedule"), seen(30, "Evict")], "not cancelled", id="evicted nevertheless"),
        pytest.param(
            GOES,
            [seen(10, "Schedule"), seen(25, "Cancel", verdict="PodGone")],
            "unfounded",
            id="wrong reason",
        ),
        pytest.param(GOES, [seen(25, "Cancel")], "not announced", id="cancel out of nothing"),
        pytest.param(
            GOES,
            [seen(10, "Schedule"), seen(25, "Cancel"), seen(25.1, "Cancel")],
            "after the end",
            id="cancelled twice",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule"), seen(30, "Evict", evictionId="e2")],
            "unfounded",
            id="id changes",
        ),
        pytest.param(
            STAYS,
            [seen(10, "Schedule", revision=3), seen(30, "Evict", revision=2)],
            "does not grow",
            id="revision goes back",
        ),
        pytest.param(
            GOES,
            [seen(10, "Schedule"), seen(25, "Cancel"), seen(26, "Evict", podUid="stranger", evictionId="e9")],
            "unfounded",
            id="stranger",
        ),
    ],
)
def test_wrong_commands_are_named(events: list[Event], commands: list[Seen], rule: str) -> None:
    assert rule in rules(events, *commands)


def test_failed_attempt_may_be_repeated() -> None:
    commands = [seen(10, "Schedule"), seen(30, "Evict"), seen(31.5, "Evict", attempt=2)]
    assert rules(STAYS, *commands, answers=[answer(30.1, "Failed")]) == set()
    assert rules(STAYS, *commands) == {"repeated too soon"}


def test_failed_attempt_is_repeated_in_time() -> None:
    commands = [seen(10, "Schedule"), seen(30, "Evict"), seen(37, "Evict", attempt=2)]
    assert rules(STAYS, *commands, answers=[answer(30.1, "Failed")]) == {"late"}
    assert rules(STAYS, *commands[:2], answers=[answer(30.1, "Failed")]) == {"not repeated"}


def test_eviction_that_failed_is_taken_back_with_its_reason() -> None:
    events, failed = [*STAYS, node(32)], [answer(30.1, "Failed")]
    announced, tried = seen(10, "Schedule"), seen(30, "Evict")
    assert rules(events, announced, tried, seen(32, "Cancel", attempt=1), answers=failed) == set()
    assert rules(events, announced, tried, answers=failed) == {"not cancelled"}


def test_excused_stretch_delays_but_excuses_no_wrong_command() -> None:
    excused = [(us(20), us(40))]
    late = [seen(10, "Schedule"), seen(41, "Evict")]
    assert rules(STAYS, *late) == {"late"}
    assert rules(STAYS, *late, excused=excused) == set()
    # What was due only meanwhile need not be issued, but must be taken back once somebody is there.
    events = [*STAYS, node(35)]
    assert rules(events, seen(10, "Schedule"), seen(41, "Cancel"), excused=excused) == set()
    assert rules(events, seen(10, "Schedule"), excused=excused) != set()
    assert rules(events, seen(10, "Schedule"), seen(41, "Evict"), excused=excused) != set()


def test_announcements_and_cancellations_are_prompt() -> None:
    assert rules(GOES, seen(16, "Schedule"), seen(25, "Cancel")) == {"late"}
    assert rules(GOES, seen(10, "Schedule"), seen(31, "Cancel")) == {"late"}
    assert rules(GOES, seen(10, "Schedule"), seen(31, "Cancel"), excused=[(us(24), us(29))]) == set()


def test_a_state_that_lasts_is_not_passed_over() -> None:
    """Node and pod may be taken in in any order, but neither long after the other."""
    assert rules(GOES) == {"not announced"}
    assert rules([*STAYS, node(14.9)]) == {"not announced"}


def test_edits_grant_no_time_to_what_stays_owed() -> None:
    """An edit of the tolerations each three seconds, none of which lets the pod stay."""
    edits = [pod(13 + 3 * number, tolerates("other", seconds=number)) for number in range(4)]
    events = [node(0), pod(1), node(10, taint()), *edits]
    evicted = seen(23, "Evict", 22, verdict="Untolerated")
    assert rules(events, evicted, end_us=us(40)) != set()
    assert rules(events, evicted, end_us=us(40), excused=[(us(11), us(20))]) == set()


def test_untolerated_is_due_from_the_last_fact_behind_it() -> None:
    events = [node(0), pod(1), node(10, taint(value="a")), node(11, taint(value="b"))]
    for deadline, is_right in ((10, False), (11, True), (11.5, False)):
        evicted = seen(13, "Evict", deadline, verdict="Untolerated")
        assert (rules(events, evicted, end_us=us(40)) == set()) is is_right


def test_pod_may_terminate_for_an_eviction_withdrawn_that_moment() -> None:
    """Evicted, taint off and on again at once: the new eviction ends because the first one worked."""
    leaving = pod(30.028, tolerates(seconds=20), deletionTimestamp=at(30))
    again: Event = {"deadline": 50.02, "windowStart": at(30.02), "evictionId": "e2"}
    commands = [
        seen(10, "Schedule"),
        seen(30, "Evict"),
        seen(30.015, "Cancel", attempt=1),
        seen(30.025, "Schedule", **again),
        seen(30.03, "Cancel", **again, verdict="PodTerminating"),
    ]
    assert rules([*STAYS, node(30.01), node(30.02, taint()), leaving], *commands) == set()


def perfect(plans: dict[str, PodPlan]) -> list[Seen]:
    """What a service would say that knows the oracle's mind and needs 2 ms."""
    return [seen for one in plans.values() for seen in perfect_about(one)]


def perfect_about(one: PodPlan) -> list[Seen]:
    found: list[Seen] = []
    number, revision, opened = 0, 1, None
    evicted_us = one.course().evicted_us

    def say(action: str, at_us: int, due: MustLeave, verdict: str) -> None:
        about = {
            "podUid": one.uid,
            "pod": one.pod,
            "node": one.node,
            "namespace": one.namespace,
            "evictionId": f"{one.uid}/{number}",
            "revision": revision,
            "deadline": instant_text(due.deadline_us),
            "windowStart": instant_text(due.window_us),
            "issuedAt": instant_text(at_us + 1500),
        }
        found.append(Seen(at_us + 2000, command(action, 0, **about, key=due.taint, verdict=verdict)))

    for span in one.spans:
        if isinstance(span.decision, MayStay):
            if opened is not None:
                kept = "Tolerated" if opened.taint in span.decision.keys else "TaintRemoved"
                why = span.decision.why
                say("Cancel", span.since_us, opened, kept if kept in why else min(why))
                opened, number, revision = None, number + 1, 1
            continue
        if span.is_announced:
            revision += opened is not None
            opened = span.decision
            say("Schedule", span.since_us, opened, opened.verdict)
        if span.due_us is not None and span.due_us == evicted_us:
            revision += opened is not None and opened.deadline_us != span.decision.deadline_us
            say("Evict", span.due_us, span.decision, span.decision.verdict)
            break
    return found


def ends(events: Sequence[Event], commands: Sequence[Seen]) -> list[Event]:
    """The pods' ends, which follow from evictions."""
    newest = {event["object"]["metadata"]["uid"]: event for event in events}
    found = []
    for one in commands:
        if one.command["action"] == "Evict":
            end = copy.deepcopy(newest[one.command["podUid"]]) | {"type": "DELETED"}
            end["object"]["metadata"]["resourceVersion"] = str(10**9)
            found.append(end | {"observedAt": instant_text(one.at_us + 100_000)})
    return found


@pytest.fixture(scope="module")
def right() -> tuple[list[Event], list[Seen]]:
    """All events of an incident, and the commands that are right for them."""
    recorded = events_of(INCIDENT)
    commands = perfect(plan_of(recorded))
    events = sorted([*recorded, *ends(recorded, commands)], key=lambda event: str(event["observedAt"]))
    assert rules(events, *commands, end_us=end_of(commands)) == set()
    return events, commands


def end_of(commands: Sequence[Seen]) -> int:
    return max(one.at_us for one in commands) + 60_000_000


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
def test_one_wrong_command_among_all_of_an_incident(
    action: str, tamper: Callable[[list[Seen], int], object], right: tuple[list[Event], list[Seen]]
) -> None:
    events, commands = right
    wrong = copy.deepcopy(commands)
    tamper(wrong, max(i for i, one in enumerate(wrong) if one.command["action"] == action))
    assert rules(events, *wrong, end_us=end_of(commands)) != set()
