"""Two people who write the same policy at the same time, on a real Kafka."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import msgspec
import pytest

from evictstream.kit.cli.policy_files import WrittenPolicy
from evictstream.kit.cli.policy_revisions import answered, next_revision
from evictstream.kit.cli.policy_writing import write_next
from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import IncidentAnswer, IncidentVerdict
from evictstream.models.messages.policy import Policy, PolicySpec
from evictstream.models.steering.policies import Policies
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.steering_readers import PoliciesReader
from evictstream.streams.cli.steering_records import open_records, open_writer
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.settings import Settings

pytestmark = pytest.mark.kafka

Make = Callable[[Policies], Policy]

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
ID = "3f9a2c1b07"


def applies(settle: int) -> Make:
    written = WrittenPolicy(name="p1", why="w", spec=PolicySpec(settle_seconds=settle), spread_seconds=60)
    return lambda policies: next_revision("p1", policies, why="w", written=written)


def answers(verdict: IncidentVerdict, incident: str = ID) -> Make:
    answer = IncidentAnswer(incident=incident, verdict=verdict, why="w", by="anna", answered_at=NOW)
    return lambda policies: answered(policies, "p1", answer, applied_at=NOW)


def deletes(policies: Policies) -> Policy:
    return next_revision("p1", policies, why="w")


APPROVES, REJECTS = answers(IncidentVerdict.APPROVED), answers(IncidentVerdict.REJECTED)


def overtaken(settings: Settings, mine: Make, *others: Make) -> Policy:
    """Write a revision while others write theirs: each knows what stood before, and is appended first."""
    topic, waiting = settings.policies_topic, list(others)
    with open_records(settings, topic, PoliciesReader) as reader, open_writer(settings, topic, reader) as writer:

        def make(policies: Policies) -> Policy:
            own = mine(policies)
            if waiting:
                writer.append("p1", encode(waiting.pop(0)(policies)))
            return own

        before = reader.policies.standing.get("p1")
        try:
            write_next(writer, reader, "p1", make)
        finally:
            after = reader.policies.standing["p1"].policy
        assert before is None or after.revision > before.policy.revision + 1
        return after


@pytest.fixture
def declared(settings: Settings) -> Settings:
    """A policy stands with an approval."""
    declare_topics(settings)
    topic = settings.policies_topic
    with open_records(settings, topic, PoliciesReader) as reader, open_writer(settings, topic, reader) as writer:
        for make in (applies(60), APPROVES):
            write_next(writer, reader, "p1", make)
    return settings


def test_a_rejection_outlasts_a_policy_that_is_applied_meanwhile(declared: Settings) -> None:
    policy = overtaken(declared, applies(90), REJECTS)
    assert policy.spec == PolicySpec(settle_seconds=90)
    assert [(one.incident, one.verdict) for one in policy.answers] == [(ID, IncidentVerdict.REJECTED)]


def test_what_is_applied_outlasts_an_answer_given_meanwhile(declared: Settings) -> None:
    policy = overtaken(declared, REJECTS, applies(90))
    assert policy.spec == PolicySpec(settle_seconds=90)
    assert [one.verdict for one in policy.answers] == [IncidentVerdict.REJECTED]


def test_each_of_several_people_keeps_the_answer(declared: Settings) -> None:
    ids = ["0000000001", "0000000002", "0000000003"]
    policy = overtaken(declared, *(answers(IncidentVerdict.REJECTED, one) for one in ids))
    assert sorted(one.incident for one in policy.answers) == sorted([*ids, ID])


def test_what_is_deleted_meanwhile_stays_deleted(declared: Settings) -> None:
    with pytest.raises(FoundProblemError, match="there is no policy p1 any more"):
        overtaken(declared, REJECTS, deletes)
    topic = declared.policies_topic
    with open_records(declared, topic, PoliciesReader) as reader:
        assert reader.policies.standing["p1"].policy.spec is None


def test_a_command_that_is_overtaken_each_time_gives_up(declared: Settings) -> None:
    others = [applies(100 + number) for number in range(5)]
    with pytest.raises(FoundProblemError, match="others write policy p1 at the same time"):
        overtaken(declared, REJECTS, *others)


def test_without_another_writer_once_is_enough(declared: Settings) -> None:
    topic = declared.policies_topic
    with open_records(declared, topic, PoliciesReader) as reader, open_writer(declared, topic, reader) as writer:
        written = write_next(writer, reader, "p1", REJECTS)
        assert written is not None
        assert msgspec.structs.replace(written, earlier=()) == reader.policies.standing["p1"].policy
