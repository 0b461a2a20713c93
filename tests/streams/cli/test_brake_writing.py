"""Brakes by Kafka's clock, and people who write the same one at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.instants import SECOND_US, instant_text, moment_at
from evictstream.models.messages.brake import Brake, decode_brake
from evictstream.models.steering.brakes import MOST_BRAKES, StandingBrake
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.cli.brake_writing import KEPT_FOR_ALL, end_brake, refuse_to_replace, set_brake
from evictstream.streams.cli.brakes import BrakesWriter
from evictstream.streams.cli.steering_records import REMEMBERED_SECONDS
from evictstream.streams.errors import FoundProblemError
from tests.models.steering.test_brakes import record
from tests.streams.cli.steering_topic import KAFKA_US, SteeringTopic, set_clock

HOUR = 3_600
DAY = 24 * HOUR
ALL: dict[str, Any] = {}
SHOP: dict[str, Any] = {"namespaces": ["shop"]}


class Topic(SteeringTopic):
    """The topic of brakes."""

    def __init__(self) -> None:
        super().__init__(BrakesReader)
        self.brakes = BrakesWriter(self.writer, self.reader)
        self.others = BrakesWriter(self.writer, self.reader)

    def has(self, name: str, **fields: Any) -> None:
        """A brake stands that somebody has set; nothing else was heard of Kafka."""
        self.put(name.encode(), record(name, **fields))
        self.forget_time()

    def hold(self, name: str, fields: dict[str, Any], seconds: int | None = 2 * HOUR) -> StandingBrake:
        return set_brake(self.brakes, brake(name, **fields), seconds)

    def standing(self, name: str = "night") -> Brake:
        found: StandingBrake = self.reader.brakes.standing[name]
        return found.brake


def brake(name: str, **fields: Any) -> Brake:
    return decode_brake(record(name, **fields))


def in_seconds(seconds: int) -> str:
    return instant_text(KAFKA_US + seconds * SECOND_US)


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture(params=[3 * HOUR, 40 * DAY, -40 * DAY], ids=["3 h ahead", "40 d ahead", "40 d behind"])
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this machine is wrong."""
    set_clock(monkeypatch, request.param)


@pytest.mark.usefixtures("clock")
def test_a_wrong_clock_releases_what_stands(topic: Topic) -> None:
    topic.has("night", endsAt=in_seconds(2 * HOUR))
    assert end_brake(topic.brakes, "night", "w").sentence.startswith("released brake night at 2027-01-15T08:00:00.")
    assert topic.standing().is_released


@pytest.mark.usefixtures("clock")
def test_a_wrong_clock_finds_what_has_ended(topic: Topic) -> None:
    topic.has("night", endsAt=in_seconds(-HOUR))
    assert end_brake(topic.brakes, "night", "w").sentence == f"brake night ended at {in_seconds(-HOUR)}"
    assert not topic.standing().is_released


@pytest.mark.usefixtures("clock")
def test_a_wrong_clock_replaces_nothing_that_holds(topic: Topic) -> None:
    topic.has("night", endsAt=in_seconds(2 * HOUR))
    with pytest.raises(FoundProblemError, match="the brake night holds something else"):
        topic.hold("night", SHOP)
    assert not topic.standing().namespaces


@pytest.mark.usefixtures("clock")
def test_a_wrong_clock_takes_the_name_of_what_has_ended(topic: Topic) -> None:
    topic.has("night", endsAt=in_seconds(-HOUR))
    topic.hold("night", SHOP)
    assert topic.standing().namespaces == ("shop",)


@pytest.mark.usefixtures("clock")
def test_a_wrong_clock_removes_no_brake_that_stands(topic: Topic) -> None:
    topic.has("old", endsAt=in_seconds(-(REMEMBERED_SECONDS + HOUR)))
    for number in range(210):
        topic.has(f"b{number}", endsAt=in_seconds(2 * HOUR))
    held = topic.hold("mine", ALL, seconds=HOUR)
    assert held.end_us is not None
    assert abs(held.end_us - KAFKA_US - HOUR * SECOND_US) < 5 * SECOND_US
    assert topic.reader.brakes.all.keys() == {"mine", *(f"b{number}" for number in range(210))}


def test_of_two_brakes_of_one_name_the_first_stands(topic: Topic) -> None:
    for first, second in ((ALL, SHOP), (SHOP, ALL)):
        for number in (0, 1):
            topic.put(b"night", None)
            topic.at_once(lambda: topic.others.write(brake("night", **first)), first=number)  # noqa: B023
            if number:
                topic.hold("night", first)
                continue
            with pytest.raises(FoundProblemError, match="the brake night holds something else"):
                topic.hold("night", second)
            assert list(topic.standing().namespaces) == first.get("namespaces", [])


def test_whoever_comes_second_while_the_first_writes_is_refused(topic: Topic) -> None:
    def second() -> None:
        with pytest.raises(FoundProblemError, match="holds something else"):
            set_brake(topic.others, brake("night", **SHOP), None)

    topic.at_once(second, first=1)
    held = topic.hold("night", ALL)
    assert topic.standing() == held.brake
    assert held.brake.ends_at is not None


def test_what_is_put_back_overtakes_nobody(topic: Topic) -> None:
    topic.has("night")
    written = topic.brakes.write(brake("night", **SHOP))
    later = topic.others.write(brake("night", why="later")).standing
    topic.brakes.put_back(written)
    assert topic.standing() == later.brake
    again = topic.brakes.write(brake("night", **SHOP))
    topic.at_once(lambda: topic.others.write(brake("night", why="latest")))
    topic.brakes.put_back(again)
    assert topic.standing().why == "latest"


def test_a_release_between_the_two_writes_stays(topic: Topic) -> None:
    topic.at_once(lambda: end_brake(topic.others, "night", "false alarm"), first=1)
    with pytest.raises(FoundProblemError, match="has released the brake night at the same time"):
        topic.hold("night", ALL)
    assert topic.standing().is_released
    released_at = topic.standing().ends_at
    assert released_at is not None
    assert abs(released_at - moment_at(KAFKA_US)).total_seconds() < 1


def test_who_prolongs_a_brake_at_once_is_told(topic: Topic) -> None:
    topic.at_once(lambda: topic.others.write(brake("night", why="longer")), first=1)
    with pytest.raises(FoundProblemError, match="anna has set the brake night at the same time"):
        topic.hold("night", ALL)
    assert topic.standing().why == "longer"


def test_a_release_ends_what_was_set_meanwhile(topic: Topic) -> None:
    topic.has("night", **SHOP)
    topic.at_once(lambda: topic.others.write(brake("night", endsAt=in_seconds(DAY), **SHOP)))
    assert end_brake(topic.brakes, "night", "w").ended_at is not None
    assert (topic.standing().is_released, topic.standing().ends_at) == (True, moment_at(KAFKA_US + DAY * SECOND_US))


def test_of_two_releases_the_first_counts(topic: Topic) -> None:
    topic.has("night")
    topic.at_once(lambda: end_brake(topic.others, "night", "first"))
    assert end_brake(topic.brakes, "night", "second").sentence.startswith("brake night ended at ")
    assert topic.standing().released_why == "first"


@pytest.fixture(scope="module")
def crowd() -> dict[str, bytes]:
    """As many brakes as there is room for but one, by id."""
    return {f"x{number}": record(f"x{number}") for number in range(MOST_BRAKES - 1)}


def test_one_brake_too_many_by_a_race_is_taken_back(topic: Topic, crowd: dict[str, bytes]) -> None:
    standing = {name: StandingBrake(decode_brake(value), KAFKA_US) for name, value in crowd.items()}
    topic.reader.view = type(topic.reader.view)(standing)
    topic.at_once(lambda: topic.put(b"other", record("other")))
    with pytest.raises(FoundProblemError, match="brake night does not hold: more than 1000 brakes"):
        topic.hold("night", ALL)
    assert topic.reader.brakes.objection() is None
    assert len(topic.reader.brakes.standing) == MOST_BRAKES


@pytest.mark.parametrize(("count", "fields", "fits"), [(990, SHOP, False), (990, ALL, True), (1_000, ALL, False)])
def test_the_last_brakes_are_for_all(count: int, fields: dict[str, Any], *, fits: bool, topic: Topic) -> None:
    assert MOST_BRAKES - KEPT_FOR_ALL == 990
    wanted = brake("mine", **fields)
    known = type(topic.reader.view)({f"x{number}": StandingBrake(wanted, 1) for number in range(count)})
    if fits:
        refuse_to_replace(known, wanted, lambda: KAFKA_US)
        return
    with pytest.raises(FoundProblemError, match=f"there are {count} brakes that are not over"):
        refuse_to_replace(known, wanted, lambda: KAFKA_US)


def test_only_brakes_that_are_not_over_can_be_too_many(topic: Topic) -> None:
    over = StandingBrake(brake("x", releasedBy="anna"), 1)
    known = type(topic.reader.view)({f"x{number}": over for number in range(MOST_BRAKES)})
    refuse_to_replace(known, brake("mine"), lambda: KAFKA_US)


def test_a_brake_set_again_while_old_ones_go_stays(topic: Topic) -> None:
    for number in range(3):
        topic.has(f"b{number}", endsAt=in_seconds(-40 * DAY))
    now_us = topic.brakes.now_us()
    topic.at_once(lambda: topic.put(b"b0", record("b0")), lambda: topic.put(b"b1", record("b1")))
    topic.brakes.remove_old(now_us)
    assert topic.reader.brakes.standing.keys() == {"b0", "b1"}
    assert (b"b0", None) not in topic.written


def test_a_removal_is_read_back_for_ended_brakes_too(topic: Topic) -> None:
    over = StandingBrake(brake("b1", releasedBy="anna"), 1)
    topic.reader.view = type(topic.reader.view)(ended={"b1": over})
    removed = topic.writer.remove("b1")
    assert (removed.before.all, topic.reader.brakes.all) == ({"b1": over}, {})


def test_a_record_with_an_odd_key_is_removed(topic: Topic) -> None:
    for key, shown in ((b"\xff\xfe", "hex:fffe"), (b"hex:fffe", "hex:6865783a66666665"), (b"odd", "odd")):
        topic.put(key, b"{")
        assert list(topic.reader.brakes.unreadable) == [shown]
        assert end_brake(topic.brakes, shown, "w").ended_at is not None
        assert topic.written[-1] == (key, None)
        assert topic.reader.brakes.objection() is None
    assert end_brake(topic.brakes, "hex:no", "w").sentence.startswith("there is no brake hex:no")
