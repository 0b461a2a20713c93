"""What a brake holds: no request for it, no write to the cluster, and an answer that it is held."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.kubernetes.shapes import ZONE_LABEL
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.broker import kafka_time
from evictstream.streams.executor.cluster_brakes import UNBRAKED, WAITED_FOR_SECONDS
from evictstream.streams.executor.eviction import UNKNOWN_SECONDS, ExecutorMode, PodEvictor, PutOff
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.pod_requests import ApiReply, PodRequests
from evictstream.streams.kubernetes.connection import Connection
from tests.models.execution.samples import T0_US, command
from tests.streams.executor.braking import SetBrakes
from tests.streams.executor.conftest import TAINTED, command_now

WRITES = [ExecutorMode.DELETE, ExecutorMode.EVICT]


@pytest.fixture
def brakes() -> SetBrakes:
    return SetBrakes()


def evict(
    requests: PodRequests,
    brakes: SetBrakes,
    mode: ExecutorMode = ExecutorMode.DELETE,
    one: EvictionCommand | None = None,
) -> CommandAnswer | PutOff:
    looks = NodeLooks(requests, lists=False)
    evictor = PodEvictor(requests=requests, looks=looks, mode=mode, brakes=brakes.of_cluster())
    return evictor.evict(command_now() if one is None else one, 0)


def held_by(found: CommandAnswer | PutOff) -> str | None:
    assert isinstance(found, CommandAnswer)
    return found.held_by if found.outcome is Outcome.HELD else None


@pytest.mark.parametrize("mode", WRITES)
def test_no_request_is_made_for_what_is_held(
    mode: ExecutorMode, api: FakeApi, connection: Connection, brakes: SetBrakes
) -> None:
    brakes.set(taints=["maintenance"])
    found = evict(PodRequests(connection), brakes, mode)
    assert held_by(found) == "b1"
    assert isinstance(found, CommandAnswer)
    assert found.reason == "brake b1 of anna holds it until it is released: storm"
    assert not api.requests


class BrakingRequests(PodRequests):
    """Somebody sets a brake right after one of the requests."""

    def __init__(self, connection: Connection, brakes: SetBrakes, after: str) -> None:
        super().__init__(connection)
        self._brakes = brakes
        self._after = after

    def node(self, name: str) -> Any:
        found = super().node(name)
        self._note("node")
        return found

    def mark(self, *arguments: Any, **more: Any) -> ApiReply:
        found = super().mark(*arguments, **more)
        self._note("mark")
        return found

    def _note(self, request: str) -> None:
        if request == self._after:
            self._brakes.set()


@pytest.mark.parametrize("mode", WRITES)
def test_a_brake_between_look_and_write_saves_the_pod(
    mode: ExecutorMode, api: FakeApi, connection: Connection, brakes: SetBrakes
) -> None:
    assert held_by(evict(BrakingRequests(connection, brakes, "node"), brakes, mode)) == "b1"
    assert not api.writes


def test_a_brake_between_mark_and_delete_saves_the_pod(api: FakeApi, connection: Connection, brakes: SetBrakes) -> None:
    assert held_by(evict(BrakingRequests(connection, brakes, "mark"), brakes)) == "b1"
    assert [write.what for write in api.writes] == ["patch pods/status"]


@pytest.mark.parametrize("mode", WRITES)
@pytest.mark.parametrize(("zone", "holder"), [("z-a", "b1"), ("z-b", None), (None, None)])
def test_a_zone_is_that_of_the_node(
    mode: ExecutorMode, zone: str | None, holder: str | None, api: FakeApi, connection: Connection, brakes: SetBrakes
) -> None:
    labels = {} if zone is None else {ZONE_LABEL: zone}
    api.put("Node", "n-1", uid="uid-n-1", metadata={"labels": labels}, spec=TAINTED)
    brakes.set(zones=["z-a"])
    assert held_by(evict(PodRequests(connection), brakes, mode)) == holder
    assert bool(api.writes) is (holder is None)


@pytest.mark.parametrize("mode", WRITES)
def test_nothing_is_written_while_brakes_are_unknown(
    mode: ExecutorMode, api: FakeApi, connection: Connection, brakes: SetBrakes
) -> None:
    brakes.unknown = "not read"
    assert evict(PodRequests(connection), brakes, mode) == PutOff(seconds=UNKNOWN_SECONDS, reason="not read")
    assert not api.requests


def test_a_hold_that_ends_soon_is_waited_for(connection: Connection, brakes: SetBrakes) -> None:
    now_us = time.time_ns() // 1_000
    brakes.set(endsAt=instant_text(now_us + int(WAITED_FOR_SECONDS / 2) * SECOND_US), spreadSeconds=0)
    found = evict(PodRequests(connection), brakes)
    assert isinstance(found, PutOff)
    assert 0 < found.seconds <= WAITED_FOR_SECONDS / 2


END_US = T0_US + 3_600 * SECOND_US
RELEASED: dict[str, Any] = {"releasedBy": "anna", "spreadSeconds": 600}


def at(seconds: int) -> str:
    return instant_text(END_US + seconds * SECOND_US)


@pytest.mark.parametrize(
    ("fields", "issued", "is_held"),
    [
        pytest.param({}, -1, True, id="issued before the end"),
        pytest.param({}, 1, False, id="spread by who issued it"),
        pytest.param({"zones": ["z-a"]}, 1, True, id="of a zone, which only the executor knows"),
    ],
)
def test_what_was_due_is_spread_after_the_end(
    fields: dict[str, Any], issued: int, *, is_held: bool, brakes: SetBrakes
) -> None:
    brakes.set(appended_us=END_US, **RELEASED, **fields)
    late = command(issued_at=at(issued), deadline=at(-60))
    found = brakes.of_cluster().held(late, END_US + 2 * SECOND_US, zone="z-a")
    assert (found is not None) is is_held


def test_the_longest_hold_counts(brakes: SetBrakes) -> None:
    brakes.set("short", endsAt=at(60), spreadSeconds=0)
    brakes.set("long", endsAt=at(600), spreadSeconds=0, zones=["z-a"])
    of_cluster, one = brakes.of_cluster(), command(issued_at=at(-5))
    found = [of_cluster.held(one, END_US, zone=zone) for zone in (None, "z-a")]
    assert [(each.brake, each.seconds) for each in found if each is not None] == [("short", 60.0), ("long", 600.0)]
    brakes.set("open")
    assert [each.brake for zone in (None, "z-a") if (each := of_cluster.held(one, END_US, zone=zone))] == ["open"] * 2


def test_only_the_brakes_of_the_cluster_stand(brakes: SetBrakes) -> None:
    brakes.set("here", clusters=["c1"])
    brakes.set("there", clusters=["c2"])
    brakes.set("over", endsAt=at(0))
    assert brakes.of_cluster().standing(END_US + 3_600 * SECOND_US) == ("here",)


AHEAD_US = 720 * SECOND_US
NIGHT: dict[str, Any] = {"endsAt": at(600), "appended_us": END_US}


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Moves the monotonic clock on, by seconds."""
    now = [1_000.0]
    monkeypatch.setattr(kafka_time, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def move(seconds: int) -> None:
        now[0] += seconds

    return move


@pytest.mark.parametrize(("spread", "held_for"), [(0, range(600)), (600, range(1_135))])
def test_a_clock_ahead_ends_no_brake(
    spread: int, held_for: range, brakes: SetBrakes, monotonic: Callable[[int], None]
) -> None:
    brakes.set(spreadSeconds=spread, **NIGHT)
    brakes.kafka_time.note_record(END_US // 1_000)
    of_cluster, late = brakes.of_cluster(), command(issued_at=at(-5), deadline=at(-60))
    for passed in range(0, 1_260, 60):
        found = of_cluster.held(late, END_US + passed * SECOND_US + AHEAD_US)
        assert (found is not None) is (passed in held_for), passed
        monotonic(60)


def test_a_hold_is_waited_for_by_kafkas_clock(brakes: SetBrakes, monotonic: Callable[[int], None]) -> None:
    brakes.set(spreadSeconds=0, **NIGHT)
    brakes.kafka_time.note_record(END_US // 1_000)
    monotonic(590)
    found = brakes.of_cluster().held(command(issued_at=at(-5)), END_US + 590 * SECOND_US + AHEAD_US)
    assert found is not None
    assert found.wait_seconds == pytest.approx(10)


def test_what_kafka_confirms_ends_what_was_read_late(brakes: SetBrakes, monotonic: Callable[[int], None]) -> None:
    brakes.set(spreadSeconds=0, **NIGHT)
    brakes.kafka_time.note_record(END_US // 1_000)  # at a start, an hour after it was appended
    now_us, late = END_US + 3_600 * SECOND_US, command(issued_at=at(-5))
    of_cluster = brakes.of_cluster()
    assert of_cluster.standing(now_us) == ()
    assert of_cluster.held(late, now_us) is not None
    of_cluster.note_answer(now_us // 1_000)
    brakes.kafka_time.note_record(END_US // 1_000)
    assert of_cluster.held(late, now_us) is None


def test_a_brake_stands_by_kafkas_clock(brakes: SetBrakes, monotonic: Callable[[int], None]) -> None:
    brakes.set(spreadSeconds=0, **NIGHT)
    of_cluster = brakes.of_cluster()
    of_cluster.note_answer(END_US // 1_000)
    assert of_cluster.standing(END_US + AHEAD_US) == ("b1",)
    monotonic(600)
    assert of_cluster.standing(END_US + 600 * SECOND_US + AHEAD_US) == ()


def test_who_observes_knows_no_brakes() -> None:
    assert UNBRAKED.objection() is None
    assert not UNBRAKED.brakes.standing
