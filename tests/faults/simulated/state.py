"""Whether what a restart would load is what the worker has in memory, in everything that decides.

A row that was not written shows at the end of each run, not only where a worker is lost at the right moment.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import msgspec

from evictstream.kit.oracle import Violation
from evictstream.models.eviction import NodeAggregate
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.faults.simulated.log import Entry
from tests.harness.counted import differences

ENGINE = b"\0"  # how its rows' keys begin
LATE_US = 1 << 60  # no deleted node counts any more


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
    known, known_from_rows = _known(live), _known(loaded)
    for cluster in known:
        if known[cluster] != known_from_rows.get(cluster):
            text = f"in memory {known[cluster]}, from rows {known_from_rows.get(cluster)}"
            yield Violation("counts of nodes differ", text, cluster=cluster)
    there, here = _described(live), _described(loaded)
    for name in sorted(there.keys() | here.keys()):
        if there.get(name) != here.get(name):
            cluster, _, node = name.partition("/")
            text = f"in memory {there.get(name)}, from rows {here.get(name)}"
            yield Violation("rows differ", text, cluster=cluster, node=node)


def _known(partition: EvictionPartition) -> dict[str, object]:
    """Give by cluster how many nodes count in each zone long after, and what is known of earlier counts."""
    found: dict[str, object] = {}
    for aggregate in partition.known_nodes():
        if aggregate.known is not None and aggregate.cluster not in found:
            known = copy.deepcopy(aggregate.known)
            zones = {
                zone: (known.known(zone, LATE_US), known.unhealthy(zone, LATE_US)) for zone in known.zones(LATE_US)
            }
            history = known.history()
            found[aggregate.cluster] = zones, history and (history.full_until_us, history.peaks)
    return found


def _described(partition: EvictionPartition) -> dict[str, object]:
    return {found.key: _describe(found) for found in partition.known_nodes() if not found.is_empty}


def _describe(aggregate: NodeAggregate) -> object:
    """Give everything but the versions of pods, which may be earlier ones in rows (`models.eviction.state`)."""
    pods = {uid: msgspec.to_builtins(pod) for uid, pod in aggregate.pods.items()}
    for pod in pods.values():
        del pod["version"]
    return msgspec.to_builtins((aggregate.node, aggregate.earlier_nodes, pods, aggregate.deleted_pods))
