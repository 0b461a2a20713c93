"""Random lives of a guarded cluster, beside a simple model that finds its incidents from the whole log each time."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evictstream.models.instants import SECOND_US, instant_text, instant_us
from tests.harness.examples import examples
from tests.streams.partition.storms import NODES, SPREAD, Storm
from tests.streams.worker.story import NOON_US

WITHIN = 120
TEN_MINUTES = 600
KEYS = ("agent", "dead")
PERCENT = 100


class Happened(NamedTuple):
    """One thing of the log: at a second, nodes have other taints, are deleted, or an incident is answered."""

    at: int
    nodes: tuple[int, ...] = ()
    key: str | None = None
    is_deleted: bool = False
    answered: tuple[str, int] | None = None


class Naive:
    """Finds which incidents stand after a log, by counting all nodes anew after each of its entries."""

    def __init__(self, count: int | None, share: int | None) -> None:
        self.count, self.share = count, share
        self.log: list[Happened] = []

    def incidents(self) -> list[tuple[str, int, int | None]]:
        """Key, beginning and answer of each."""
        tainted: dict[int, dict[str, int]] = {number: {} for number in range(NODES)}
        deleted: dict[int, int] = {}
        found: list[tuple[str, int, int | None]] = []
        for one in self.log:
            for number in one.nodes:
                before = tainted.pop(number, {})
                if one.is_deleted:
                    deleted[number] = one.at
                    continue
                deleted.pop(number, None)
                tainted[number] = {} if one.key is None else {one.key: before.get(one.key, one.at)}
            if one.answered is not None:
                found = [
                    (key, begin, one.at if answered is None and (key, begin) == one.answered else answered)
                    for key, begin, answered in found
                ]
            found = [each for each in found if any(self._covers(each, taints) for taints in tainted.values())]
            gone = sum(one.at < at + TEN_MINUTES for at in deleted.values())
            found += self._new(one.at, tainted, found, len(tainted) + gone)
        return found

    @staticmethod
    def _covers(incident: tuple[str, int, int | None], taints: dict[str, int]) -> bool:
        key, begin, answered = incident
        return key in taints and begin <= taints[key] <= (answered if answered is not None else taints[key])

    def _new(
        self, at: int, tainted: dict[int, dict[str, int]], found: list[tuple[str, int, int | None]], known: int
    ) -> list[tuple[str, int, int | None]]:
        limits = [] if self.count is None else [self.count]
        limits += [] if self.share is None else [known * self.share // PERCENT]
        new: list[tuple[str, int, int | None]] = []
        for key in KEYS:
            of_key = [{key: taints[key]} for taints in tainted.values() if key in taints]
            free = sorted(taints[key] for taints in of_key if not any(self._covers(one, taints) for one in found))
            for end in free:
                within = [begin for begin in free if end - WITHIN <= begin <= end]
                if len(within) > min(limits):
                    new.append((key, within[0], None))
                    break
        return new


class GuardedCluster(RuleBasedStateMachine):
    """Nodes get taints and lose them, are deleted and come back; people answer; workers are killed."""

    world: Storm
    naive: Naive

    @initialize(count=st.none() | st.integers(0, 4), share=st.none() | st.sampled_from([0, 10, 25, 34, 50, 100]))
    def begin(self, count: int | None, share: int | None) -> None:
        count = 2 if count is None and share is None else count
        guard: dict[str, Any] = {"withinSeconds": WITHIN}
        guard |= {} if count is None else {"count": count}
        guard |= {} if share is None else {"sharePercent": share}
        self.world, self.naive = Storm(guard=guard), Naive(count, share)
        self.answers: list[dict[str, Any]] = []
        self.verdicts: dict[tuple[str, int], str] = {}
        self.approved: set[tuple[str, int]] = set()
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
        for number in sorted(nodes):
            self.world.node(number, *([] if key is None else [key]))
        self._happened(nodes=tuple(sorted(nodes)), key=key)

    @rule(number=st.integers(0, NODES - 1))
    def delete(self, number: int) -> None:
        self.world.delete(number)
        self._happened(nodes=(number,), is_deleted=True)

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
        place = (incident.taint, (incident.from_us - NOON_US) // SECOND_US)
        self.verdicts[place] = verdict
        if verdict == "Approved":
            self.approved.add(place)
        self._happened(answered=place)

    @rule()
    def die(self) -> None:
        self.world.die()
        self.world.logic.firing.look_at_policies()  # each second

    @invariant()
    def the_model_finds_the_same(self) -> None:
        found = [
            (one.taint, (one.from_us - NOON_US) // SECOND_US, (one.answered_us - NOON_US) // SECOND_US)
            if one.answered_us
            else (one.taint, (one.from_us - NOON_US) // SECOND_US, None)
            for one in self.world.incidents()
        ]
        assert sorted(found, key=str) == sorted(self.naive.incidents(), key=str)

    @invariant()
    def what_an_incident_holds_is_not_issued(self) -> None:
        """Nothing is, from when it was found until it is approved; the model says what it covers."""
        covered = [one for one in self.naive.incidents() if one[:2] not in self.approved]
        for command in self.world.evicts["lab"]:
            if command["attempt"] != 1:
                continue
            key, since = command["reason"]["taint"]["key"], seconds_of(command["windowStart"])
            issued = seconds_of(command["issuedAt"])
            for of_key, begin, answered in covered:
                if of_key == key and begin <= since <= (since if answered is None else answered):
                    assert issued < self._opened(of_key, begin), "it had gone before"

    def _opened(self, key: str, begin: int) -> float:
        of = [one for one in self.world.incidents() if one.taint == key and one.from_us == NOON_US + begin * SECOND_US]
        return (of[0].opened_us - NOON_US) / SECOND_US

    def teardown(self) -> None:
        """At the end all that no incident holds has gone."""
        if not hasattr(self, "world"):
            return
        self.world.run(self.now + TEN_MINUTES + SPREAD)
        held = {by for by, _ in self.world.held()}
        waits = any(self.verdicts.get(one[:2]) != "Approved" for one in self.naive.incidents())
        assert waits or not held


def at_text(seconds: int) -> str:
    return instant_text(NOON_US + seconds * SECOND_US)


def seconds_of(text: str) -> float:
    return (instant_us(text) - NOON_US) / SECOND_US


TestGuardedCluster = GuardedCluster.TestCase
TestGuardedCluster.settings = settings(max_examples=examples(100), stateful_step_count=25, deadline=None)
