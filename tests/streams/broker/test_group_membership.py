"""A join that the library has forgotten is asked for again, and only the group's answers confirm a membership."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import pytest
from kafka.coordinator.base import MemberState

from evictstream.streams.broker.group_membership import Membership, finish_joining


class Coordinator:
    """The part of kafka-python's that decides whether a member joins."""

    def __init__(self, *, rejoining: bool, needs: bool) -> None:
        self.rejoining = rejoining
        self.needs = needs
        self.asked = False

    def need_rejoin(self) -> bool:
        return self.needs

    def request_rejoin(self) -> None:
        self.asked = True


@pytest.mark.parametrize(
    ("rejoining", "needs", "asked"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_only_a_forgotten_join_is_asked_for_again(*, rejoining: bool, needs: bool, asked: bool) -> None:
    coordinator = Coordinator(rejoining=rejoining, needs=needs)
    finish_joining(SimpleNamespace(_coordinator=coordinator))

    assert coordinator.asked is asked


class Consumer:
    """The part of kafka-python's that tells of its membership."""

    def __init__(self) -> None:
        self._coordinator = SimpleNamespace(heartbeat=SimpleNamespace(last_send=-math.inf, last_receive=-math.inf))
        self.state = MemberState.UNJOINED
        self.generation = -1

    def group_metadata(self) -> SimpleNamespace:
        return SimpleNamespace(state=self.state, generation_id=self.generation)

    def beat(self, sent: float, received: float | None) -> None:
        heartbeat = self._coordinator.heartbeat
        heartbeat.last_send = sent
        heartbeat.last_receive = heartbeat.last_receive if received is None else received


def test_a_join_confirms_once() -> None:
    consumer = Consumer()
    membership = Membership(consumer)
    membership.look()
    assert membership.confirmed_at == -math.inf
    consumer.state, consumer.generation = MemberState.STABLE, 3
    began = time.monotonic()
    membership.look()
    confirmed_at = membership.confirmed_at
    assert began <= confirmed_at <= time.monotonic()
    membership.look()
    assert membership.confirmed_at == confirmed_at


@pytest.mark.parametrize(
    ("received", "confirmed_at"),
    [
        pytest.param(11.0, 10.0, id="answered"),
        pytest.param(99.0, 10.0, id="answered, and read after a freeze"),
        pytest.param(None, 5.0, id="not answered"),
    ],
)
def test_a_heartbeat_confirms_what_it_asked_when_it_was_sent(received: float | None, confirmed_at: float) -> None:
    consumer = Consumer()
    membership = Membership(consumer)
    consumer.beat(5.0, 6.0)
    membership.look()
    consumer.beat(10.0, received)
    membership.look()
    assert membership.confirmed_at == confirmed_at
