"""Random lives of clusters as a feed records them: twice, late, not while it is down, and after a restore of etcd.

What happens to nodes and pods is drawn by `tests.faults`; here is what their feed makes of it.
"""

from __future__ import annotations

import dataclasses
import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, TypeAlias

from evictstream.kit.oracle.records import InputTopic
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.faults.generate import SECOND_US, VIRTUAL_START_US, live
from tests.faults.objects import Json, watch_event
from tests.faults.plan import Shape
from tests.faults.scribe import MILLISECOND_US, Scribe, version_at

PARTITIONS: Final = 2
SHAPE: Final = Shape(active_seconds=90.0, largest_window_seconds=40, partitions=PARTITIONS, nodes=(1, 3), pods=(1, 4))
AFTER_SECONDS: Final = 100.0
"""Longer than any window, so that what is left over is left over for good."""
SILENCE_SECONDS: Final = 8
BEAT_US: Final = 2 * SECOND_US
TOPICS: Final[tuple[InputTopic, ...]] = ("nodes", "pods")

Address: TypeAlias = tuple[InputTopic, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """An object from an instant on; `shown` is its last state if it `is_gone`."""

    at_us: int
    topic: InputTopic
    key: bytes
    shown: Json
    is_gone: bool

    @property
    def metadata(self) -> Json:
        """Those of the object."""
        found = self.shown["metadata"]
        assert isinstance(found, dict)
        return found

    @property
    def uid(self) -> str:
        """That of the object."""
        return str(self.metadata["uid"])

    @property
    def node(self) -> str:
        """The name of its node, or its own if it is one."""
        found = self.shown["spec"]
        assert isinstance(found, dict)
        return str(self.metadata["name"] if self.topic == "nodes" else found.get("nodeName", ""))

    @property
    def address(self) -> Address:
        """The name that one object has at a time."""
        return self.topic, f"{self.metadata.get('namespace')}/{self.metadata['name']}"

    def of_version(self, version: int) -> Fact:
        """Give it a version."""
        metadata = {**self.metadata, "resourceVersion": str(version)}
        return dataclasses.replace(self, shown={**self.shown, "metadata": metadata})


class World(Scribe):
    """Takes down what happens in one cluster, without a feed's mistakes."""

    def __init__(self, chance: random.Random) -> None:
        """Nothing has happened yet."""
        super().__init__(chance, VIRTUAL_START_US, VIRTUAL_START_US)
        self.facts: list[Fact] = []

    def _tell(self, topic: InputTopic, cluster: str, key: bytes, kind: str, shown: Json, at_us: int) -> None:
        self.facts.append(Fact(at_us, topic, key, shown, kind == "DELETED"))


class Feed:
    """Records one cluster.

    Attributes:
        records: of all topics, in no order.
    """

    def __init__(self, chance: random.Random, cluster: str, *, beats: bool) -> None:
        """Begin to watch; `beats` says that it sends heartbeats."""
        self.records: list[tuple[int, InputTopic, bytes, bytes]] = []
        self._chance = chance
        self._cluster = cluster
        self._beats = beats
        self._epoch = 0
        self._set_back_us = 0
        self._newest = 0  # of the versions; no two states have one
        self._known: dict[Address, Fact] = {}
        self._ended: set[str] = set()

    def take(self, facts: Iterable[Fact], end_us: int) -> None:
        """Record facts in the order of their times."""
        chance, waiting = self._chance, sorted(facts, key=lambda fact: fact.at_us)
        down = sorted(_stretch(chance, end_us) for _ in range(chance.choice([0, 0, 1, 2])))
        restored_us = chance.randrange(VIRTUAL_START_US + 10 * SECOND_US, end_us) if chance.random() < 0.2 else None
        saved: dict[Address, Fact] = {}
        saved_us = 0 if restored_us is None else restored_us - chance.randrange(1, 40) * SECOND_US
        for at_us in range(VIRTUAL_START_US, end_us, BEAT_US):
            is_down = any(since_us <= at_us < until_us for since_us, until_us in down)
            while waiting and waiting[0].at_us < at_us:
                self._see(waiting.pop(0), is_told=not is_down)
            if at_us <= saved_us:
                saved = dict(self._known)
            if restored_us is not None and restored_us <= at_us:
                self._ended |= {fact.uid for fact in self._known.values()}
                self._ended -= {fact.uid for fact in saved.values()}
                self._known, restored_us = saved, None
                self._epoch, self._set_back_us, self._newest = 1, at_us - saved_us, 0
                self._list(at_us)
            elif not is_down and any(until_us <= at_us < until_us + BEAT_US for _, until_us in down):
                self._list(at_us)
            if self._beats and not is_down:
                self._signal(at_us, "HEARTBEAT")

    def _see(self, fact: Fact, *, is_told: bool) -> None:
        if fact.uid in self._ended:
            return
        self._newest = max(self._newest + 1, self._version(fact.at_us))
        fact = fact.of_version(self._newest)
        before = self._known.pop(fact.address, fact)
        if before.uid != fact.uid:
            self._ended.add(before.uid)
        if fact.is_gone:
            self._ended.add(fact.uid)
        else:
            self._known[fact.address] = fact
        if is_told:
            late_us = self._chance.randrange(5 * SECOND_US) if self._chance.random() < 0.02 else 0
            self._tell(fact, "DELETED" if fact.is_gone else "MODIFIED", fact.at_us, late_us)

    def _tell(self, fact: Fact, kind: str, at_us: int, late_us: int = 0) -> None:
        chance = self._chance
        value = watch_event(self._cluster, kind, fact.shown, at_us, **self._of_epoch())
        appended_us = at_us + chance.randrange(1, 50) * MILLISECOND_US + late_us
        self.records.append((appended_us, fact.topic, fact.key, value))
        if chance.random() < 0.05:
            again_us = appended_us + chance.randrange(5 * SECOND_US)
            self.records.append((again_us, fact.topic, fact.key, value))

    def _list(self, at_us: int) -> None:
        for fact in self._known.values():
            self._tell(fact, "ADDED", at_us)
        for topic in TOPICS:
            uids: defaultdict[str, list[str]] = defaultdict(list)
            for fact in self._known.values():
                if fact.topic == topic:
                    uids[fact.node].append(fact.uid)
            version = str(max(self._newest, self._version(at_us)))
            listing = {"resourceVersion": version, "after": "", "through": None, "uids": uids}
            self._signal(at_us + 50 * MILLISECOND_US, "LISTED", [topic], listing=listing)

    def _signal(self, at_us: int, kind: str, topics: Iterable[InputTopic] = TOPICS, **more: object) -> None:
        value = watch_event(self._cluster, kind, None, at_us, **self._of_epoch(), **more)
        for topic in topics:
            self.records.append((at_us + MILLISECOND_US, topic, self._cluster.encode(), value))

    def _of_epoch(self) -> dict[str, object]:
        return {"epoch": self._epoch} if self._epoch else {}

    def _version(self, at_us: int) -> int:
        return version_at(VIRTUAL_START_US, at_us - self._set_back_us)


@dataclasses.dataclass(frozen=True, slots=True)
class Life:
    """A recording, and how it is replayed."""

    records: list[RecordedRecord]
    settings: Settings
    plays_executor: bool


def draw_life(seed: int) -> Life:
    """Draw the recording of a seed: some minutes of one or two clusters."""
    chance = random.Random(seed)  # noqa: S311 - chance from a seed, to be had again
    end_us = VIRTUAL_START_US + int(SHAPE.active_seconds * SECOND_US)
    found: list[tuple[int, InputTopic, bytes, bytes]] = []
    for number in range(chance.choice([1, 1, 2])):
        world = World(chance)
        live(chance, world, f"c{number}", SHAPE, VIRTUAL_START_US)
        feed = Feed(chance, f"c{number}", beats=chance.random() < 0.4)
        feed.take(world.facts, end_us)
        found += feed.records
    records = [
        RecordedRecord(
            topic=topic,
            partition=partition_of(key, PARTITIONS),
            offset=number,
            timestamp=-(-at_us // MILLISECOND_US),
            key=key,
            value=value,
        )
        for number, (at_us, topic, key, value) in enumerate(sorted(found, key=lambda one: one[0]))
    ]
    settings = Settings.model_validate(
        {
            "partitions": PARTITIONS,
            "feed_silence_limit_seconds": SILENCE_SECONDS,
            "comparison_operators": chance.random() < 0.5,
        }
    )
    return Life(records, settings, plays_executor=chance.random() < 0.8)


def _stretch(chance: random.Random, end_us: int) -> tuple[int, int]:
    since_us = chance.randrange(VIRTUAL_START_US + 2 * SECOND_US, end_us - 2 * SECOND_US)
    return since_us, since_us + chance.randrange(1, 30) * SECOND_US
