"""Each kind of decision as a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.decision import DECISION_KIND, DecisionCause, DecisionRecord, PreviousDecision
from evictstream.models.messages.vocabulary import (
    API_VERSION,
    CauseKind,
    DecisionKind,
    DecisionWarning,
    EvictionState,
    Outcome,
    Verdict,
)
from evictstream.streams.replay.story import story

START, LATER, LAST = "2026-11-21T10:00:00Z", "2026-11-21T10:00:20Z", "2026-11-21T10:00:30Z"
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


PREVIOUS = PreviousDecision(state=EvictionState.SCHEDULED, deadline=START, revision=1, attempt=0)
CASES = [
    pytest.param(
        decision(DecisionKind.SCHEDULED),
        f"The toleration k covers the taint k=v:NoExecute of n for 20 s since {START}. It has to leave at {LATER}.",
        id="scheduled",
    ),
    pytest.param(
        decision(DecisionKind.DUE, toleration=None, verdict=Verdict.UNTOLERATED),
        f"No toleration covers the taint k=v:NoExecute of n, there since {START}. It has to leave at once.",
        id="due",
    ),
    pytest.param(
        decision(DecisionKind.MOVED, previous=PREVIOUS, outage_start=START),
        f"The toleration k covers the taint k=v:NoExecute of n for 20 s since {START}, counted from the begin of the"
        f" outage at {START}. Its deadline moves from {START} to {LATER}, because of a change of the node.",
        id="moved",
    ),
    pytest.param(
        decision(DecisionKind.ISSUED, cause=DecisionCause(kind=CauseKind.TIMER, at=LATER)),
        "The eviction is issued, on time.",
        id="issued on time",
    ),
    pytest.param(
        decision(
            DecisionKind.ISSUED,
            toleration=None,
            verdict=Verdict.UNTOLERATED,
            cause=DecisionCause(kind=CauseKind.TIMER, at=LATER),
            due_cause=DecisionCause(kind=CauseKind.NODE, at=LATER),
        ),
        f"No toleration covers the taint k=v:NoExecute of n, there since {START}. It has to leave at once, because of a"
        " change of the node. The eviction is issued, on time.",
        id="due and issued",
    ),
    pytest.param(
        decision(DecisionKind.ISSUED, deadline=START, cause=DecisionCause(kind=CauseKind.TIMER, at=LATER)),
        "The eviction is issued, 20.0 s after its deadline: a closed gate, a take-over or a backlog held it.",
        id="issued late",
    ),
    pytest.param(
        decision(
            DecisionKind.ISSUED, deadline=START, known_at=LATER, cause=DecisionCause(kind=CauseKind.TIMER, at=LATER)
        ),
        f"The eviction is issued, as soon as its deadline was known, which was at {LATER}.",
        id="issued when its deadline was known",
    ),
    pytest.param(
        decision(
            DecisionKind.ISSUED, deadline=START, known_at=LATER, cause=DecisionCause(kind=CauseKind.TIMER, at=LAST)
        ),
        f"The eviction is issued, 10.0 s after its deadline was known, which was at {LATER}: a closed gate, a take-over"
        " or a backlog held it.",
        id="issued late after its deadline was known",
    ),
    pytest.param(
        decision(DecisionKind.RETRIED, attempt=2),
        "Attempt 2 is issued: the pod is still there, and the reason too.",
        id="retried",
    ),
    pytest.param(
        decision(DecisionKind.REPORTED, outcome=Outcome.FAILED, outcome_reason="500", next_attempt_at=LATER),
        f"The executor reports Failed (500). Should the pod stay, the next attempt comes at {LATER}.",
        id="reported",
    ),
    pytest.param(
        decision(DecisionKind.WITHDRAWN, toleration=Toleration(key="k", value="v", toleration_seconds=20)),
        f"The toleration k=v covers the taint k=v:NoExecute of n for 20 s since {START}."
        f" What was issued is withdrawn; it has to leave at {LATER}.",
        id="withdrawn",
    ),
    pytest.param(
        decision(DecisionKind.CANCELLED, verdict=Verdict.TAINT_REMOVED),
        "The eviction is cancelled 20.0 s before its deadline: the taint is gone.",
        id="cancelled",
    ),
    pytest.param(
        decision(DecisionKind.COMPLETED, verdict=Verdict.POD_GONE),
        "The eviction is done: the pod is deleted.",
        id="completed",
    ),
    pytest.param(
        decision(
            DecisionKind.COMPLETED, verdict=Verdict.POD_GONE, warnings=(DecisionWarning.LATER_TOLERATION_DIFFERS,)
        ),
        "The eviction is done: the pod is deleted."
        " A later toleration of the pod matches the taint with another time; the first one decides.",
        id="with a warning",
    ),
]


@pytest.mark.parametrize(("told", "text"), CASES)
def test_a_decision_is_a_sentence(told: DecisionRecord, text: str) -> None:
    (line,) = story([told])
    assert line.text == text
    assert line.at == told.cause.at


def test_every_kind_has_a_sentence() -> None:
    assert {case.values[0].decision for case in CASES} == set(DecisionKind)  # type: ignore[union-attr]
