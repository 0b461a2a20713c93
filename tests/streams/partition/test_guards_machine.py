"""Random lives of a guarded cluster, beside a simple model that finds its incidents from the whole log each time."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evictstream.models.instants import SECOND_US, instant_text, instant_us
from evictstream.models.steering.incidents import OpenIncident
from tests.harness.examples import examples
from tests.streams.partition.storms import NODES, SPREAD, Storm
from tests.streams.worker.story import NOON_US

WITHIN = 120
TEN_MINUTES = 600
KEYS = ("agent", "dead")
ZONES = ("a", "b", "")
PERCENT = 100


class Happened(NamedTuple):
    """One thing of the log: at a second, nodes have other taints or zones, are deleted, or an incident is answered."""

    at: int
    nodes: tuple[tuple[int, str], ...] = ()  # with the zone of each
    key: str | None = None
    is_deleted: bool = False
    answered: Place | None = None


class Place(NamedTuple):
    """Which incident: its key, its zone (None for all), and its beginning."""

    key: str
    zone: str | None
    begin: int


class Node(NamedTuple):
    """A node: its zone, and since when it has its taint."""

    zone: str
    key: str | None = None
    since: int = 0


class Naive:
    """Finds which incidents stand after a log, by counting all nodes anew after each of its entries."""

    def __init__(self, count: int | None, share: int | None, *, is_by_zone: bool) -> None:
        self.count, self.share = count, share
        self.is_by_zone = is_by_zone
        self.log: list[Happened] = []

    def incidents(self) -> dict[Place, int | None]:
        """When each was answered."""
        nodes = {number: Node("a") for number in range(NODES)}
        deleted: dict[int, tuple[int, str]] = {}
        found: dict[Place, int | None] = {}
        for one in self.log:
            for number, zone in one.nodes:
                before = nodes.pop(number, None)
                if one.is_deleted:
                    if before is not None:
                        deleted[number] = one.at, before.zone
                    continue
                deleted.pop(number, None)
                since = before.since if before is not None and before.key == one.key else one.at
                nodes[number] = Node(zone, one.key, since)
            if one.answered is not None and found[one.answered] is None:
                found[one.answered] = one.at
            found = {
                each: at for each, at in found.items() if any(self.covers(each, at, node) for node in nodes.values())
            }
            known = [node.zone for node in nodes.values()]
            known += [zone for at, zone in deleted.values() if one.at < at + TEN_MINUTES]
            for part in ZONES if self.is_by_zone else (None,):
                found |= self._new(part, nodes, found, sum(part in (None, each) for each in known))
        return found

    @staticmethod
    def covers(place: Place, answered: int | None, node: Node) -> bool:
        to = node.since if answered is None else answered
        return node.key == place.key and place.zone in (None, node.zone) and place.begin <= node.since <= to

    def _new(
        self, zone: str | None, nodes: dict[int, Node], found: dict[Place, int | None], known: int
    ) -> dict[Place, int | None]:
        limits = [] if self.count is None else [self.count]
        limits += [] if self.share is None else [known * self.share // PERCENT]
        new: dict[Place, int | None] = {}
        for key in KEYS:
            of_key = [node for node in nodes.values() if node.key == key and zone in (None, node.zone)]
            covered = [node for node in of_key if any(self.covers(*one, node) for one in found.items())]
            free = sorted(node.since for node in of_key if node not in covered)
            for end in free:
                within = [begin for begin in free if end - WITHIN <= begin <= end]
                if len(within) > min(limits):
                    new[Place(key, zone, within[0])] = None
                    break
        return new


class GuardedCluster(RuleBasedStateMachine):
    """Nodes get taints and lose them, move, are deleted and come back; people answer; workers are killed."""

    world: Storm
    naive: Naive

    @initialize(
        count=st.none() | st.integers(0, 4),
        share=st.none() | st.sampled_from([0, 10, 25, 34, 50, 100]),
        is_by_zone=st.booleans(),
    )
    def begin(self, count: int | None, share: int | None, is_by_zone: bool) -> None:  # noqa: FBT001 - a case
        count = 2 if count is None and share is None else count
        guard: dict[str, Any] = {"withinSeconds": WITHIN}
        guard |= {} if count is None else {"count": count}
        guard |= {} if share is None else {"sharePercent": share}
        guard |= {"by": "zone"} if is_by_zone else {}
        self.world, self.naive = Storm(guard=guard), Naive(count, share, is_by_zone=is_by_zone)
        self.answers: list[dict[str, Any]] = []
        self.verdicts: dict[Place, str] = {}
        self.approved: set[Place] = set()
        self.nodes = [Node("a")] * NODES
        self.zones: list[list[tuple[int, str]]] = [[(0, "a")] for _ in range(NODES)]  # since when each has its zone
        self.now = 1
        self.world.run(self.now)

    def _happened(self, **fields: Any) -> None:
        """Note it, let the partition have its turn, and then two seconds pass."""
        self.naive.log.append(Happened(self.now, **fields))
        self.world.run(self.now)
        self.now += 2
        self.world.run(self.now)

    @rule(nodes=st.sets(st.integers(0, NODES - 1), min_size=1, max_size=6), key=st.none() | st.sampled_from(KEYS))
    def change(self, nodes: set[int], key: str | None) -> None:
        self._tell({number: self.nodes[number].zone for number in sorted(nodes)}, key)

    def _tell(self, zones: dict[int, str], key: str | None) -> None:
        for number, zone in zones.items():
            self.world.node(number, *([] if key is None else [key]), zone=zone)
            self.nodes[number] = Node(zone, key)
        self._happened(nodes=tuple(zones.items()), key=key)

    @rule(number=st.integers(0, NODES - 1), zone=st.sampled_from(ZONES))
    def move(self, number: int, zone: str) -> None:
        self.zones[number].append((self.now, zone))
        self._tell({number: zone}, self.nodes[number].key)

    @rule(number=st.integers(0, NODES - 1))
    def delete(self, number: int) -> None:
        self.world.delete(number)
        self.nodes[number] = Node(self.nodes[number].zone)
        self._happened(nodes=((number, ""),), is_deleted=True)

    @rule(seconds=st.sampled_from([1, 30, WITHIN, 2 * WITHIN, TEN_MINUTES]))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.world.run(self.now)

    @precondition(lambda self: bool(self.world.incidents()))
    @rule(which=st.integers(0, 10), verdict=st.sampled_from(["Approved", "Rejected"]))
    def answer(self, which: int, verdict: str) -> None:
        incidents = self.world.incidents()
        incident = incidents[which % len(incidents)]
        kept = [one for one in self.answers if one["incident"] != incident.id]
        fields = {"why": "w", "by": "a", "answeredAt": at_text(self.now), "countsFrom": at_text(self.now)}
        self.answers = [{"incident": incident.id, "verdict": verdict, **fields}, *kept]
        self.world.apply(self.world.spec, *self.answers)
        place = place_of(incident)
        self.verdicts[place] = verdict
        if verdict == "Approved":
            self.approved.add(place)
        self._happened(answered=place)

    @rule()
    def die(self) -> None:
        self.world.die()
        self.world.logic.firing.look_at_policies()  # each second
        self._happened()

    @invariant()
    def the_model_finds_the_same(self) -> None:
        found = {
            place_of(one): (one.answered_us - NOON_US) // SECOND_US if one.answered_us else None
            for one in self.world.incidents()
        }
        assert found == self.naive.incidents()

    @invariant()
    def what_an_incident_holds_is_not_issued(self) -> None:
        """Nothing is, from when it was found until it is approved; the model says what it covers."""
        covering = {place: at for place, at in self.naive.incidents().items() if place not in self.approved}
        for command in self.world.evicts["lab"]:
            if command["attempt"] != 1:
                continue
            key, since = command["reason"]["taint"]["key"], seconds_of(command["windowStart"])
            issued = seconds_of(command["issuedAt"])
            zone = [zone for at, zone in self.zones[int(command["node"][1:])] if at <= issued][-1]
            for place, answered in covering.items():
                if self.naive.covers(place, answered, Node(zone, key, round(since))):
                    assert issued < self._opened(place), "it had gone before"

    def _opened(self, place: Place) -> float:
        of = [one for one in self.world.incidents() if place_of(one) == place]
        return (of[0].opened_us - NOON_US) / SECOND_US

    def teardown(self) -> None:
        """At the end all that no incident holds has gone."""
        if not hasattr(self, "world"):
            return
        self.world.run(self.now + TEN_MINUTES + SPREAD)
        held = {by for by, _ in self.world.held()}
        waits = any(self.verdicts.get(one) != "Approved" for one in self.naive.incidents())
        assert waits or not held


def place_of(incident: OpenIncident) -> Place:
    return Place(incident.taint, incident.zone, (incident.from_us - NOON_US) // SECOND_US)


def at_text(seconds: int) -> str:
    return instant_text(NOON_US + seconds * SECOND_US)


def seconds_of(text: str) -> float:
    return (instant_us(text) - NOON_US) / SECOND_US


TestGuardedCluster = GuardedCluster.TestCase
TestGuardedCluster.settings = settings(max_examples=examples(100), stateful_step_count=25, deadline=None)
