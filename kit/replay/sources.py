"""What can be replayed: a recording of topics, or files of others, which become records as a feed makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from evictstream.kit.inputs.opening import Input
from evictstream.kit.recordings.assumed_times import AssumedTimes
from evictstream.kit.recordings.entries import Entry, Item, WatchEnded, watch_event
from evictstream.kit.recordings.input_files import InputFiles
from evictstream.kit.recordings.old_keys import rekeyed
from evictstream.kit.recordings.record import STEERING_ROLES, RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import OLD_FORMAT, file_names, read_folder, read_manifest
from evictstream.kit.recordings.shortfalls import LeftOut, Shortfall
from evictstream.kit.replay.coverage import ListingCoverage
from evictstream.models.instants import MILLISECOND_US, instant_text
from evictstream.models.kubernetes.times import read_time
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name
from evictstream.streams.partitioner import partition_of


class RecordedFolder:
    """A recording of topics.

    Attributes:
        partitions: of its topics.
        has_results: whether executors have answered in it.
        has_decisions: whether it holds what the service has decided.
        clusters: names in the manifest; without one, the clusters read so far.
        total: records, as the manifest has them; None if it is missing.
    """

    def __init__(self, folder: Path, *, partitions: int) -> None:
        """Take a folder; `partitions` count if the recording was cut before it could say.

        Raises:
            WrongUseError: it holds no recording that this version can read.
        """
        manifest = read_manifest(folder)
        self._folder = folder
        self.partitions = partitions if manifest is None else manifest.partitions
        # One that was cut does not say which form its keys have, so each key is looked at.
        self._has_old_keys = manifest is None or manifest.format == OLD_FORMAT
        self._spread = self.partitions
        if manifest is None:
            names = file_names(folder).values()
            topics = {topic for topic, _ in names}
            self._spread = 1 + max((partition for _, partition in names), default=0)
        else:
            topics = {file.topic for file in manifest.files.values() if file.records}
        self.total = None if manifest is None else manifest.records
        self.has_results = "results" in topics
        self.has_decisions = "decisions" in topics
        self.clusters = set() if manifest is None else set(manifest.clusters)
        self._coverage = ListingCoverage()
        self._is_read = False

    def read(self) -> Iterator[RecordedRecord]:
        """Give records by time. Raises `RecordingError`, `WrongUseError`."""
        records = read_folder(self._folder)
        if self._has_old_keys:
            records = rekeyed(records, spread=self._spread, partitions=self.partitions)
        for record in records:
            if self.total is None and record.topic not in STEERING_ROLES:
                self.clusters.add(record.cluster)
            if not self._is_read:
                self._coverage.take(record)
            yield record
        self._is_read = True

    @property
    def unreadable(self) -> int:
        """Lines that cannot be read: none, for what a reader was handed is as it was."""
        return 0

    def shortfalls(self) -> Iterator[Shortfall]:
        """Give what is missing, after the first reading."""
        return self._coverage.shortfalls()

    def rows(self) -> Iterator[tuple[str, int | str]]:
        """Give what was assumed, left out, and is missing, for a table."""
        return _missing(self.shortfalls())

    def assumed(self) -> Iterator[tuple[str, int | str]]:
        """Give the assumptions: none."""
        return iter(())

    def summary(self) -> dict[str, object]:
        """Give the same for programs."""
        return {"missing": _as_json(self.shortfalls())}


class WatchFiles:
    """Files that `evictstream import` reads, to be read once or several times.

    Attributes:
        clusters: names in it.
        partitions: among which clusters are placed.
        has_results: never: what executors answer is not watched.
        has_decisions: never, for the same reason.
        total: not known before the end.
    """

    has_results = False
    has_decisions = False
    total: int | None = None

    def __init__(
        self,
        inputs: Sequence[Input],
        *,
        cluster: str | None,
        partitions: int,
        on_unbound: Callable[[Entry], None] | None = None,
        listed_at_us: int | None = None,
        unnamed: str | None = None,
    ) -> None:
        """Take files.

        Args:
            inputs: the files, none of them live.
            cluster: overrides what is recorded.
            partitions: among which clusters are placed, as topics would have them.
            on_unbound: gets each pod that is bound to no node, and so becomes no record, in the first reading.
            listed_at_us: time of lists, microseconds since 1970; None takes the latest instant within them.
            unnamed: the cluster of what names none, as kubectl and audit logs do not.
        """
        self._files = InputFiles(inputs)
        self._cluster = cluster
        self._unnamed = unnamed
        self.partitions = partitions
        self._on_unbound = on_unbound
        self._is_read = False
        self._left_out = LeftOut()
        self._coverage = ListingCoverage()
        self.clusters: set[str] = set()
        self._is_given = listed_at_us is not None
        self._listed_at_us = listed_at_us
        self._times = AssumedTimes(listed_at_us)

    def read(self) -> Iterator[RecordedRecord]:
        """Give records in the order of their times.

        Raises:
            WrongUseError: nothing tells an event's time, or its cluster, and none was given. While reading also
                `RecordingError`.
        """
        if self._listed_at_us is None:
            self._listed_at_us = self._files.latest_listed_us()
        times = AssumedTimes(self._listed_at_us)
        if not self._is_read:
            self._times, self._left_out, self._coverage = times, LeftOut(), ListingCoverage()
        offsets = Counter[tuple[Role, int]]()
        places: dict[bytes, int] = {}
        with self._files.opened(times) as items:
            for item in items:
                if isinstance(item, Entry) and item.node_name:
                    record = self._record(item, places, offsets)
                    if not self._is_read:
                        self._coverage.take(record)
                    yield record
                elif not self._is_read:
                    self._count(item)
        self._is_read = True

    def _count(self, item: Item | WatchEnded) -> None:
        """Count what is not given; once, for later readings may end early."""
        if isinstance(item, Entry):
            self.skipped["unbound"] += 1
            self._coverage.see_unbound(item.object)
            if self._on_unbound is not None:
                self._on_unbound(item)
        elif not isinstance(item, WatchEnded):  # no input is live
            self._left_out.take(item)

    @property
    def skipped(self) -> Counter[str]:
        """What is in order and not replayed, by its reason."""
        return self._left_out.skipped

    @property
    def unreadable(self) -> int:
        """Lines that cannot be read."""
        return self._left_out.unreadable

    def shortfalls(self) -> Iterator[Shortfall]:
        """Give what is missing, after the first reading."""
        yield from self._left_out.shortfalls()
        yield from self._coverage.shortfalls()

    def rows(self) -> Iterator[tuple[str, int | str]]:
        """Give what was assumed, left out, and is missing, for a table."""
        yield from self.assumed()
        for type_, count in sorted(self.skipped.items()):
            if type_ != "BOOKMARK":  # it changes nothing
                yield f"left out, {type_}", count
        yield from _missing(self._coverage.shortfalls())

    def assumed(self) -> Iterator[tuple[str, int | str]]:
        """Give the assumptions of the first reading."""
        times = self._times
        if times.listed and times.listed_at_us is not None:
            how = "given" if self._is_given else "assumed"
            yield f"listed objects, {how} of {instant_text(times.listed_at_us)}", times.listed
        if times.events:
            yield "events whose time is assumed", times.events

    def summary(self) -> dict[str, object]:
        """Give the same for programs."""
        times = self._times
        listed_at = None if times.listed_at_us is None else instant_text(times.listed_at_us)
        return {
            "listed": {"objects": times.listed, "at": listed_at, "isAssumed": not self._is_given},
            "assumedTimes": times.events,
            "leftOut": dict(sorted(self.skipped.items())),
            "missing": _as_json(self.shortfalls()),
        }

    def _record(self, entry: Entry, places: dict[bytes, int], offsets: Counter[tuple[Role, int]]) -> RecordedRecord:
        cluster = self._cluster or entry.cluster or self._unnamed
        if cluster is None:
            raise WrongUseError(f"{entry.source} does not name its cluster", next_step="give --cluster")
        assert entry.observed_at_us is not None  # noqa: S101 - `AssumedTimes` gives one to each
        if cluster not in self.clusters:
            self.clusters.add(check_cluster_name(cluster))
        key = cluster.encode()
        place = places.get(key)
        if place is None:
            place = places[key] = partition_of(key, self.partitions)
        topic: Role = "nodes" if entry.kind == "Node" else "pods"
        offset = offsets[topic, place]
        offsets[topic, place] += 1
        return RecordedRecord(
            topic=topic,
            partition=place,
            offset=offset,
            timestamp=-(-entry.observed_at_us // MILLISECOND_US),  # rounded up: the observation lies before
            key=key,
            value=watch_event(msgspec.structs.replace(entry, cluster=cluster)),
        )


def open_source(
    inputs: Sequence[Input],
    *,
    cluster: str | None,
    partitions: int,
    on_unbound: Callable[[Entry], None] | None = None,
    at: str | None = None,
) -> RecordedFolder | WatchFiles:
    """Tell a recording of topics, which is one folder, from files of other formats.

    Args:
        inputs: the folder, or files of which none is live.
        cluster: overrides what files tell.
        partitions: among which clusters of files are placed.
        on_unbound: gets each pod of a file that is bound to no node, in the first reading.
        at: instant of lists, RFC 3339.

    Raises:
        WrongUseError: there is a folder and something else, `cluster` would rename what a recording holds, or `at` is
            no instant.
    """
    listed_at_us = None if at is None else _instant_us(at)
    folder = recorded_folder(inputs)
    if folder is None:
        return WatchFiles(
            inputs,
            cluster=cluster,
            partitions=partitions,
            on_unbound=on_unbound,
            listed_at_us=listed_at_us,
        )
    if cluster is not None:
        raise WrongUseError("a recording names its clusters", next_step="omit --cluster")
    return RecordedFolder(folder, partitions=partitions)


def _missing(shortfalls: Iterable[Shortfall]) -> Iterator[tuple[str, int]]:
    for shortfall in shortfalls:
        yield shortfall.what, shortfall.amount


def _as_json(shortfalls: Iterable[Shortfall]) -> list[dict[str, object]]:
    return [
        {"what": str(shortfall.kind), "count": shortfall.amount, "text": shortfall.text} for shortfall in shortfalls
    ]


def recorded_folder(inputs: Sequence[Input]) -> Path | None:
    """Return the folder of a recording, if it is one.

    Raises:
        WrongUseError: there are other inputs too.
    """
    folders = [source.path for source in inputs if source.path is not None and source.path.is_dir()]
    if folders and len(inputs) > 1:
        raise WrongUseError("a recording cannot be combined with other files", next_step="name one folder, or files")
    return folders[0] if folders else None


def _instant_us(text: str) -> int:
    at_us = read_time(text)
    if at_us is None:
        raise WrongUseError(f"{text!r} is not a time", next_step="write it as 2026-11-21T10:00:00Z")
    return at_us
