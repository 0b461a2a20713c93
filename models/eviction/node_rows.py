"""The row of a node, with the earlier nodes of its name (`row_format.py`)."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from evictstream.models.eviction.row_format import FORMAT, loaded, read_row, shared_taint, storable
from evictstream.models.eviction.state import DeletionMemory, NodeLeft, NodeState, Outage, TaintLeft, TaintState
from evictstream.models.kubernetes.resource_versions import Version
from evictstream.models.kubernetes.traits import NodeLabels, shared_labels
from evictstream.models.messages.object_limits import LARGEST_LIST, LONGEST_TEXT


class _TaintRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    key: str
    value: str
    since_us: int
    value_since_us: int
    time_added_us: int | None


class _EarlierNodeRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    uid: str
    version: Version
    until_us: int
    left_at_us: int | None = None  # older rows have no such fields
    zone: str = ""
    is_unhealthy: bool = False


class _TaintedEarlierNodeRow(_EarlierNodeRow, array_like=True, gc=False, kw_only=True):
    """One that had taints when it was deleted; without any it has the shorter row."""

    taints: list[TaintLeft] = []


class _NodeRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    format: int
    uid: str | None  # None: no node is known; the row only keeps earlier ones
    version: Version
    taints: list[_TaintRow]
    outage_since_us: int | None
    gap_since_us: int | None
    earlier_nodes: Sequence[_EarlierNodeRow]
    is_undecidable: bool
    labels: NodeLabels | None = None  # older rows have no such fields
    ready_since_us: int | None = None
    is_unready: bool = False


class _ReadNodeRow(_NodeRow, array_like=True, gc=False, kw_only=True):
    """A row as it is read: each of the earlier nodes may have had taints."""

    earlier_nodes: Sequence[_TaintedEarlierNodeRow]


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_ReadNodeRow)


def node_value(node: NodeState | None, earlier_nodes: Iterable[tuple[str, DeletionMemory]]) -> bytes:
    """Write a node (None if it is not known or deleted) and the earlier nodes of its name."""
    outage = node.outage if node is not None else None
    return _encoder.encode(
        _NodeRow(
            format=FORMAT,
            uid=node.uid if node is not None else None,
            version=storable(node.version) if node is not None else 0,
            taints=[_taint_row(state) for state in (node.taints if node is not None else ())],
            outage_since_us=outage.since_us if outage is not None else None,
            gap_since_us=outage.gap_since_us if outage is not None else None,
            earlier_nodes=[_earlier_node_row(uid, memory) for uid, memory in earlier_nodes],
            is_undecidable=node is not None and node.is_undecidable,
            labels=node.labels if node is not None else None,
            ready_since_us=node.ready_since_us if node is not None else None,
            is_unready=node is not None and node.is_unready,
        )
    )


def read_node_value(key: bytes, value: bytes) -> tuple[NodeState | None, dict[str, DeletionMemory]]:
    """Read what `node_value` wrote.

    Raises:
        RowError: it is not such a row.
    """
    row = read_row(_decoder, key, value)
    earlier_nodes = {entry.uid: _earlier_node(entry) for entry in row.earlier_nodes}
    if row.uid is None:
        return None, earlier_nodes
    # Older rows may have been written without limits on taints.
    is_undecidable = row.is_undecidable or len(row.taints) > LARGEST_LIST or _has_long_taint(value, row)
    taints = () if is_undecidable else tuple(map(_taint_state, row.taints))
    outage = None if row.outage_since_us is None else Outage(row.outage_since_us, row.gap_since_us)
    node = NodeState(
        uid=row.uid,
        version=loaded(row.version),
        taints=taints,
        outage=outage,
        is_undecidable=is_undecidable,
        labels=None if row.labels is None else shared_labels(row.labels),
        ready_since_us=row.ready_since_us,
        is_unready=row.is_unready,
    )
    return node, earlier_nodes


def _has_long_taint(value: bytes, row: _NodeRow) -> bool:
    return len(value) > LONGEST_TEXT and any(len(taint.key) + len(taint.value) > LONGEST_TEXT for taint in row.taints)


def _earlier_node_row(uid: str, memory: DeletionMemory) -> _EarlierNodeRow:
    left = memory.left
    kind = _TaintedEarlierNodeRow if left is not None and left.taints else _EarlierNodeRow
    row = kind(uid=uid, version=storable(memory.version), until_us=memory.until_us)
    if left is not None:
        row.left_at_us, row.zone, row.is_unhealthy = left.at_us, left.zone, left.is_unhealthy
        if isinstance(row, _TaintedEarlierNodeRow):
            row.taints = list(left.taints)
    return row


def _earlier_node(row: _TaintedEarlierNodeRow) -> DeletionMemory:
    left = None
    if row.left_at_us is not None:
        left = NodeLeft(row.left_at_us, row.zone, row.is_unhealthy, tuple(row.taints))
    return DeletionMemory(loaded(row.version), row.until_us, left=left)


def _taint_row(state: TaintState) -> _TaintRow:
    return _TaintRow(
        key=state.taint.key,
        value=state.taint.value,
        since_us=state.since_us,
        value_since_us=state.value_since_us,
        time_added_us=state.time_added_us,
    )


def _taint_state(row: _TaintRow) -> TaintState:
    return TaintState(shared_taint(row.key, row.value), row.since_us, row.value_since_us, row.time_added_us)
