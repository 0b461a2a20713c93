"""Revisions of policies by Kafka's clock, and while others write, without a Kafka."""

from __future__ import annotations

import contextlib
import datetime as dt
from functools import partial
from pathlib import Path

import pytest

from evictstream.kit.cli import policy, policy_backstop, policy_names, policy_writing
from evictstream.kit.cli.policy_files import WrittenPolicy
from evictstream.kit.cli.policy_revisions import answered, next_revision
from evictstream.kit.cli.policy_writing import remove_old_policies, write_answer, write_next
from evictstream.models.instants import SECOND_US, moment_at
from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import IncidentAnswer, IncidentVerdict
from evictstream.models.messages.policy import MOST_INCIDENT_ANSWERS, EarlierSpec, PolicySpec
from evictstream.models.steering.policies import MOST_POLICIES, Policies
from evictstream.streams.broker.steering_readers import PoliciesReader
from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode, FoundProblemError
from tests.models.steering.test_policies import policy_record
from tests.streams.cli.steering_topic import SteeringTopic, set_clock

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SETTLE, OBSERVE = PolicySpec(settle_seconds=1), PolicySpec(observe=True)
DAY_US = 86_400 * SECOND_US


class Topic(SteeringTopic):
    """The topic of policies."""

    def __init__(self) -> None:
        super().__init__(PoliciesReader)

    @property
    def policies(self) -> Policies:
        found: Policies = self.reader.policies
        return found

    def has(self, name: str, *specs: PolicySpec | None, spread_seconds: int = 3_600) -> None:
        """Somebody has applied these revisions."""
        for spec in specs:
            written = None if spec is None else writes(name, spec, spread_seconds)
            self.writer.append(name, encode(next_revision(name, self.policies, why="w", written=written)))


def writes(name: str, spec: PolicySpec, spread_seconds: int = 3_600) -> WrittenPolicy:
    return WrittenPolicy(name=name, why="w", spec=spec, spread_seconds=spread_seconds)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    monkeypatch.setattr(policy_writing, "_LONGEST_PAUSE_SECONDS", 0)
    return Topic()


@pytest.mark.parametrize("ahead", [2 * 3_600, -40 * 86_400])
def test_a_wrong_clock_ends_no_spread(ahead: int, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, ahead)
    topic.has("p1", OBSERVE, SETTLE)
    ended = moment_at(topic.policies.standing["p1"].appended_us)
    expected = EarlierSpec(spec=OBSERVE, ended_at=ended)
    again = next_revision("p1", topic.policies, why="w", written=writes("p1", PolicySpec(settle_seconds=2)))
    assert expected in again.earlier
    assert expected in answered(topic.policies, "p1", applied_at=NOW).earlier


def test_spreads_that_have_ended_go(topic: Topic) -> None:
    for spec in (OBSERVE, SETTLE, PolicySpec(settle_seconds=2), PolicySpec(settle_seconds=3)):
        topic.has("p1", spec, spread_seconds=60)
        topic.now_us += 120 * SECOND_US
    assert OBSERVE not in [one.spec for one in topic.policies.standing["p1"].policy.earlier]


@pytest.mark.parametrize("ahead", [40 * 86_400, -40 * 86_400])
def test_a_wrong_clock_keeps_deleted_policies(ahead: int, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, ahead)
    topic.has("old", SETTLE, None)
    topic.now_us += 31 * DAY_US
    topic.has("new", SETTLE, None)
    remove_old_policies(topic.writer, topic.reader)
    assert topic.policies.standing.keys() == {"new"}


def test_a_policy_applied_while_old_ones_go_stays(topic: Topic) -> None:
    topic.has("p1", SETTLE, None)
    topic.has("p2", SETTLE, None)
    topic.now_us += 31 * DAY_US
    topic.has("p3", SETTLE)
    spec = {"settleSeconds": 1}

    def others() -> None:
        for name in ("p1", "p2"):
            topic.put(name.encode(), policy_record(name, spec=spec))

    topic.at_once(others)
    remove_old_policies(topic.writer, topic.reader)
    assert {name for name, one in topic.policies.standing.items() if one.policy.spec} == {"p1", "p2", "p3"}


def test_one_policy_too_many_by_a_race_is_taken_back(topic: Topic) -> None:
    for number in range(MOST_POLICIES - 1):
        topic.put(f"x{number}".encode(), policy_record(f"x{number}", spec={"settleSeconds": 1}))
    topic.has("again", SETTLE, None)
    for name in ("mine", "again"):
        topic.put(b"other", None)
        topic.at_once(lambda: topic.put(b"other", policy_record("other", spec={"settleSeconds": 1})))
        with pytest.raises(FoundProblemError, match=f"policy {name} does not stand: more than 100 policies"):
            write_next(topic.writer, topic.reader, name, partial(next_revision, name, why="w", written=MINE))
        assert topic.policies.objection() is None
        assert topic.policies.standing["other"].policy.spec is not None
    assert topic.policies.standing["again"].policy.spec is None


MINE = writes("mine", SETTLE)


IDS = [f"{number:010x}" for number in range(MOST_INCIDENT_ANSWERS - 1)]
STANDING = [*IDS[1:], "aaaaaaaaaa", "bbbbbbbbbb"]
GUARD = {"guard": {"count": 3, "withinSeconds": 600}}


def rejects(incident: str) -> IncidentAnswer:
    return IncidentAnswer(incident=incident, verdict=IncidentVerdict.REJECTED, why="w", by="anna", answered_at=NOW)


def reject(topic: Topic, incident: str, standing: list[str] | None) -> None:
    write_answer(topic.writer, topic.reader, "p1", rejects(incident), seconds=None, standing_ids=standing)


@pytest.fixture
def full(topic: Topic) -> Topic:
    """A policy that has room for one more answer; one of its incidents has ended."""
    fields = {"verdict": "Rejected", "why": "w", "by": "anna", "answeredAt": "2026-01-01T00:00:00Z"}
    topic.put(b"p1", policy_record("p1", spec=GUARD, answers=[{"incident": one, **fields} for one in IDS]))
    return topic


def test_two_answers_at_once_find_the_room_of_ended_incidents(full: Topic) -> None:
    full.at_once(lambda: reject(full, "aaaaaaaaaa", STANDING))
    reject(full, "bbbbbbbbbb", STANDING)
    assert sorted(full.policies.standing["p1"].answers) == sorted(STANDING)


def test_an_answer_without_room_takes_no_other_away(full: Topic) -> None:
    full.at_once(lambda: reject(full, "aaaaaaaaaa", None))
    with pytest.raises(FoundProblemError, match="100 answers to incidents that have not ended"):
        reject(full, "bbbbbbbbbb", None)
    assert sorted(full.policies.standing["p1"].answers) == sorted([*IDS, "aaaaaaaaaa"])


@pytest.mark.parametrize("record", [None, policy_record("p1", revision=9)], ids=["removed", "deleted"])
def test_an_approval_of_a_policy_that_goes_is_refused(record: bytes | None, full: Topic) -> None:
    full.at_once(lambda: full.put(b"p1", record), first=1)
    with pytest.raises(FoundProblemError, match="there is no policy p1 any more"):
        write_answer(full.writer, full.reader, "p1", rejects("aaaaaaaaaa"), seconds=60, standing_ids=None)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_policy_deleted_while_others_are_applied_is_told(
    output: str, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic.has("p1", SETTLE, spread_seconds=60)
    topic.has("p2", SETTLE, spread_seconds=60)
    file = tmp_path / "policies.yaml"
    file.write_text("name: p1\nwhy: w\nsettle: 9s\n---\nname: p2\nwhy: w\nsettle: 1s\n")
    monkeypatch.setattr(policy, "_reading", lambda _: contextlib.nullcontext(topic.reader))
    monkeypatch.setattr(policy, "_writing", lambda *_: contextlib.nullcontext(topic.writer))
    for module, name in ((policy_backstop, "read_and_tell_outlasted"), (policy_names, "warn_of_unknown")):
        monkeypatch.setattr(module, name, lambda *_: None)  # they read other topics
    topic.at_once(lambda: topic.has("p2", None))
    arguments = ["-b", "127.0.0.1:1", "policy", "apply", str(file), "-o", output]
    assert run(arguments) == ExitCode.FOUND_PROBLEM
    shown = capsys.readouterr()
    assert shown.out == ('{"p1": 2}\n' if output == "json" else "policy p1 is now at revision 2\n")
    assert "somebody has deleted policy p2 at the same time" in shown.err


def test_a_policy_with_an_odd_key_is_removed(topic: Topic) -> None:
    topic.put(b"\xff\xfe", b"{")
    (name,) = topic.policies.unreadable
    topic.writer.remove(name)
    assert (name, topic.written[-1]) == ("hex:fffe", (b"\xff\xfe", None))
    assert topic.policies.objection() is None
