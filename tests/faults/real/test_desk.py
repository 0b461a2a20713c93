"""When people write to a real topic of policies, and what the oracle is told of it. Nothing here needs a Kafka."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from evictstream.kit.oracle import KeyedRecord
from evictstream.streams.settings import Settings
from tests.faults.braking import as_policy, draw_brakes
from tests.faults.generate import generate
from tests.faults.plan import Fault, FaultKind, Plan, PolicyChange, Shape
from tests.faults.real.desk import SteeringDesk
from tests.faults.real.reading import split_policies
from tests.faults.real.verdict import EARLY_US, _early_us

SPEC = {"for": {}, "guard": {"count": 0, "withinSeconds": 5}}
SETTINGS = Settings(topic_prefix="t.")


class FakeProducer:
    """Takes records, unless it is `away`; says of none by itself that it stands."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.stands: list[Callable[[Any], None]] = []
        self.is_away = False
        self.has_failed = False

    def send(self, topic: str, *, key: bytes, value: bytes, partition: int) -> object:
        if self.is_away:
            raise KafkaTimeoutError
        record = SimpleNamespace(topic=topic, key=key, value=value, timestamp=5_000, offset=len(self.sent))
        assert partition == 0
        self.sent.append(record)
        return SimpleNamespace(add_callback=self.stands.append, is_done=self.has_failed, failed=lambda: self.has_failed)


def plan_of(*changes: PolicyChange, **fields: Any) -> Plan:
    return dataclasses.replace(generate(0), brakes=(), policies=changes, **fields)


def desk_of(plan: Plan) -> tuple[SteeringDesk, FakeProducer]:
    producer = FakeProducer()
    return SteeringDesk(SETTINGS, plan, cast("KafkaProducer", producer)), producer


def change(at_us: int, name: str = "g0") -> PolicyChange:
    return PolicyChange(at_us, name, SPEC, 1)


def test_people_write_when_their_last_record_is_read_back() -> None:
    desk, producer = desk_of(plan_of(change(1), change(2)))
    desk.tick(9)
    assert len(producer.sent) == 1
    desk.take({SETTINGS.policies_topic: [SimpleNamespace(key=b"p1", value=b"{}", timestamp=4)]})
    desk.tick(9)
    assert len(producer.sent) == 1, "somebody else's record"
    desk.take({SETTINGS.policies_topic: producer.sent[:1]})
    desk.tick(9)
    assert [b'"revision":1' in one.value for one in producer.sent] == [True, False]


def test_people_go_on_after_a_record_that_got_lost() -> None:
    desk, producer = desk_of(plan_of(change(1), change(2)))
    producer.has_failed = True
    desk.tick(9)
    assert len(producer.sent) == 2


def test_what_no_broker_takes_is_written_later() -> None:
    brake = KeyedRecord(append_at_us=3, key=b"b0", value=b"x")
    plan = dataclasses.replace(plan_of(change(1)), brakes=(brake,))
    desk, producer = desk_of(plan)
    producer.is_away = True
    with pytest.raises(KafkaTimeoutError):
        desk.tick(9)
    producer.is_away = False
    desk.tick(2)
    assert [one.topic for one in producer.sent] == [SETTINGS.policies_topic]
    desk.tick(9)
    assert [one.topic for one in producer.sent] == [SETTINGS.policies_topic, SETTINGS.brakes_topic]


def test_a_record_is_known_when_its_writer_hears_of_it() -> None:
    desk, producer = desk_of(plan_of(change(1)))
    desk.tick(9)
    assert desk.known_us == {}
    before_us = desk.now_us
    producer.stands[0](producer.sent[0])
    assert before_us <= desk.known_us[SETTINGS.policies_topic, 0] <= desk.now_us


def test_a_policy_that_stands_for_a_brake_is_one() -> None:
    drawn = (draw_brakes(seed, Shape(), 0) for seed in range(99))
    brakes = next(found for found in drawn if any(map(as_policy, found)))
    written = [dataclasses.replace(policy, append_at_us=7) for one in brakes if (policy := as_policy(one)) is not None]
    guarding = KeyedRecord(append_at_us=9, key=b"g0", value=b"{}")
    standing_for, others = split_policies([*written, guarding], brakes)
    assert others == [guarding]
    assert standing_for == [dataclasses.replace(one, append_at_us=7) for one in brakes if as_policy(one) is not None]


@pytest.mark.parametrize(
    ("amount", "changes", "early_us"),
    [
        (-3.0, (), 0),
        (0.5, (), 500_000),
        (400.0, (), 1_000_000),
        (-3.0, (change(1),), 1_000_000),
        (None, (change(1),), 0),
    ],
)
def test_clocks_that_step_differ(amount: float | None, changes: tuple[PolicyChange, ...], early_us: int) -> None:
    faults = () if amount is None else (Fault(FaultKind.CLOCK_STEP, 1.0, 1.0, amount),)
    assert _early_us(plan_of(*changes, faults=faults)) == EARLY_US + early_us
