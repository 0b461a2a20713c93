"""What can be replayed: a recording of topics, or watch events, which become records as a feed makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from evictstream.streams.engine.kafka.partitioner import partition_of
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.recording import STDIN, Entry, Flaw, open_recordings, watch_event
from evictstream.streams.recordings.record import RecordedRecord, Role
from evictstream.streams.recordings.recording_folder import read_folder, read_manifest

MILLISECOND_US: Final = 1_000


class RecordedFolder:
    """A recording of topics.

    Attributes:
        partitions: of its topics.
        has_results: whether executors have answered in it.
        clusters: names in it.
        flaws: none: what a reader was handed is as it was.
    """

    def __init__(self, folder: Path, *, partitions: int) -> None:
        """Take a folder; `partitions` count if the recording was cut before it could say.

        Raises:
            WrongUseError: it holds no recording that this version can read.
        """
        manifest = read_manifest(folder)
        self._folder = folder
        self.partitions = partitions if manifest is None else manifest.partitions
        files = () if manifest is None else manifest.files.values()
        self.has_results = any(file.topic == "results" and file.records for file in files)
        self.clusters = set() if manifest is None else set(manifest.clusters)
        self.flaws = 0

    def read(self) -> Iterator[RecordedRecord]:
        """Give records by time. Raises `RecordingError`, `WrongUseError`."""
        return read_folder(self._folder)


class WatchFiles:
    """Files that `evictstream import` reads, to be read once or several times.

    Attributes:
        flaws: lines that could not be read, in the newest reading.
        skipped: lines that are not replayed, by type.
        clusters: names in it.
        partitions: among which nodes are spread.
        has_results: never: what executors answer is not watched.
    """

    has_results = False

    def __init__(
        self, names: Iterable[str], *, cluster: str | None, partitions: int, on_flaw: Callable[[Flaw], None]
    ) -> None:
        """Take names of files.

        Args:
            names: of files.
            cluster: overrides what is recorded; kubectl records none.
            partitions: among which nodes are spread, as topics would have them.
            on_flaw: gets each line that cannot be read, in the first reading.

        Raises:
            WrongUseError: standard input is among them, which cannot be read twice.
        """
        self._names = list(names)
        if STDIN in self._names:
            raise WrongUseError("standard input cannot be read twice", next_step="write it to a file")
        self._cluster = cluster
        self.partitions = partitions
        self._on_flaw: Callable[[Flaw], None] | None = on_flaw
        self.flaws = 0
        self.skipped: Counter[str] = Counter()
        self.clusters: set[str] = set()

    def read(self) -> Iterator[RecordedRecord]:
        """Give records in the order of their times.

        Raises:
            WrongUseError: an event has no time, or no cluster and none was given. While reading also `RecordingError`.
        """
        self.flaws, offsets = 0, Counter[tuple[Role, int]]()
        self.skipped.clear()
        places: dict[bytes, int] = {}
        with open_recordings(self._names) as items:
            for item in items:
                if isinstance(item, Entry):
                    if item.node_name:
                        yield self._record(item, places, offsets)
                    else:
                        self.skipped["unbound"] += 1
                elif isinstance(item, Flaw):
                    self.flaws += 1
                    if self._on_flaw is not None:
                        self._on_flaw(item)
                else:
                    self.skipped[getattr(item, "type", "end of a watch")] += 1
        self._on_flaw = None

    def _record(self, entry: Entry, places: dict[bytes, int], offsets: Counter[tuple[Role, int]]) -> RecordedRecord:
        cluster = self._cluster or entry.cluster
        if cluster is None:
            raise WrongUseError(f"{entry.source} names no cluster", next_step="give --cluster")
        if entry.observed_at_us is None:
            problem = f"{entry.source}, line {entry.line}: no time was recorded, as kubectl records none"
            raise WrongUseError(problem, next_step="record with a feed and `evictstream record`")
        self.clusters.add(cluster)
        key = f"{cluster}/{entry.node_name}".encode()
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
    names: Sequence[str], *, cluster: str | None, partitions: int, on_flaw: Callable[[Flaw], None]
) -> RecordedFolder | WatchFiles:
    """Tell a recording of topics, which is one folder, from files with watch events.

    Raises:
        WrongUseError: there is a folder and something else, or `cluster` would rename what a recording holds.
    """
    folders = [Path(name) for name in names if Path(name).is_dir()]
    if not folders:
        return WatchFiles(names, cluster=cluster, partitions=partitions, on_flaw=on_flaw)
    if len(names) > 1:
        raise WrongUseError("a recording is replayed alone", next_step="name one folder, or files of watch events")
    if cluster is not None:
        raise WrongUseError("a recording names its clusters", next_step="leave --cluster out")
    return RecordedFolder(folders[0], partitions=partitions)
