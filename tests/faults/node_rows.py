r"""Whether the rows at the end know of each node what was heard of it (semantics.md 12.3, 12.4).

A node's row has the key `node\0<cluster>/<node>`. Its value is a msgpack array: format, UID (none where it only
remembers), version, taints (each key, value, since when it is there, and more), since when an outage lasts, and more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from evictstream.kit.oracle.epochs import Epochs
from evictstream.kit.oracle.histories import HeardNode, node_history
from evictstream.kit.oracle.judging import by_node, read_all
from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.records import InputRecord, Violation

UID, TAINTS, OUTAGE = 1, 3, 4  # places in a node's row
KEY, VALUE, SINCE = 0, 1, 2  # places in a taint

_Known = tuple[str | None, tuple[tuple[str, str, int], ...], int | None]


def check_nodes(
    table: Mapping[bytes, bytes],
    inputs: Sequence[InputRecord],
    *,
    positions: Mapping[int, Mapping[str, int]],
    limits: OracleLimits,
    partitions: int,
) -> Iterator[Violation]:
    """Say of which nodes the rows know something else than was heard.

    Args:
        table: rows by key, the newest of each; what was deleted left out.
        inputs: everything that was appended to the three inputs.
        positions: up to where they were taken in, by partition and topic.
        limits: the settings of the service.
        partitions: of each topic.
    """
    taken = [one for one in inputs if one.offset < positions.get(one.partition, {}).get(one.topic, 0)]
    said, _ = read_all(taken, limits, partitions)
    epochs = Epochs(said)
    for (cluster, node), heard in by_node(epochs.counting, ()).items():
        wanted = _of_state(node_history(heard.nodes, limits, heard.ready)[-1])
        value = table.get(f"node\0{cluster}/{node}".encode())
        found = _NOTHING if value is None else _of_row(msgspec.msgpack.decode(value))
        others = epochs.other_readings(cluster, heard.nodes, ())
        readings = (node_history(nodes, limits, heard.ready)[-1] for nodes, _ in others)
        if found != wanted and all(found != _of_state(state) for state in readings):
            text = f"the row says {found}, heard was {wanted}"
            yield Violation("state: node", text, cluster=cluster, node=node)


_NOTHING: _Known = (None, (), None)


def _of_state(state: HeardNode) -> _Known:
    if state.uid is None:
        return _NOTHING
    return state.uid, tuple((taint.key, taint.value, taint.since_us) for taint in state.taints), state.outage_us


def _of_row(row: Sequence[Any]) -> _Known:
    if row[UID] is None:
        return _NOTHING
    return row[UID], tuple((taint[KEY], taint[VALUE], taint[SINCE]) for taint in row[TAINTS]), row[OUTAGE]
