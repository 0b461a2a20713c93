"""Revisions of policies by Kafka's clock, and while others write, without a Kafka."""

from __future__ import annotations

import datetime as dt

import pytest

from evictstream.kit.cli import policy_writing
from evictstream.kit.cli.policy_files import WrittenPolicy
from evictstream.kit.cli.policy_revisions import answered, next_revision
from evictstream.kit.cli.policy_writing import remove_old_policies
from evictstream.models.instants import SECOND_US, moment_at
from evictstream.models.messages.codec import encode
from evictstream.models.messages.policy import EarlierSpec, Policy, PolicySpec
from evictstream.models.steering.policies import Policies
from evictstream.streams.broker.steering_readers import PoliciesReader
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
    policy: Policy = topic.policies.standing["p1"].policy
    assert OBSERVE not in [one.spec for one in policy.earlier]


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
