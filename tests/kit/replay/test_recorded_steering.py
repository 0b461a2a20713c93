"""Brakes and policies of a recording stand in its replay from their times on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.replay.explanation import PodAnswer
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.standing_holds import StandingHold, hold_text
from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.steering.holds import share_us
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.incidents import INCIDENTS
from tests.kit.replay.recorded import PARTITIONS, incident
from tests.kit.replay.test_explanation import K, explained, node, pod
from tests.kit.replay.test_what_if import BEGIN_MS, SETTINGS, Log
from tests.models.steering.test_brakes import record as brake_record
from tests.models.steering.test_policies import policy_record, read_policies

MANUAL = "manual-taints-no-evictor"
SETTLE = {"settleSeconds": 5}
LONG_SECONDS = 60.0
CLUSTERS = (b"lab", b"other")


def steering(role: Role, value: bytes, at_ms: int, name: str | None = None) -> RecordedRecord:
    found: dict[str, str] = json.loads(value) if name is None else {"id": name}
    key = found["name" if role == "policies" and name is None else "id"].encode()
    return RecordedRecord(topic=role, partition=0, offset=0, timestamp=at_ms, key=key, value=value)


def among(records: Iterable[RecordedRecord], *others: RecordedRecord) -> list[RecordedRecord]:
    return sorted([*others, *records], key=lambda one: one.timestamp)


def replayed(
    records: Iterable[RecordedRecord], given: RecordedSteering | None = None, chunk: int = 10_000
) -> list[ReplayedMessage]:
    replay = Replay(Settings(), partitions=PARTITIONS, plays_executor=True, steering=given)
    return sorted([*replay.run(records, chunk=chunk), *replay.run_on(LONG_SECONDS)])


def issued(messages: Iterable[ReplayedMessage]) -> dict[str, int]:
    commands = [(json.loads(one.value), one.at_us) for one in messages if one.topic == "commands"]
    return {command["pod"]: at_us for command, at_us in commands if command["action"] == "Evict"}


def test_what_stood_before_is_as_if_given() -> None:
    records, value = incident(INCIDENTS / MANUAL), policy_record(spec=SETTLE)
    given = replayed(records, RecordedSteering(read_policies(value, appended_us=0)))
    recorded = replayed(among(records, steering("policies", value, 0)))
    assert recorded == given
    assert recorded != replayed(records)


@pytest.mark.parametrize("chunk", [1, 17])
def test_any_chunk_gives_the_same_under_recorded_policies(chunk: int) -> None:
    records = incident(INCIDENTS / MANUAL)
    middle_ms = records[len(records) // 3].timestamp
    steered = among(
        records,
        steering("policies", policy_record(spec={"observe": True}), middle_ms),
        steering("brakes", brake_record(endsAt=instant_text((middle_ms + 9_000) * 1_000)), middle_ms + 1_000),
        steering("policies", policy_record(revision=2), middle_ms + 5_000),
    )
    assert replayed(steered, chunk=chunk) == replayed(steered)


def evicted(*others: RecordedRecord, run_on: float = LONG_SECONDS) -> tuple[int | None, list[str]]:
    """Return after how many milliseconds a pod is evicted whose node is tainted after 1,000, and what is unreadable."""
    log = Log()
    node(log)
    pod(log)
    node(log, K, second=1)
    log.pod(BEGIN_MS + 20_000, "other", "n", [{"operator": "Exists"}], "Running")
    replay = Replay(SETTINGS, partitions=1, plays_executor=True)
    at_us = issued([*replay.run(among(log.records, *others)), *replay.run_on(run_on)]).get("web")
    return None if at_us is None else at_us // 1_000 - BEGIN_MS, replay.objections()


def policy_of(at_ms: int, revision: int = 1, **spec: Any) -> RecordedRecord:
    more: dict[str, Any] = {"spec": spec} if spec else {"earlier": [{"spec": {"observe": True}}]}
    return steering("policies", policy_record(revision=revision, spreadSeconds=0, **more), BEGIN_MS + at_ms)


def test_a_policy_holds_until_it_is_deleted() -> None:
    assert evicted()[0] == 1_000
    assert evicted(policy_of(-9_000, observe=True))[0] is None
    assert evicted(policy_of(-9_000, observe=True), policy_of(7_000, revision=2))[0] == 7_000
    assert evicted(policy_of(1_500, observe=True))[0] == 1_000


@pytest.mark.parametrize("chunk", [1, 100])
def test_a_partition_that_begins_later_knows_what_stands(chunk: int) -> None:
    log = Log()
    node(log)
    pod(log)
    node(log, K, second=1)
    placed = [
        msgspec.structs.replace(
            one,
            partition=partition_of(name, 2),
            key=name,
            value=(one.value or b"").replace(b'"lab"', b'"%s"' % name),
        )
        for name in CLUSTERS
        for one in log.records
    ]
    assert len({one.partition for one in placed}) == 2
    replay = Replay(SETTINGS.model_copy(update={"partitions": 2}), partitions=2, plays_executor=True)
    records = [policy_of(-1, observe=True), *placed]
    assert issued([*replay.run(records, chunk=chunk), *replay.run_on(LONG_SECONDS)]) == {}
    assert replay.held_back() == {"policy/p": 2}


def test_a_brake_holds_until_it_is_released() -> None:
    held = steering("brakes", brake_record("b-1", spreadSeconds=0), BEGIN_MS)
    freed = steering("brakes", brake_record("b-1", spreadSeconds=0, releasedBy="b"), BEGIN_MS + 9_000)
    assert evicted(held)[0] is None
    assert evicted(held, freed)[0] == 9_000


def test_what_cannot_be_read_changes_nothing_and_is_said() -> None:
    odd = steering("policies", b"odd", BEGIN_MS, "p")
    at_ms, objections = evicted(odd)
    assert (at_ms, len(objections)) == (1_000, 1)
    assert objections[0].startswith("policy 'p': ")


def test_given_policies_take_the_place_of_recorded_ones() -> None:
    records = incident(INCIDENTS / MANUAL)
    recorded = steering("policies", policy_record(spec={"observe": True}), 0)
    given = RecordedSteering(read_policies(policy_record(spec=SETTLE), appended_us=0))
    assert replayed(among(records, recorded), given.copy()) == replayed(records, given.copy())
    left_out = RecordedSteering(is_followed=False)
    assert replayed(among(records, recorded), left_out) == replayed(records)


def story(*others: RecordedRecord) -> StandingHold | None:
    log = Log()
    node(log)
    pod(log)
    node(log, K, second=1)
    found = explained(among(log.records, *others), "shop/web")
    assert found.answer in (PodAnswer.STORY, PodAnswer.NOTHING)
    return found.pods[0].held


def test_explain_tells_what_holds_since_when_and_until_when() -> None:
    due, until = (instant_text(BEGIN_MS * 1_000 + seconds * SECOND_US) for seconds in (1, 31))
    told = [
        "" if hold is None else hold_text(hold)
        for hold in (
            story(),
            story(policy_of(-1, settleSeconds=30)),
            story(policy_of(-1, observe=True)),
            story(policy_of(-1, limit={"evictions": 1, "inSeconds": 60})),
            story(steering("brakes", brake_record("b-1"), BEGIN_MS)),
        )
    ]
    assert told == [
        "",
        f"It is due since {due}. The policy p (revision 1, settle) holds it until {until}.",
        f"It is due since {due}. The policy p (revision 1, observe) holds it until somebody changes the policy.",
        f"It is due since {due}. The policy p (revision 1, limit) holds it until it is its turn.",
        f"It is due since {due}. The brake b-1 holds it until somebody releases it.",
    ]


def test_explain_tells_both_ends_of_a_brake() -> None:
    end_us = BEGIN_MS * 1_000 + 600 * SECOND_US
    hold = story(steering("brakes", brake_record("b-1", endsAt=instant_text(end_us), spreadSeconds=60), BEGIN_MS))
    assert hold is not None
    turn, end = instant_text(end_us + share_us(hold.pod_uid, 60)), instant_text(end_us)
    told = f"The brake b-1 holds it until {turn}, its turn in the spread after the brake's end at {end}."
    assert hold_text(hold).endswith(told)


def standing(clause: str) -> StandingHold:
    by = f"policy/p/1/{clause}"
    return StandingHold(cluster="lab", pod_uid="uid", by=by, due_us=BEGIN_MS * 1_000, until_us=None)


def test_explain_names_the_incident_or_the_outage_that_holds() -> None:
    told = [
        hold_text(standing(clause)).partition(" holds it ")[2]
        for clause in ("guard:3f9a2c1b07", "hold", "limit", "observe")
    ]
    assert told == [
        "until somebody answers the incident 3f9a2c1b07.",
        "until the outage is over.",
        "until it is its turn.",
        "until somebody changes the policy.",
    ]
