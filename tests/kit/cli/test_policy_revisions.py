"""The next revisions of policies: which answers they keep."""

from __future__ import annotations

import datetime as dt

import pytest

from evictstream.kit.cli.policy_revisions import answered
from evictstream.models.messages.incident import IncidentAnswer, IncidentVerdict
from evictstream.models.messages.policy import MOST_INCIDENT_ANSWERS
from evictstream.models.steering.policies import Policies
from evictstream.streams.errors import FoundProblemError
from tests.models.steering.test_policies import policy_record

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
IDS = [f"{number:010x}" for number in range(MOST_INCIDENT_ANSWERS)]
NEW = "ffffffffff"


def answer(incident: str) -> IncidentAnswer:
    return IncidentAnswer(incident=incident, verdict=IncidentVerdict.REJECTED, why="w", by="anna", answered_at=NOW)


@pytest.fixture
def full() -> Policies:
    """A policy with as many answers as it may have."""
    fields = {"verdict": "Rejected", "why": "w", "by": "anna", "answeredAt": "2026-01-01T00:00:00Z"}
    guard = {"guard": {"count": 3, "withinSeconds": 600}}
    record = policy_record("p1", spec=guard, answers=[{"incident": one, **fields} for one in IDS])
    return Policies().with_record(b"p1", record, 0)


def test_where_there_is_no_room_ended_incidents_go(full: Policies) -> None:
    policy = answered(full, "p1", answer(NEW), applied_at=NOW, standing_ids=IDS[1:])
    assert [one.incident for one in policy.answers] == [NEW, *IDS[1:]]


@pytest.mark.parametrize("standing", [[*IDS, NEW], None], ids=["all stand", "not all are known"])
def test_no_answer_to_a_standing_incident_is_dropped(full: Policies, standing: list[str] | None) -> None:
    with pytest.raises(FoundProblemError, match="100 answers to incidents that have not ended"):
        answered(full, "p1", answer(NEW), applied_at=NOW, standing_ids=standing)


def test_a_full_policy_still_takes_another_answer_to_one(full: Policies) -> None:
    policy = answered(full, "p1", answer(IDS[7]), applied_at=NOW, standing_ids=IDS)
    assert sorted(one.incident for one in policy.answers) == IDS
