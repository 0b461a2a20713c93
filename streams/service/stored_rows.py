"""The clusters and gaps that a service has in its rows, read for an operator who is about to give an order.

Rows are read as a take-over reads them: `read_committed`, and to their end of this moment. Partitions are read one
after the other, so that the keys of only one are in memory. Input that no worker has read yet is not in the rows.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from evictstream.models.eviction import EvictionState, RowError, RowKind, split_row_key
from evictstream.models.eviction.row_values import read_eviction_value, read_node_value
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, TRANSACTION_KEY
from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.errors import BrokerUnreachableError, FoundProblemError
from evictstream.streams.service.clusters import Clusters, ClusterState
from evictstream.streams.service.service_config import engine_config

if TYPE_CHECKING:
    from evictstream.streams.service.clusters import Gap
    from evictstream.streams.settings import Settings

ENGINES_OWN = frozenset({POSITIONS_KEY, TRANSACTION_KEY})
NOTHING = ClusterState()


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRows:
    """What one partition keeps of one cluster.

    Attributes:
        nodes: nodes.
        pods: pods.
        open_evictions: scheduled, issued or repeating.
        remembered: further rows: evictions that have ended, and what is remembered of nodes and pods that are gone.
        state: heartbeats, and whether it was forgotten.
    """

    nodes: int = 0
    pods: int = 0
    open_evictions: int = 0
    remembered: int = 0
    state: ClusterState = NOTHING

    @property
    def is_anything(self) -> bool:
        """Whether there is something to forget: rows, or a feed that is heard."""
        return any((self.nodes, self.pods, self.open_evictions, self.remembered)) or self.state.is_heard


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionRows:
    """What one partition keeps: its clusters by name, and its gap, if it has one."""

    clusters: Mapping[str, ClusterRows]
    gap: Gap | None


class Rows:
    """Takes the rows of one partition, as many versions of each as the log has."""

    def __init__(self) -> None:
        self.taken = 0
        self._clusters = Clusters()
        self._keys: dict[str, dict[RowKind, set[bytes]]] = {}
        self._past: dict[str, set[bytes]] = {}

    def take(self, key: bytes, value: bytes | None) -> None:
        """Take one row; the last one of a key counts. Raises `RowError` for a row of another version."""
        self.taken += 1
        if key in ENGINES_OWN or self._clusters.load(key, value):
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
        """Count the rows that are left."""
        states = self._clusters.states
        return PartitionRows({name: self._of(name, states) for name in {*states, *self._keys}}, self._clusters.gap)

    def _of(self, cluster: str, states: Mapping[str, ClusterState]) -> ClusterRows:
        counts = {kind: len(keys) for kind, keys in self._keys.get(cluster, {}).items()}
        return ClusterRows(
            nodes=counts.get(RowKind.NODE, 0),
            pods=counts.get(RowKind.POD, 0),
            open_evictions=counts.get(RowKind.EVICTION, 0),
            remembered=len(self._past.get(cluster, ())),
            state=states.get(cluster, NOTHING),
        )


def _is_past(kind: RowKind, key: bytes, value: bytes) -> bool:
    """Say whether a row only remembers something that has ended, so that repeated events are recognised."""
    if kind is RowKind.EVICTION:
        return read_eviction_value(key, value).state is EvictionState.DONE
    return kind is RowKind.DELETED_POD or (kind is RowKind.NODE and read_node_value(key, value)[0] is None)


def read_known(
    settings: Settings, partitions: Iterable[int], on_progress: Callable[[int], None] = lambda _: None
) -> dict[int, PartitionRows]:
    """Read what these partitions keep; `on_progress` gets the count of rows read so far.

    Blocks; a million rows take some twenty seconds. Waits for Kafka as long as for one answer of it.

    Raises:
        BrokerUnreachableError: Kafka did not answer.
        FoundProblemError: the rows are those of another version.
    """
    return asyncio.run(_read(settings, tuple(partitions), on_progress))


async def _read(
    settings: Settings, partitions: tuple[int, ...], on_progress: Callable[[int], None]
) -> dict[int, PartitionRows]:
    found: dict[int, PartitionRows] = {}
    loop = asyncio.get_running_loop()
    before = 0
    rows = Rows()

    def progressed() -> None:
        limit.reschedule(loop.time() + settings.request_timeout_seconds)
        on_progress(before + rows.taken)

    try:
        async with (
            asyncio.timeout(settings.request_timeout_seconds) as limit,
            KafkaLogReader(engine_config(settings), progressed) as reader,
        ):
            for number in partitions:
                rows = Rows()
                await reader.read_rows({number: rows.take})
                before += rows.taken
                rows, taken = Rows(), rows
                found[number] = taken.found()
                progressed()
    except (KafkaClientError, OSError) as error:  # a TimeoutError is one
        servers, seconds = settings.required_bootstrap_servers(), settings.request_timeout_seconds
        raise BrokerUnreachableError(servers, waited_seconds=seconds) from error
    except RowError as error:
        problem = f"{settings.changelog_topic} cannot be read: {error}"
        raise FoundProblemError(problem, next_step="use the version that its workers have") from error
    return found
