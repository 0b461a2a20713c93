"""Each kind of decision as a sentence, which says what its record says and no more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evictstream.kit.replay.story import SourcedDecision, Teller, story
from evictstream.models.instants import instant_text, instant_us
from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.decision import (
    DECISION_KIND,
    DecisionCause,
    DecisionRecord,
    PolicyClause,
    PreviousDecision,
)
from evictstream.models.messages.vocabulary import (
    API_VERSION,
    CauseKind,
    DecisionKind,
    DecisionWarning,
    EvictionState,
    Outcome,
    Verdict,
)

START, LATER = "2026-11-21T10:00:00.000000Z", "2026-11-21T10:00:20.000000Z"
LAST = "2026-11-21T10:00:30.000000Z"
KEY_FOR_20 = Toleration(key="k", operator="Exists", toleration_seconds=20)


def decision(kind: DecisionKind, **changes: Any) -> DecisionRecord:
    values: dict[str, Any] = {
        "api_version": API_VERSION,
        "kind": DECISION_KIND,
        "decision": kind,
        "verdict": Verdict.TOLERATION_EXPIRES,
        "eviction_id": "e" * 32,
        "revision": 1,
        "attempt": 0,
        "cluster": "c",
        "namespace": "ns",
        "pod": "p",
        "pod_uid": "u",
        "node": "n",
        "cause": DecisionCause(kind=CauseKind.NODE, at=START),
        "taint": BareTaint(key="k", value="v", effect="NoExecute"),
        "window_start": START,
        "deadline": LATER,
        "toleration": KEY_FOR_20,
    }
    return DecisionRecord(**(values | changes))


def issued(**changes: Any) -> DecisionRecord:
    values: dict[str, Any] = {"cause": timer(LATER), "attempt": 1}
    return decision(DecisionKind.ISSUED, **(values | changes))


def timer(at: str) -> DecisionCause:
    return DecisionCause(kind=CauseKind.TIMER, at=at)


def after(at: str, seconds: float) -> str:
    return instant_text(instant_us(at) + int(seconds * 1e6))


def told(record: DecisionRecord, came: str | None = None, teller: Teller = Teller.RECORDED) -> SourcedDecision:
    return SourcedDecision(record, instant_us(came or record.cause.at), teller)


PREVIOUS = PreviousDecision(state=EvictionState.SCHEDULED, deadline=START, revision=1, attempt=0)
COVERS = f"The toleration k covers the taint k=v:NoExecute of n for 20 s since {START}."
CASES = [
    pytest.param(decision(DecisionKind.SCHEDULED), f"{COVERS} It has to leave at {LATER}.", id="scheduled"),
    pytest.param(
        decision(DecisionKind.DUE, toleration=None, verdict=Verdict.UNTOLERATED, deadline=START),
        f"No toleration of the pod covers the taint k=v:NoExecute of n, as of {START}. It has to leave at once.",
        id="due",
    ),
    pytest.param(
        decision(DecisionKind.DUE, cause=DecisionCause(kind=CauseKind.NODE, at=LATER)),
        f"{COVERS} It has to leave at once, since {LATER}.",
        id="due, as its time was over",
    ),
    pytest.param(
        decision(DecisionKind.MOVED, previous=PREVIOUS, outage_start=START),
        "The toleration k covers the taint k=v:NoExecute of n for 20 s, but the node's outage began before it, at"
        f" {START}, and leaves the pod less time. Its deadline moves from {START} to {LATER}, because of a change of"
        " the node.",
        id="moved",
    ),
    pytest.param(
        issued(due_cause=DecisionCause(kind=CauseKind.NODE, at=LATER), toleration=None, verdict=Verdict.UNTOLERATED),
        f"No toleration of the pod covers the taint k=v:NoExecute of n, as of {LATER}. It has to leave at once, because"
        " of a change of the node. The eviction is issued, on time.",
        id="due and issued",
    ),
    pytest.param(
        decision(DecisionKind.RETRIED, attempt=2, cause=timer(LATER), heard_at=after(START, 15.5)),
        "Attempt 2 is issued. In the service's view, up to 4.5 s old (last heartbeats of its feed:"
        f" {after(START, 15.5)}), the pod still exists and has to leave.",
        id="retried",
    ),
    pytest.param(
        decision(DecisionKind.RETRIED, attempt=2, cause=timer(LATER)),
        "Attempt 2 is issued. In the service's view, of unknown age, the pod still exists and has to leave.",
        id="retried without heartbeats",
    ),
    pytest.param(
        decision(DecisionKind.REPORTED, attempt=1, outcome=Outcome.FAILED, outcome_reason="500", next_attempt_at=LATER),
        f"The executor reports Failed of attempt 1 (500). If nothing changes, the next attempt is at {LATER} or later.",
        id="reported",
    ),
    pytest.param(
        decision(
            DecisionKind.REPORTED,
            attempt=1,
            outcome=Outcome.ACCEPTED,
            held_by="b-1",
            outcome_reason="the network flaps",
        ),
        "The executor reports Held of attempt 1 (the network flaps). The next attempt follows when the brake b-1 has"
        " ended.",
        id="held by the executor",
    ),
    pytest.param(
        issued(cause=timer(after(LATER, 40)), held_by="b-1"),
        "The eviction is issued, 40.0 s after its deadline: the brake b-1 has held it until then.",
        id="issued after a brake",
    ),
    pytest.param(
        decision(DecisionKind.RETRIED, attempt=2, cause=timer(LATER), held_by="b-1"),
        "Attempt 2 is issued. In the service's view, of unknown age, the pod still exists and has to leave."
        " The brake b-1 has held it until then.",
        id="retried after a brake",
    ),
    pytest.param(
        issued(cause=timer(after(LATER, 40)), policy=PolicyClause("agents", 3, "settle")),
        "The eviction is issued, 40.0 s after its deadline: the policy agents (revision 3, settle) has held it until"
        " then.",
        id="issued after a policy",
    ),
    pytest.param(
        decision(DecisionKind.REPORTED, attempt=1, outcome=Outcome.OBSERVED),
        "The executor reports Observed of attempt 1. It is not repeated before an executor acts.",
        id="observed",
    ),
    pytest.param(
        decision(DecisionKind.WITHDRAWN, toleration=Toleration(key="k", value="v", toleration_seconds=20)),
        f"The toleration k=v covers the taint k=v:NoExecute of n for 20 s since {START}."
        f" The issued eviction is withdrawn; it has to leave at {LATER}.",
        id="withdrawn",
    ),
    pytest.param(
        decision(DecisionKind.CANCELLED, verdict=Verdict.TAINT_REMOVED, previous=PREVIOUS),
        "The eviction is cancelled 20.0 s before its deadline: the taint k=v:NoExecute is gone.",
        id="cancelled",
    ),
    pytest.param(
        decision(
            DecisionKind.CANCELLED,
            verdict=Verdict.TOLERATED,
            attempt=3,
            previous=PreviousDecision(state=EvictionState.RETRYING, deadline=START, revision=1, attempt=3),
        ),
        "The eviction is cancelled after attempt 3: the pod tolerates the taint k forever now.",
        id="cancelled after attempts",
    ),
    pytest.param(
        decision(DecisionKind.COMPLETED, verdict=Verdict.POD_GONE),
        "The eviction is over: the pod is gone.",
        id="completed",
    ),
    pytest.param(
        decision(DecisionKind.SCHEDULED, warnings=(DecisionWarning.LATER_TOLERATION_DIFFERS,)),
        f"{COVERS} It has to leave at {LATER}."
        " A later toleration of the pod matches the taint with another time; the first one decides.",
        id="with a warning",
    ),
    pytest.param(
        decision(DecisionKind.SCHEDULED, toleration=Toleration("k", "Gt", "5", toleration_seconds=-1)),
        f"The toleration k>5 covers the taint k=v:NoExecute of n for 0 s since {START}. It has to leave at {LATER}.",
        id="a comparison, and seconds that count as none",
    ),
]


@pytest.mark.parametrize(("record", "text"), CASES)
def test_a_decision_is_a_sentence(record: DecisionRecord, text: str) -> None:
    (line,) = story([told(record)])
    assert line == (record.cause.at, Teller.RECORDED, text)


def test_every_kind_has_a_sentence() -> None:
    assert {case.values[0].decision for case in CASES} == set(DecisionKind)  # type: ignore[union-attr]


def last_of(*decisions: SourcedDecision) -> str:
    return list(story(decisions))[-1].text


def test_what_was_known_in_time_was_held() -> None:
    late = issued(cause=timer(after(LATER, 12)))
    text = last_of(told(decision(DecisionKind.SCHEDULED)), told(late))
    assert text == (
        "The eviction is issued, 12.0 s after its deadline: a closed gate, a takeover or a backlog delayed it."
    )


def test_a_replay_is_held_by_a_silent_feed_alone() -> None:
    late = issued(cause=timer(after(LATER, 12)))
    text = last_of(*(told(one, teller=Teller.REPLAY) for one in (decision(DecisionKind.SCHEDULED), late)))
    assert text == "The eviction is issued, 12.0 s after its deadline: its feed was silent."


def test_what_was_decided_late_was_not_held() -> None:
    came = after(LATER, 30)
    scheduled = told(decision(DecisionKind.SCHEDULED), came)
    assert last_of(scheduled).endswith(f"This came at {came}, 50.0 s later.")
    text = last_of(scheduled, told(issued(cause=timer(came))))
    assert text == "The eviction is issued, 30.0 s after its deadline, as soon as that was decided."


def test_what_was_decided_late_may_be_held_too() -> None:
    came, later = after(LATER, 30), after(LATER, 40)
    text = last_of(told(decision(DecisionKind.SCHEDULED), came), told(issued(cause=timer(later))))
    assert text == (
        f"The eviction is issued, 40.0 s after its deadline. It was decided only at {came};"
        " after that, a closed gate, a takeover or a backlog delayed it."
    )


def test_no_cause_is_named_where_no_record_holds_one() -> None:
    text = last_of(told(issued(cause=timer(after(LATER, 9)))))
    assert text == "The eviction is issued, 9.0 s after its deadline; these records do not show why."


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (LATER, f"as soon as its deadline was known, which was at {LATER}."),
        (
            LAST,
            (
                f"10.0 s after its deadline was known, which was at {LATER}:"
                " a closed gate, a takeover or a backlog delayed it."
            ),
        ),
    ],
)
def test_nothing_is_late_before_its_deadline_was_known(at: str, text: str) -> None:
    cause = DecisionCause(kind=CauseKind.POD, at=LATER)
    moved = decision(DecisionKind.MOVED, deadline=START, known_at=LATER, cause=cause)
    late = issued(deadline=START, known_at=LATER, cause=timer(at))
    assert last_of(told(decision(DecisionKind.SCHEDULED)), told(moved), told(late)) == f"The eviction is issued, {text}"


def for_seconds(seconds: int, built_in: int | None) -> dict[str, Any]:
    toleration = Toleration("k", "Exists", toleration_seconds=seconds, built_in_seconds=built_in)
    return {"toleration": toleration, "deadline": after(START, seconds)}


@pytest.mark.parametrize(
    ("edits", "goes_on"),
    [
        pytest.param([(8, 28), (200, 220)], 28, id="moved behind it"),
        pytest.param([(8, 28), (28, 48)], None, id="moved to it"),
        pytest.param([(8, 28), (200, 220), (300, 320)], 28, id="moved twice"),
        pytest.param([(8, 28), (5, 25), (26, 46)], None, id="shortened and moved before the timer"),
        pytest.param([(8, None), (200, None)], None, id="without a backstop"),
        pytest.param([(8, 18_446_744_074), (200, 220)], 0, id="seconds that overflow"),
    ],
)
@pytest.mark.parametrize("kind", [DecisionKind.MOVED, DecisionKind.WITHDRAWN])
def test_an_edit_that_outlasts_the_backstop_says_so(
    edits: list[tuple[int, int | None]], goes_on: int | None, kind: DecisionKind
) -> None:
    first, *later = edits
    scheduled = told(decision(DecisionKind.SCHEDULED, **for_seconds(*first)))
    text = last_of(scheduled, *(told(decision(kind, **for_seconds(*each))) for each in later))
    _, _, sentence = text.partition(" The built-in controller ")
    at = None if goes_on is None else after(START, goes_on)
    assert sentence == ("" if at is None else f"goes on at {at}: no edit moves its timer.")


def test_a_record_that_names_the_timer_is_believed() -> None:
    at = after(START, 60)
    moved = decision(DecisionKind.SCHEDULED, built_in_at=at, **for_seconds(100, 3700))
    assert f"goes on at {at}: " in last_of(told(moved))
    edited = decision(DecisionKind.MOVED, built_in_at=at, **for_seconds(5000, 8600))
    assert f"goes on at {at}: " in last_of(told(moved), told(edited))


def test_another_window_has_a_timer_of_its_own() -> None:
    scheduled = told(decision(DecisionKind.SCHEDULED, **for_seconds(8, 28)))
    moved = decision(DecisionKind.MOVED, window_start=LATER, **for_seconds(200, 220))
    assert "built-in controller" not in last_of(scheduled, told(moved))
    other = decision(DecisionKind.MOVED, taint=BareTaint(key="o", effect="NoExecute"), **for_seconds(200, 220))
    assert "built-in controller" not in last_of(scheduled, told(other))


def test_another_reason_with_the_same_deadline_is_told() -> None:
    other = issued(taint=BareTaint(key="other", effect="NoExecute"))
    assert last_of(told(decision(DecisionKind.SCHEDULED)), told(other)) == (
        f"The toleration k covers the taint other:NoExecute of n for 20 s since {START}."
        " The eviction is issued, on time."
    )


def test_stories_of_a_service_and_of_a_replay_are_apart() -> None:
    lines = story([told(decision(DecisionKind.SCHEDULED), LATER), told(issued(), teller=Teller.REPLAY)])
    assert [line.teller for line in lines] == [Teller.RECORDED, Teller.REPLAY]


@pytest.mark.parametrize(("built_in", "words"), [(3620, "for 20 s (built-in: 3620 s)"), (None, "(built-in: forever)")])
def test_moved_seconds_are_told_with_those_of_the_spec(built_in: int | None, words: str) -> None:
    moved = msgspec.structs.replace(KEY_FOR_20, built_in_seconds=built_in)
    (line,) = story([told(decision(DecisionKind.SCHEDULED, toleration=moved))])
    assert words in line.text
