"""Whether what a restart would load is what the worker has in memory, in everything that decides.

A row that was not written shows at the end of each run, not only where a worker is lost at the right moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from evictstream.kit.oracle import Violation
from evictstream.models.eviction import NodeAggregate
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.faults.simulated.log import Entry
from tests.harness.counted import differences

ENGINE = b"\0"  # how its rows' keys begin


def check_rows(live: EvictionPartition, loaded: EvictionPartition, rows: Iterable[Entry]) -> Iterator[Violation]:
    """Load rows into `loaded`, which is empty, and compare."""
    for row in rows:
        if row.key is not None and not row.key.startswith(ENGINE):
            loaded.load(row.key, row.value)
    loaded.loaded()
    for cluster, levels in live.published.levels.items():
        wrong = differences(levels, [one for one in loaded.known_nodes() if one.cluster == cluster], 0)
        if wrong:
            yield Violation("counts differ", wrong, cluster=cluster)
    there, here = _described(live), _described(loaded)
    for name in sorted(there.keys() | here.keys()):
        if there.get(name) != here.get(name):
            cluster, _, node = name.partition("/")
            text = f"in memory {there.get(name)}, from rows {here.get(name)}"
            yield Violation("rows differ", text, cluster=cluster, node=node)


def _described(partition: EvictionPartition) -> dict[str, object]:
    return {found.key: _describe(found) for found in partition.known_nodes() if not found.is_empty}


def _describe(aggregate: NodeAggregate) -> object:
    """Give everything but the versions of pods, which may be earlier ones in rows (`models.eviction.state`)."""
    pods = {uid: msgspec.to_builtins(pod) for uid, pod in aggregate.pods.items()}
    for pod in pods.values():
        del pod["version"]
    return msgspec.to_builtins((aggregate.node, aggregate.earlier_nodes, pods, aggregate.deleted_pods))
