"""Reads the clusters and gaps in the rows of a service, for a command that shows them before it changes them.

Rows are read as a takeover reads them: `read_committed`, to the end of this moment. Where rows are only counted,
partitions are read one after the other, so that memory holds the keys of one only. The rows know nothing of input that
no worker has read yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from evictstream.models.eviction import EvictionState, RowError, RowKind, split_row_key
from evictstream.models.eviction.cluster import NO_STATE, ClusterState
from evictstream.models.eviction.node_rows import read_node_value
from evictstream.models.eviction.pod_rows import read_eviction_value
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, TRANSACTION_KEY
from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.errors import BrokerUnreachableError, FoundProblemError
from evictstream.streams.partition.clusters import Clusters
from evictstream.streams.worker.service_config import engine_config

if TYPE_CHECKING:
    from evictstream.models.eviction.cluster import Gap
    from evictstream.streams.settings import Settings

ENGINE_KEYS = frozenset({POSITIONS_KEY, TRANSACTION_KEY})


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRows:
    """Counts of one partition's rows of one cluster.

    Attributes:
        nodes: nodes that exist.
        pods: pods that exist.
        open_evictions: evictions that are scheduled, issued or repeating.
        remembered: all other rows: evictions that have ended, deleted nodes and deleted pods.
        state: heartbeats, epoch, and whether the cluster was forgotten.
    """

    nodes: int = 0
    pods: int = 0
    open_evictions: int = 0
    remembered: int = 0
    state: ClusterState = NO_STATE

    @property
    def is_anything(self) -> bool:
        """Whether there is anything to forget: rows, or a feed that sends heartbeats."""
        return any((self.nodes, self.pods, self.open_evictions, self.remembered)) or self.state.is_heard


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionRows:
    """The rows of one partition: its clusters by name, and its gap, if it has one."""

    clusters: Mapping[str, ClusterRows]
    gap: Gap | None


class Rows:
    """Collects the rows of one partition; the log may have several versions of a row."""

    def __init__(self) -> None:
        self.count = 0
        self._clusters = Clusters()
        self._keys: dict[str, dict[RowKind, set[bytes]]] = {}
        self._past: dict[str, set[bytes]] = {}

    def add(self, key: bytes, value: bytes | None) -> None:
        """Add one row; the last row of a key counts. Raises `RowError` for a row of another version."""
        self.count += 1
        if key in ENGINE_KEYS or self._clusters.load(key, value):
            return
        kind, aggregate_key, _ = split_row_key(key)
        cluster = aggregate_key.partition("/")[0]
        keys = self._keys.setdefault(cluster, {each: set() for each in RowKind})[kind]
        past = self._past.setdefault(cluster, set())
        keys.discard(key)
        past.discard(key)
        if value is not None:
            (past if _is_past(kind, key, value) else keys).add(key)

    def found(self) -> PartitionRows:
        """Count the latest rows, without deleted keys."""
        with_state = {cluster.name for cluster in self._clusters.by_key.values()}
        return PartitionRows({name: self._of(name) for name in {*with_state, *self._keys}}, self._clusters.gap)

    def _of(self, cluster: str) -> ClusterRows:
        counts = {kind: len(keys) for kind, keys in self._keys.get(cluster, {}).items()}
        return ClusterRows(
            nodes=counts.get(RowKind.NODE, 0),
            pods=counts.get(RowKind.POD, 0),
            open_evictions=counts.get(RowKind.EVICTION, 0),
            remembered=len(self._past.get(cluster, ())),
            state=self._clusters.named(cluster).state,
        )


def _is_past(kind: RowKind, key: bytes, value: bytes) -> bool:
    """Whether a row is about something that has ended, and is kept to recognise repeated events."""
    if kind is RowKind.EVICTION:
        return read_eviction_value(key, value).state is EvictionState.DONE
    return kind is RowKind.DELETED_POD or (kind is RowKind.NODE and read_node_value(key, value)[0] is None)


def read_known(
    settings: Settings, partitions: Iterable[int], on_progress: Callable[[int], None] = lambda _: None
) -> dict[int, PartitionRows]:
    """Count the rows of these partitions; as `read_rows`, which says what may go wrong."""
    by_partition: dict[int, PartitionRows] = {}
    rows = Rows()

    def finish(number: int) -> None:
        nonlocal rows
        rows, taken = Rows(), rows  # the keys of one partition only are held
        by_partition[number] = taken.found()

    read_rows(settings, partitions, lambda _, key, value: rows.add(key, value), on_progress, finish)
    return by_partition


def read_rows(
    settings: Settings,
    partitions: Iterable[int],
    sink: Callable[[int, bytes, bytes | None], None],
    on_progress: Callable[[int], None] = lambda _: None,
    on_end: Callable[[int], None] | None = None,
) -> dict[int, int]:
    """Read the rows of these partitions; calls `on_progress` with the count of rows so far.

    The seam between a service's state and everything that shows it: docs/architecture.md#what-shows-the-state. Blocks:
    a million rows take about twenty seconds. Returns by partition the offset behind the last row that was read, where a
    follower reads on. Fails when Kafka answers nothing for `request_timeout_seconds`.

    Args:
        settings: which Kafka, and which service.
        partitions: numbers.
        sink: gets partition, key and value of each row; the last one of a key counts. It may raise `RowError`.
        on_progress: called as rows come.
        on_end: called with each partition that is read to its end, before the next one is begun. Without it all are
            read at once, which saves a third of a second for each.

    Raises:
        BrokerUnreachableError: Kafka did not answer.
        FoundProblemError: another version wrote the rows.
    """
    with rows_of_this_version(settings):
        return asyncio.run(_read(settings, tuple(partitions), sink, on_progress, on_end))


@contextlib.contextmanager
def rows_of_this_version(settings: Settings) -> Iterator[None]:
    """Raise `FoundProblemError` where a row cannot be loaded."""
    try:
        yield
    except RowError as error:
        problem = f"{settings.changelog_topic} cannot be read: {error}"
        raise FoundProblemError(problem, next_step="use the version that its workers have") from error


async def _read(
    settings: Settings,
    partitions: tuple[int, ...],
    sink: Callable[[int, bytes, bytes | None], None],
    on_progress: Callable[[int], None],
    on_end: Callable[[int], None] | None,
) -> dict[int, int]:
    loop = asyncio.get_running_loop()
    count = 0
    ends: dict[int, int] = {}

    def take(number: int, key: bytes, value: bytes | None) -> None:
        nonlocal count
        count += 1
        sink(number, key, value)

    def progressed() -> None:
        limit.reschedule(loop.time() + settings.request_timeout_seconds)
        on_progress(count)

    try:
        async with (
            asyncio.timeout(settings.request_timeout_seconds) as limit,
            KafkaLogReader(engine_config(settings), progressed) as reader,
        ):
            for numbers in [partitions] if on_end is None else [(number,) for number in partitions]:
                read = await reader.read_rows({number: functools.partial(take, number) for number in numbers})
                ends |= {number: one.end for number, one in read.items()}
                if on_end is not None:
                    on_end(*numbers)
                progressed()
    except (KafkaClientError, OSError) as error:  # a TimeoutError is one
        servers, seconds = settings.required_bootstrap_servers(), settings.request_timeout_seconds
        raise BrokerUnreachableError(servers, waited_seconds=seconds) from error
    return ends
