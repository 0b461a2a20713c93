"""A recording played into the topics: which events, when, with which times, and what became of them.

Each event is read as the service would read it before it is sent, so an import leaves no dead letters behind.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from evictstream.kit.recordings.entries import Entry, Flaw, Item, Skipped, WatchEnded, watch_event
from evictstream.kit.recordings.pace import FeedClock, Pace, Restamp
from evictstream.kit.recordings.trimming import trimmed
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.envelope import InputLimits, refused_value
from evictstream.models.messages.events import Origin
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.errors import FoundProblemError, WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name
from evictstream.streams.settings import Settings

_NOWHERE: Final = Origin("", 0, 0)


class Sink(Protocol):
    """Where events go; `evictstream.streams.feed.publisher.Publisher` is one."""

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Take a record."""


@dataclasses.dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to import.

    Attributes:
        cluster: overrides what is recorded; None takes that.
        pace: how much faster than recorded, None as fast as can be.
        restamp: move recorded times so that the first is now.
        trim: send only the fields in use.
    """

    cluster: str | None = None
    pace: float | None = 1.0
    restamp: bool = False
    trim: bool = False


@dataclasses.dataclass(slots=True)
class ImportCounts:
    """What became of the lines so far.

    Attributes:
        handed_over: events given to the sink, by kind.
        skipped: lines left out on purpose, by type.
        flaws: lines that could not be imported.
        ended: live watches that have ended.
        clusters: names under which events were sent.
        first_us: earliest recorded time among them, microseconds since 1970; None if none has one.
        last_us: latest.
    """

    handed_over: Counter[Kind] = dataclasses.field(default_factory=Counter)
    skipped: Counter[str] = dataclasses.field(default_factory=Counter)
    flaws: int = 0
    ended: list[WatchEnded] = dataclasses.field(default_factory=list)
    clusters: set[str] = dataclasses.field(default_factory=set)
    first_us: int | None = None
    last_us: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ImportCallbacks:
    """What an import calls while it runs.

    Attributes:
        flaw: gets each line that could not be imported.
        note: gets, once, a sentence on what becomes of recorded times.
        progress: called after each line.
        is_stopped: called before each line and while waiting; true ends the import.
    """

    flaw: Callable[[Flaw], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None
    progress: Callable[[], None] = lambda: None
    is_stopped: Callable[[], bool] = lambda: False


class Importer:
    """Plays items into a sink; `counts` grows meanwhile."""

    def __init__(
        self, settings: Settings, options: ImportOptions, clock: FeedClock, callbacks: ImportCallbacks
    ) -> None:
        """Check the options.

        Raises:
            WrongUseError: the options' cluster cannot be one.
        """
        self.counts = ImportCounts()
        self._topics: dict[Kind, str] = {"Node": settings.nodes_topic, "Pod": settings.pods_topic}
        self._longest_delay_us = int(settings.max_event_delay_seconds * SECOND_US)
        self._limits = InputLimits(settings.max_object_bytes, self._longest_delay_us)
        self._options = options
        self._cluster = None if options.cluster is None else check_cluster_name(options.cluster)
        self._clock = clock
        self._pace = Pace(options.pace, clock)
        self._restamp = Restamp(clock) if options.restamp else None
        self._callbacks = callbacks
        self._fed: Mapping[str, int] = {}

    def play(self, items: Iterable[Item | WatchEnded], sink: Sink, fed: Mapping[str, int]) -> None:
        """Send what can be sent, until the end or until stopped.

        Args:
            items: what was recorded.
            sink: where to.
            fed: clusters that must not be written, since a feed follows them, with the time at which it wrote last,
                microseconds since 1970.

        Raises:
            WrongUseError: the first event has no cluster and none was given.
            FoundProblemError: an event is of a cluster that a feed follows; what came before it was sent.
        """
        self._fed = fed
        for item in items:
            if self._callbacks.is_stopped():
                return
            match item:
                case Entry():
                    self._play(item, sink)
                case Skipped(type=type_):
                    self.counts.skipped[type_] += 1
                case Flaw():
                    self._flawed(item)
                case WatchEnded():
                    self.counts.ended.append(item)
            self._callbacks.progress()

    def _play(self, entry: Entry, sink: Sink) -> None:
        cluster = self._cluster or entry.cluster
        if not cluster:
            if not self.counts.clusters:
                problem = f"{entry.source} does not name its cluster"
                raise WrongUseError(problem, next_step="name it with --cluster")
            self._flawed(Flaw(entry.source, entry.line, "no cluster"))
            return
        if cluster in self._fed:
            raise _refusal(cluster, self._fed[cluster])
        key = cluster.encode()
        content = trimmed(entry.kind, entry.object) if self._options.trim else entry.object
        sent = msgspec.structs.replace(entry, cluster=cluster, object=content)
        try:
            self._check(entry.kind, key, watch_event(sent))
        except Unreadable as error:
            self._flawed(Flaw(entry.source, entry.line, str(error)))
            return
        self._note_times(entry.observed_at_us)
        self._pace.wait(entry.observed_at_us, self._callbacks.is_stopped)
        if self._callbacks.is_stopped():
            return
        if entry.observed_at_us is not None and self._restamp is not None:
            sent = msgspec.structs.replace(sent, observed_at_us=self._restamp.moved(entry.observed_at_us))
        sink.send(self._topics[entry.kind], key, watch_event(sent))
        self._count(entry, cluster)

    def _check(self, kind: Kind, key: bytes, value: bytes) -> None:
        if len(value) > self._limits.largest_value_bytes:  # a reader passes over what decides nothing, Kafka does not
            raise refused_value(value, self._limits)
        read = read_node_record if kind == "Node" else read_pod_record
        read(key, value, 0, _NOWHERE, self._limits)

    def _count(self, entry: Entry, cluster: str) -> None:
        counts = self.counts
        counts.handed_over[entry.kind] += 1
        counts.clusters.add(cluster)
        at_us = entry.observed_at_us
        if at_us is not None:
            counts.first_us = at_us if counts.first_us is None else min(at_us, counts.first_us)
            counts.last_us = at_us if counts.last_us is None else max(at_us, counts.last_us)

    def _flawed(self, flaw: Flaw) -> None:
        self.counts.flaws += flaw.lines
        self._callbacks.flaw(flaw)

    def _note_times(self, observed_at_us: int | None) -> None:
        """Say once, before the first event, what will become of recorded times."""
        if self.counts.clusters:
            return
        if observed_at_us is None:
            if self._options.restamp or self._options.pace is not None:
                self._callbacks.note("no recorded times: sent without a pace; their append times count")
        elif self._options.restamp:
            if self._options.pace is None or self._options.pace > 1:
                self._callbacks.note("faster than recorded: later times lie ahead, so their append times count instead")
        elif observed_at_us < self._clock.now_us() - self._longest_delay_us:
            limit = self._longest_delay_us / SECOND_US
            self._callbacks.note(
                f"recorded times are old (the first is {instant_text(observed_at_us)}): each event counts as observed"
                f" {limit:g} s before it is appended; --restamp moves them to now, `evictstream replay` keeps them"
            )


def _refusal(cluster: str, written_at_us: int) -> FoundProblemError:
    return FoundProblemError(
        f"{cluster} is a cluster that a feed follows (it wrote last at {instant_text(written_at_us)}): what is imported"
        " would be taken for its nodes and pods, and stay until its next listing, or forever",
        next_step=f"name the recording otherwise, --cluster {cluster}-recorded; --into-fed-cluster does it after all",
    )
