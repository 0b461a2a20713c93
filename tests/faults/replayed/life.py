"""The recording of a random life: what happens to clusters, as a feed tells it that is never late.

What happens is drawn as for the simulated schedules. But each record is appended in the millisecond in which it
happens, so the oracle knows the instant of every decision. No two of them are whole seconds apart, so no change comes
in the very instant of a deadline.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from evictstream.kit.oracle.reading import place
from evictstream.kit.oracle.records import InputTopic
from evictstream.kit.recordings.record import RecordedRecord
from tests.faults.generate import VIRTUAL_START_US, live
from tests.faults.objects import Json, watch_event
from tests.faults.plan import Shape
from tests.faults.scribe import LONGEST_DELAY_US, MILLISECOND_US, Scribe

SHAPE: Final = Shape()
END_US: Final = VIRTUAL_START_US + int(SHAPE.active_seconds * 1_000_000)
FIRST_VERSIONS: Final = (1, 1_000, 10**9)
MILLISECONDS: Final = 1_000  # of a second: more happens in no life
AGAIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class Life:
    """Records of all partitions in the order of their times, and the names of the clusters."""

    seed: int
    records: tuple[RecordedRecord, ...]
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Fact:
    at_us: int
    topic: InputTopic
    cluster: str
    key: bytes
    kind: str
    shown: Json

    @property
    def metadata(self) -> dict[str, str]:
        found = self.shown["metadata"]
        assert isinstance(found, dict)
        return found


class _Chronicler(Scribe):
    """Takes down what happens, and tells nobody."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance, VIRTUAL_START_US, END_US)
        self.facts: list[_Fact] = []

    def _tell(self, topic: InputTopic, cluster: str, key: bytes, kind: str, shown: Json, at_us: int) -> None:
        self.facts.append(_Fact(at_us, topic, cluster, key, kind, shown))


def draw_life(seed: int) -> Life:
    """Draw the life of a seed; the same one for the same seed."""
    chance = random.Random(seed)
    chronicler = _Chronicler(chance)
    clusters = tuple(f"c{number}" for number in range(chance.randint(*SHAPE.clusters)))
    for cluster in clusters:
        live(chance, chronicler, cluster, SHAPE, VIRTUAL_START_US)
    versions = {cluster: chance.choice(FIRST_VERSIONS) for cluster in clusters}
    found: list[tuple[int, InputTopic, bytes, bytes]] = []
    taken: set[int] = set()
    for fact in _of_holders(sorted(chronicler.facts, key=lambda one: one.at_us)):
        at_ms = fact.at_us // MILLISECOND_US
        while at_ms % MILLISECONDS in taken:
            at_ms += 1
        taken.add(at_ms % MILLISECONDS)
        value = _event(fact, at_ms * MILLISECOND_US, versions)
        found.append((at_ms, fact.topic, fact.key, value))
        if chance.random() < AGAIN:
            found.append((at_ms + chance.randrange(1, LONGEST_DELAY_US // MILLISECOND_US), fact.topic, fact.key, value))
    return Life(seed, tuple(_records(sorted(found, key=lambda one: one[0]))), clusters)


def _of_holders(facts: Iterable[_Fact]) -> Iterator[_Fact]:
    """Leave out what comes of an object after another one had its name: a name has one holder at a time."""
    holders: dict[tuple[str, str, str], str] = {}
    ended: set[tuple[str, str]] = set()
    for fact in facts:
        name, uid = (fact.cluster, fact.topic, fact.metadata["name"]), fact.metadata["uid"]
        if (fact.cluster, uid) in ended:
            continue
        if holders.setdefault(name, uid) != uid:
            ended.add((fact.cluster, holders[name]))
            holders[name] = uid
        yield fact


def _event(fact: _Fact, at_us: int, versions: dict[str, int]) -> bytes:
    """Write the watch event. Versions of a cluster are its own, and the next one is the next number."""
    versions[fact.cluster] += 1
    shown = {**fact.shown, "metadata": {**fact.metadata, "resourceVersion": str(versions[fact.cluster])}}
    return watch_event(fact.cluster, fact.kind, shown, at_us)


def _records(found: list[tuple[int, InputTopic, bytes, bytes]]) -> list[RecordedRecord]:
    offsets: defaultdict[InputTopic, Counter[int]] = defaultdict(Counter)
    records = []
    for at_ms, topic, key, value in found:
        partition = place(key, SHAPE.partitions)
        offset = offsets[topic][partition]
        offsets[topic][partition] += 1
        records.append(
            RecordedRecord(topic=topic, partition=partition, offset=offset, timestamp=at_ms, key=key, value=value)
        )
    return records
