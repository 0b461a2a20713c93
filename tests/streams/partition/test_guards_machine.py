"""Random lives of a guarded cluster, beside a simple model that finds its incidents from the whole log each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evictstream.models.instants import SECOND_US, instant_text, instant_us
from evictstream.models.steering.incidents import OpenIncident
from tests.harness.examples import examples
from tests.streams.partition.storms import NODES, SPREAD, STAY_SECONDS, Storm
from tests.streams.worker.story import NOON_US

WITHIN = 120
TEN_MINUTES = 600
REMEMBERED = 3_600
KEYS = ("agent", "dead")
ZONES = ("a", "b", "")
PERCENT = 100


class Happened(NamedTuple):
    """One thing of the log: at a second, nodes have other taints or zones, are deleted, pods come or go, and so on."""

    at: int
    nodes: tuple[tuple[int, str], ...] = ()  # with the zone of each
    key: str | None = None
    is_deleted: bool = False
    answered: Place | None = None
    pod: Pod | None = None  # that comes, or has gone


class Pod(NamedTuple):
    """A pod of a node, and since when it is gone and when it was evicted; None for not."""

    name: str
    number: int
    gone: int | None = None
    evicted: float | None = None
    owner: str = ""
    tolerates: bool = False  # all taints, for ever


class Place(NamedTuple):
    """Which incident: its key, its zone and its node (None for all), and its beginning."""

    key: str
    zone: str | None
    node: int | None
    begin: int


class Node(NamedTuple):
    """A node: its number, its zone, and since when it has its taint."""

    number: int
    zone: str
    key: str | None = None
    since: int = 0


class Naive:
    """Finds which incidents stand after a log, by counting all nodes and pods anew after each of its entries."""

    def __init__(self, count: int | None, share: int | None, *, of: str, by: str) -> None:
        self.count, self.share = count, share
        self.of, self.by = of, by
        self.log: list[Happened] = []
        self.earlier: dict[Place, int] = {}  # when an incident was told to begin where it does

    def incidents(self) -> dict[Place, int | None]:
        """When each was answered."""
        nodes = {number: Node(number, "a") for number in range(NODES)}
        pods = {pod.name: pod for pod in first_pods()}
        deleted: dict[int, tuple[int, Node, int]] = {}  # when, how it was, and as how much it counted
        found: dict[Place, int | None] = {}
        for one in self.log:
            for number, zone in one.nodes:
                before = nodes.pop(number, None)
                if one.is_deleted:
                    if before is not None:
                        deleted[number] = one.at, before, self._weight(before, pods, one.at)
                    continue
                deleted.pop(number, None)
                since = before.since if before is not None and before.key == one.key else one.at
                nodes[number] = Node(number, zone, one.key, since)
            if one.pod is not None:
                pods[one.pod.name] = one.pod
            if one.answered is not None and found[one.answered] is None:
                found[one.answered] = one.at
            found = {
                each: at for each, at in found.items() if any(self.covers(each, at, node) for node in nodes.values())
            }
            gone = [(node, weight) for at, node, weight in deleted.values() if one.at < at + TEN_MINUTES]
            known = [node.zone for node in (*nodes.values(), *(node for node, _ in gone))]
            weights = [(node, self._weight(node, pods, one.at)) for node in nodes.values()] + gone
            if self.of == "ownersLosingAll":
                weights = list(self._losing(nodes, pods, one.at))
            leaving = {pod.number for pod in pods.values() if pod.gone is None and not pod.tolerates}
            for part in self._parts():
                there = [(node, weight) for node, weight in weights if is_in(part, node)]
                with_pods = {node.key for node in nodes.values() if is_in(part, node) and node.number in leaving}
                limits = [] if self.count is None else [self.count]
                if self.share is not None:
                    limits.append(sum(part[0] in (None, zone) for zone in known) * self.share // PERCENT)
                self._find(part, there, found, limit=min(limits), with_pods=with_pods, live=set(nodes), now=one.at)
        return found

    def since(self, number: int, at: float) -> int:
        """When a node got the taint that it had at an instant; a pod that came later has a later window."""
        node = Node(number, "a")
        for one in self.log:
            if one.at <= at and number in dict(one.nodes):
                node = node if one.key == node.key and not one.is_deleted else Node(number, "a", one.key, one.at)
        return node.since

    def _parts(self) -> list[tuple[str | None, int | None]]:
        if self.by == "zone":
            return [(zone, None) for zone in ZONES]
        return [(None, number) for number in range(NODES)] if self.by == "node" else [(None, None)]

    def _weight(self, node: Node, pods: dict[str, Pod], now: int) -> int:
        """Count the pods of a node, and those that were evicted since its taint came, for an hour."""
        if self.of == "nodes":
            return 1
        return sum(leaves(pod, node, now) for pod in pods.values() if pod.number == node.number)

    @staticmethod
    def _losing(nodes: dict[int, Node], pods: dict[str, Pod], now: int) -> Iterator[tuple[Node, int]]:
        """Each owner of which no pod stays, on the node that got its taint last of those that its pods leave."""
        for owner in sorted({pod.owner for pod in pods.values()} - {""}):
            of_owner = [pod for pod in pods.values() if pod.owner == owner]
            left = [nodes[pod.number] for pod in of_owner if leaves(pod, nodes.get(pod.number), now)]
            if left and all(pod.gone is not None or leaves(pod, nodes.get(pod.number), now) for pod in of_owner):
                yield max(left, key=lambda node: node.since), 1

    @staticmethod
    def covers(place: Place, answered: int | None, node: Node) -> bool:
        to = node.since if answered is None else answered
        return node.key == place.key and is_in(place[1:3], node) and place.begin <= node.since <= to

    def _find(
        self,
        part: tuple[str | None, int | None],
        nodes: list[tuple[Node, int]],
        found: dict[Place, int | None],
        *,
        limit: int,
        with_pods: set[str | None],
        live: set[int],
        now: int,
    ) -> None:
        """Add the incidents that begin now; one that waits begins earlier with what exceeds the guard before it.

        Each has a node that is there: deleted ones alone begin none.
        """
        for key in KEYS:
            if key not in with_pods:
                continue
            answered = [one for one in found.items() if one[1] is not None]
            waiting = [place for place, at in found.items() if at is None and place[:3] == (key, *part)]
            free = sorted(
                (node.since, weight, node.number in live)
                for node, weight in nodes
                if node.key == key and not any(self.covers(*one, node) for one in answered)
            )
            for end, _, _ in free:
                within = [one for one in free if end - WITHIN <= one[0] <= end]
                place = Place(key, *part, within[0][0])
                if any(one.begin <= place.begin for one in waiting):
                    break
                if sum(weight for _, weight, _ in within) > limit and any(is_there for _, _, is_there in within):
                    near = [one for one in waiting if one.begin <= place.begin + WITHIN]
                    if near:
                        del found[near[0]]
                        self.earlier.setdefault(place, now)
                    found[place] = None
                    break


def first_pods() -> Iterator[Pod]:
    """The pods of a storm; some owners have pods on two or three nodes."""
    for number in range(NODES):
        yield Pod(f"goes-{number}", number, owner=f"g{number // 2}")
        yield Pod(f"stays-{number}", number, owner=f"s{number // 3}")


def leaves(pod: Pod, node: Node | None, now: int) -> bool:
    """Whether a pod has to leave, or was evicted since the taint of its node came, and is remembered."""
    if node is None or node.key is None or pod.tolerates:
        return False
    return pod.gone is None or (pod.evicted is not None and pod.evicted >= node.since and now < pod.gone + REMEMBERED)


def is_in(part: tuple[str | None, int | None], node: Node) -> bool:
    zone, number = part
    return zone in (None, node.zone) and number in (None, node.number)


class GuardedCluster(RuleBasedStateMachine):
    """Nodes get taints and lose them, move, are deleted and come back; people answer; workers are killed."""

    world: Storm
    naive: Naive

    @initialize(
        count=st.none() | st.integers(0, 4),
        share=st.none() | st.sampled_from([0, 10, 25, 34, 50, 100]),
        by=st.sampled_from(["taintKey", "zone", "node"]),
        of=st.sampled_from(["nodes", "pods", "ownersLosingAll"]),
    )
    def begin(self, count: int | None, share: int | None, by: str, of: str) -> None:
        of = "pods" if by == "node" and of == "nodes" else of
        by = by if of != "ownersLosingAll" else "taintKey"
        share = share if of == "nodes" else None
        count = 2 if count is None and share is None else count
        guard: dict[str, Any] = {"withinSeconds": WITHIN}
        guard |= {} if count is None else {"count": count}
        guard |= {} if share is None else {"sharePercent": share}
        guard |= {"of": of, "by": by}
        self.world, self.naive = Storm(guard=guard), Naive(count, share, of=of, by=by)
        self.answers: list[dict[str, Any]] = []
        self.verdicts: dict[Place, str] = {}
        self.approved: set[Place] = set()
        self.nodes = [Node(number, "a") for number in range(NODES)]
        self.pods = {pod.name: pod for pod in first_pods()}
        for pod in first_pods():
            seconds = STAY_SECONDS if pod.name.startswith("stays") else None
            self.world.pod(pod.name, pod.number, seconds, f"ReplicaSet/{pod.owner}")
        self.zones: list[list[tuple[int, str]]] = [[(0, "a")] for _ in range(NODES)]  # since when each has its zone
        self.now = 1
        self.world.logic.firing.look_at_policies()  # each second
        self.world.run(self.now)

    def _happened(self, **fields: Any) -> None:
        """Note it, let the partition have its turn, and then two seconds pass."""
        self.naive.log.append(Happened(self.now, **fields))
        self.world.logic.firing.look_at_policies()  # each second
        self.world.run(self.now)
        self.now += 2
        self.world.run(self.now)

    @rule(nodes=st.sets(st.integers(0, NODES - 1), min_size=1, max_size=6), key=st.none() | st.sampled_from(KEYS))
    def change(self, nodes: set[int], key: str | None) -> None:
        self._tell({number: self.nodes[number].zone for number in sorted(nodes)}, key)

    def _tell(self, zones: dict[int, str], key: str | None) -> None:
        for number, zone in zones.items():
            if key != self.nodes[number].key:  # so that what was issued for the other key is cancelled
                self.world.node(number, zone=zone)
            self.world.node(number, *([] if key is None else [key]), zone=zone)
            self.nodes[number] = Node(number, zone, key)
        self._happened(nodes=tuple(zones.items()), key=key)

    @rule(number=st.integers(0, NODES - 1), zone=st.sampled_from(ZONES))
    def move(self, number: int, zone: str) -> None:
        self.zones[number].append((self.now, zone))
        self._tell({number: zone}, self.nodes[number].key)

    @rule(nodes=st.sets(st.integers(0, NODES - 1), min_size=1, max_size=3))
    def delete(self, nodes: set[int]) -> None:
        for number in sorted(nodes):
            self.world.delete(number)
            self.nodes[number] = Node(number, self.nodes[number].zone)
        self._happened(nodes=tuple((number, "") for number in sorted(nodes)), is_deleted=True)

    @rule(nodes=st.sets(st.integers(0, NODES - 1), min_size=1, max_size=3), key=st.sampled_from(KEYS))
    def vanish(self, nodes: set[int], key: str) -> None:
        """Nodes get a taint, and are deleted soon."""
        self.change(nodes, key)
        self.delete(nodes)

    @precondition(lambda self: bool(self.pods))
    @rule(which=st.integers(0, 2 * NODES))
    def pod_goes(self, which: int) -> None:
        self._remove_pod(sorted(self.pods)[which % len(self.pods)])

    @precondition(lambda self: bool(self.pods.keys() & self.world.gone()))
    @rule()
    def evicted_pods_go(self) -> None:
        for name in sorted(self.pods.keys() & self.world.gone()):
            self._remove_pod(name)

    def _remove_pod(self, name: str) -> None:
        pod = self.pods.pop(name)
        evicted = [seconds_of(one["issuedAt"]) for one in self.world.evicts["lab"] if one["podUid"] == name]
        self.world.pod_gone(name, pod.number)
        self._happened(pod=pod._replace(gone=self.now, evicted=max(evicted, default=None)))

    @rule(
        number=st.integers(0, NODES - 1),
        seconds=st.sampled_from([None, STAY_SECONDS, -1]),
        owner=st.sampled_from(["g0", "g1", "s0", ""]),
    )
    def pod_comes(self, number: int, seconds: int | None, owner: str) -> None:
        pod = Pod(f"new-{self.now}", number, owner=owner, tolerates=seconds == -1)
        self.world.pod(pod.name, number, seconds, owner and f"ReplicaSet/{owner}")
        self.pods[pod.name] = pod
        self._happened(pod=pod)

    @rule(seconds=st.sampled_from([1, 30, WITHIN, 2 * WITHIN, TEN_MINUTES]))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.world.run(self.now)
        self._happened()

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
        self._happened()

    @invariant()
    def the_model_finds_the_same(self) -> None:
        found = {
            place_of(one): (one.answered_us - NOON_US) // SECOND_US if one.answered_us else None
            for one in self.world.incidents()
        }
        assert found == self.naive.incidents()
        # One that begins with the taints of deleted nodes may begin when an earlier one did that has been answered.
        self.verdicts = {place: verdict for place, verdict in self.verdicts.items() if found.get(place) is not None}
        self.approved &= self.verdicts.keys()

    @invariant()
    def what_an_incident_holds_is_not_issued(self) -> None:
        """Nothing is, from when it was found until it is approved; the model says what it covers."""
        covering = {place: at for place, at in self.naive.incidents().items() if place not in self.approved}
        for command in self.world.evicts["lab"]:
            if command["attempt"] != 1:
                continue
            key, issued = command["reason"]["taint"]["key"], seconds_of(command["issuedAt"])
            number = int(command["node"][1:])
            since = self.naive.since(number, issued)
            zone = [zone for at, zone in self.zones[number] if at <= issued][-1]
            for place, answered in covering.items():
                if self.naive.covers(place, answered, Node(number, zone, key, since)):
                    assert issued < max(self._opened(place), self.naive.earlier.get(place, 0)), "it had gone before"

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
    node = None if incident.node is None else int(incident.node[1:])
    return Place(incident.taint, incident.zone, node, (incident.from_us - NOON_US) // SECOND_US)


def at_text(seconds: int) -> str:
    return instant_text(NOON_US + seconds * SECOND_US)


def seconds_of(text: str) -> float:
    return (instant_us(text) - NOON_US) / SECOND_US


TestGuardedCluster = GuardedCluster.TestCase
TestGuardedCluster.settings = settings(max_examples=examples(100), stateful_step_count=25, deadline=None)
