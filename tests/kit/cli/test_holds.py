"""`evictstream holds` on a machine whose clock is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evictstream.kit.cli.holds import _hear_of_kafka, _listed, _Looks
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.streams.broker import newest_times
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.errors import BrokerRefusedError
from evictstream.streams.settings import Settings
from tests.models.steering.test_brakes import record
from tests.streams.cli.steering_topic import KAFKA_US, SteeringTopic, set_clock

HOUR = 3_600


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> SteeringTopic:
    """A brake for two hours; this machine is three ahead of Kafka."""
    topic = SteeringTopic(BrakesReader)
    topic.put(b"night", record("night", endsAt=instant_text(KAFKA_US + 2 * HOUR * SECOND_US)))
    topic.reader.kafka_time.note_record(KAFKA_US // 1_000)
    set_clock(monkeypatch, 3 * HOUR)
    return topic


def states(topic: SteeringTopic) -> list[tuple[str, str]]:
    return [(name, one.state) for (_, name), one in _listed({"": topic.reader}, _Looks()).items()]


@pytest.mark.parametrize(("after", "shown"), [(0, [("night", "Holds")]), (2, [("night", "Spreads")]), (3, [])])
def test_a_brake_is_shown_as_kafka_ends_it(
    after: int, shown: list[Any], topic: SteeringTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard_us = KAFKA_US + after * HOUR * SECOND_US
    monkeypatch.setattr(newest_times, "newest_times_us", lambda *_: {("nodes", 0): heard_us})
    _hear_of_kafka(Settings(), topic.reader)
    assert states(topic) == shown


def refuses(*_: object) -> Iterator[int]:
    raise BrokerRefusedError("read it", reason="no")


def test_where_no_heartbeat_is_read_brakes_stay_shown(
    topic: SteeringTopic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: Callable[..., object] = refuses
    monkeypatch.setattr(newest_times, "newest_times_us", refused)
    _hear_of_kafka(Settings(), topic.reader)
    assert states(topic) == [("night", "Holds")]
    assert "brakes that are over may be shown" in capsys.readouterr().err
