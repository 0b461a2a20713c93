"""What a report draws, collected while a replay runs: taints of nodes, evictions and their stories, silences.

Some 3 KB for each eviction and 300 bytes for each taint are kept; the recording itself is not.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.evictions import EvictionsOfRun, ReplayedEviction
from evictstream.kit.replay.recorded_events import read_event
from evictstream.kit.replay.story import SourcedDecision, Storyteller, Teller
from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.kit.what_if.facts import NodeFacts, read_node_facts
from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.objects import ObjectError
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.events import NodeEvent
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import EventType

_MOST_EVICTIONS: Final = 100_000
"""Evictions that a report shows, the first ones: a page of them has 20 MB."""

_MOST_TAINTS: Final = 200_000
"""Taints that a report shows, the first ones."""

MOST_SENTENCES: Final = 40
"""Of one eviction's story: one that is tried again for hours says the same for hours."""

_SILENCE_SECONDS: Final = 60
"""A cluster of which nothing is recorded for so long was not watched, or its feed was away."""


class TaintBar(NamedTuple):
    """A `NoExecute` taint on a node. Instants are microseconds since 1970; `end_us` None: it was there at the end."""

    cluster: str
    node: str
    taint: str
    start_us: int
    end_us: int | None


class Silence(NamedTuple):
    """A time in which nothing was recorded of a cluster."""

    cluster: str
    start_us: int
    end_us: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All that is drawn.

    Attributes:
        taints: in the order in which they came.
        zones: of nodes, by cluster and node; empty where none is known.
        evictions: in the order in which they began.
        stories: sentences by eviction id, each with its instant.
        silences: in the order of their ends.
        left_out: evictions and taints beyond the limits.
        first_us: of the recording.
        last_us: of the recording, or of the last command where the replay went on after it.
    """

    taints: tuple[TaintBar, ...]
    zones: dict[tuple[str, str], str]
    evictions: tuple[ReplayedEviction, ...]
    stories: dict[str, list[str]]
    silences: tuple[Silence, ...]
    left_out: int
    first_us: int
    last_us: int

    def nodes(self) -> list[tuple[str, str, str]]:
        """List zone, cluster and name of every node that is drawn, in that order."""
        names = {(taint.cluster, taint.node) for taint in self.taints} | {
            (eviction.cluster, eviction.node) for eviction in self.evictions
        }
        return sorted((self.zones.get(place, ""), *place) for place in names)


class TimelineCollector:
    """Takes a replay's records and messages. Use `watched` around the records of one reading."""

    def __init__(self) -> None:
        self._taints: list[TaintBar] = []
        self._open: dict[tuple[str, str], dict[str, int]] = {}
        self._zones: dict[tuple[str, str], str] = {}
        self._teller = Storyteller()
        self._stories: defaultdict[str, list[str]] = defaultdict(list)
        self._heard_us: dict[str, int] = {}
        self._silences: list[Silence] = []
        self._first_us = self._last_us = 0
        self._left_out = 0

    def watched(self, records: Iterable[RecordedRecord]) -> Iterator[RecordedRecord]:
        """Pass records on, and note the taints of nodes."""
        for record in records:
            at_us = record.appended_us
            self._first_us = self._first_us or at_us
            self._last_us = max(self._last_us, at_us)
            cluster = record.cluster
            heard_us = self._heard_us.get(cluster)
            if heard_us is not None and at_us - heard_us > _SILENCE_SECONDS * SECOND_US:
                self._silences.append(Silence(cluster, heard_us, at_us))
            self._heard_us[cluster] = at_us
            if record.topic == "nodes" and record.value is not None:
                self._note_node(cluster, record, at_us)
            yield record

    def take(self, message: ReplayedMessage) -> None:
        """Keep the sentence of a decision."""
        if message.topic != "decisions":
            return
        decision = decode_decision(message.value)
        kept = self._stories.get(decision.eviction_id)
        if kept is None and len(self._stories) >= _MOST_EVICTIONS:
            return
        lines = self._stories[decision.eviction_id]
        if len(lines) < MOST_SENTENCES:
            how = Teller.PLAYED if message.is_played else Teller.REPLAY
            line = self._teller.tell(SourcedDecision(decision, message.at_us, how))
            lines.append(f"{line.at}  {line.text}{' (played)' if message.is_played else ''}")
        elif len(lines) == MOST_SENTENCES:
            lines.append("Further decisions are omitted; `evictstream explain` has all.")

    def timeline(self, evictions: EvictionsOfRun) -> Timeline:
        """Return the timeline, with the evictions of the same replay."""
        taints = list(self._taints)
        for (cluster, node), carried in self._open.items():
            taints += (TaintBar(cluster, node, taint, since_us, end_us=None) for taint, since_us in carried.items())
        shown = [one for number, one in enumerate(evictions) if number < _MOST_EVICTIONS]
        return Timeline(
            taints=tuple(
                sorted(taints[:_MOST_TAINTS], key=lambda one: (one.start_us, one.cluster, one.node, one.taint))
            ),
            zones=dict(self._zones),
            evictions=tuple(shown),
            stories=dict(self._stories),
            silences=tuple(self._silences),
            left_out=self._left_out + len(evictions) - len(shown) + max(0, len(taints) - _MOST_TAINTS),
            first_us=self._first_us,
            last_us=max(self._last_us, *(_latest_us(one) for one in shown), 0),
        )

    def _note_node(self, cluster: str, record: RecordedRecord, at_us: int) -> None:
        event = read_event(record)
        if not isinstance(event, NodeEvent):
            return
        place = cluster, event.node.name
        self._note_zone(place, record)
        is_gone = event.type is EventType.DELETED
        wanted = (
            set()
            if is_gone
            else {_text(taint.key, taint.value) for taint in event.node.taints if taint.effect == NO_EXECUTE}
        )
        carried = self._open.setdefault(place, {})
        for taint in [taint for taint in carried if taint not in wanted]:
            since_us = carried.pop(taint)
            if len(self._taints) < _MOST_TAINTS:
                self._taints.append(TaintBar(*place, taint, since_us, end_us=at_us))
            else:
                self._left_out += 1
        for taint in sorted(wanted):
            carried.setdefault(taint, at_us)

    def _note_zone(self, place: tuple[str, str], record: RecordedRecord) -> None:
        if place in self._zones or record.value is None:
            return
        try:
            facts = read_node_facts(record.value).facts
        except (Unreadable, ObjectError):
            return
        if isinstance(facts, NodeFacts):
            self._zones[place] = facts.zone or ""


def _latest_us(one: ReplayedEviction) -> int:
    return max(one.issued_at_us or 0, one.cancelled_at_us or 0)


def _text(key: str, value: str) -> str:
    return f"{key}={value}" if value else key
