"""The values of the table's rows: one format each for nodes, pods, evictions and deleted pods.

Values are msgpack arrays that begin with the number of their format, so that a later version can tell old rows from
its own. Instants are integer microseconds. Tolerations are JSON lists inside: msgpack integers have at most 64 bits,
and `tolerationSeconds` may have more. Equal taints, tolerations, labels and traits are read as one shared object, as in
a running state.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Final, TypeVar

import msgspec

from evictstream.models.eviction.row_keys import CorruptRowError, RowError, UnsupportedFormatError
from evictstream.models.eviction.state import (
    OVER_LIMIT,
    DeletionMemory,
    Due,
    Eviction,
    NodeLeft,
    NodeState,
    Outage,
    PodState,
    TaintLeft,
    TaintState,
)
from evictstream.models.kubernetes.resource_versions import Version, read_version
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint
from evictstream.models.kubernetes.tolerations import read_tolerations_row, shared_tolerations_row, tolerations_row
from evictstream.models.kubernetes.traits import (
    NodeLabels,
    Owner,
    TraitFields,
    shared_labels,
    shared_owner,
    shared_pod_traits,
)
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.object_limits import LARGEST_LIST, LONGEST_TEXT, has_long_text, is_too_long
from evictstream.models.messages.vocabulary import EvictionState, Outcome, Verdict, meant_outcome, written_outcome

FORMAT: Final = 2

_SHARED_TAINTS: Final = 1_024  # taints that the cache keeps; all nodes of a cluster use a few
_LONGEST_SHARED: Final = 512  # characters of the longest taint that the cache keeps; a real one has at most 380

_LARGEST_INTEGER: Final = 2**63 - 1  # largest version written as a msgpack integer; one above it is written as text


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


class _PodRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    format: int
    address: str
    version: Version
    tolerations: bytes
    since_us: int
    tolerations_since_us: int
    exemptions: int
    opened: int
    traits: TraitFields | None = None  # older rows have no such field


class _EvictionRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    format: int
    state: EvictionState
    ordinal: int
    revision: int
    attempt: int
    is_announced: bool
    deadline_us: int
    verdict: Verdict
    taint_key: str
    taint_value: str
    toleration: bytes | None  # a JSON list of one
    window_start_us: int
    outage_since_us: int | None
    issued_at_us: int | None
    next_attempt_us: int | None
    outcome: Outcome | None
    unanswered_since_us: int | None = None  # older rows have no such fields
    known_us: int | None = None
    held_by: str | None = None
    first_issued_us: int | None = None


class _TimedEvictionRow(_EvictionRow, array_like=True, gc=False, kw_only=True):
    """Where Kubernetes' own controller has a timer; without one an eviction has the shorter row."""

    built_in_us: int | None = None


class _DeletedPodRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    format: int
    version: Version
    until_us: int
    opened: int
    evicted_for: str = ""  # older rows have no such fields
    evicted_us: int = 0
    owner: Owner | None = None


class _ReadNodeRow(_NodeRow, array_like=True, gc=False, kw_only=True):
    """A row as it is read: each of the earlier nodes may have had taints."""

    earlier_nodes: Sequence[_TaintedEarlierNodeRow]


_Row = TypeVar("_Row", bound=_NodeRow | _PodRow | _EvictionRow | _DeletedPodRow)

_encoder: Final = msgspec.msgpack.Encoder()
_format_decoder: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_node_decoder: Final = msgspec.msgpack.Decoder(_ReadNodeRow)
_pod_decoder: Final = msgspec.msgpack.Decoder(_PodRow)
_eviction_decoder: Final = msgspec.msgpack.Decoder(_TimedEvictionRow)
_deleted_pod_decoder: Final = msgspec.msgpack.Decoder(_DeletedPodRow)


def node_value(node: NodeState | None, earlier_nodes: Iterable[tuple[str, DeletionMemory]]) -> bytes:
    """Write a node (None if it is not known or deleted) and the earlier nodes of its name."""
    outage = node.outage if node is not None else None
    return _encoder.encode(
        _NodeRow(
            format=FORMAT,
            uid=node.uid if node is not None else None,
            version=_storable(node.version) if node is not None else 0,
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
    row = _read(_node_decoder, key, value)
    earlier_nodes = {entry.uid: _earlier_node(entry) for entry in row.earlier_nodes}
    if row.uid is None:
        return None, earlier_nodes
    # Older rows may have been written without limits on taints.
    is_undecidable = row.is_undecidable or len(row.taints) > LARGEST_LIST or _has_long_taint(value, row)
    taints = () if is_undecidable else tuple(map(_taint_state, row.taints))
    outage = None if row.outage_since_us is None else Outage(row.outage_since_us, row.gap_since_us)
    node = NodeState(
        uid=row.uid,
        version=_loaded(row.version),
        taints=taints,
        outage=outage,
        is_undecidable=is_undecidable,
        labels=None if row.labels is None else shared_labels(row.labels),
        ready_since_us=row.ready_since_us,
        is_unready=row.is_unready,
    )
    return node, earlier_nodes


def pod_value(pod: PodState) -> bytes:
    """Write a pod without its eviction."""
    return _encoder.encode(
        _PodRow(
            format=FORMAT,
            address=pod.address,
            version=_storable(pod.version),
            tolerations=shared_tolerations_row(pod.tolerations),
            since_us=pod.since_us,
            tolerations_since_us=pod.tolerations_since_us,
            exemptions=pod.exemptions,
            opened=pod.opened,
            traits=None if pod.traits is None else pod.traits.fields,
        )
    )


def read_pod_value(key: bytes, value: bytes, uid: str) -> PodState:
    """Read what `pod_value` wrote.

    Raises:
        RowError: it is not such a row.
    """
    row = _read(_pod_decoder, key, value)
    text = row.tolerations
    is_long = len(text) > LARGEST_LIST  # if not, it is within all limits; older rows may have been written without them
    is_undecidable = is_long and is_too_long(text, opening=b"[")
    tolerations = () if is_undecidable else read_tolerations_row(text)
    if is_long and has_long_text(tolerations):
        tolerations, is_undecidable = (), True
    return PodState(
        uid=uid,
        address=row.address,
        version=_loaded(row.version),
        tolerations=tolerations,
        since_us=row.since_us,
        tolerations_since_us=row.tolerations_since_us,
        exemptions=row.exemptions | OVER_LIMIT if is_undecidable else row.exemptions,
        opened=row.opened,
        traits=None if row.traits is None else shared_pod_traits(row.traits),
    )


def eviction_value(eviction: Eviction) -> bytes:
    """Write an eviction."""
    due = eviction.due
    row: Callable[..., _EvictionRow] = _EvictionRow
    if eviction.built_in_us is not None:
        row = partial(_TimedEvictionRow, built_in_us=eviction.built_in_us)
    return _encoder.encode(
        row(
            format=FORMAT,
            state=eviction.state,
            ordinal=eviction.ordinal,
            revision=eviction.revision,
            attempt=eviction.attempt,
            is_announced=eviction.is_announced,
            deadline_us=due.deadline_us,
            verdict=due.verdict,
            taint_key=due.taint.key,
            taint_value=due.taint.value,
            toleration=None if due.toleration is None else tolerations_row((due.toleration,)),
            window_start_us=due.window_start_us,
            outage_since_us=due.outage_since_us,
            issued_at_us=eviction.issued_at_us,
            next_attempt_us=eviction.next_attempt_us,
            outcome=written_outcome(eviction.outcome),
            unanswered_since_us=eviction.unanswered_since_us,
            known_us=eviction.known_us,
            held_by=eviction.held_by,
            first_issued_us=eviction.first_issued_us,
        )
    )


def read_eviction_value(key: bytes, value: bytes) -> Eviction:
    """Read what `eviction_value` wrote.

    Raises:
        RowError: it is not such a row.
    """
    row = _read(_eviction_decoder, key, value)
    due = Due(
        deadline_us=row.deadline_us,
        verdict=row.verdict,
        taint=_taint(row.taint_key, row.taint_value),
        toleration=None if row.toleration is None else read_tolerations_row(row.toleration)[0],
        window_start_us=row.window_start_us,
        outage_since_us=row.outage_since_us,
    )
    return Eviction(
        state=row.state,
        ordinal=row.ordinal,
        due=due,
        revision=row.revision,
        attempt=row.attempt,
        is_announced=row.is_announced,
        issued_at_us=row.issued_at_us,
        next_attempt_us=row.next_attempt_us,
        outcome=meant_outcome(row.outcome, row.held_by),
        unanswered_since_us=row.unanswered_since_us,
        known_us=row.known_us,
        held_by=row.held_by,
        first_issued_us=row.first_issued_us,
        built_in_us=row.built_in_us,
    )


def deleted_pod_value(memory: DeletionMemory) -> bytes:
    """Write what is remembered of a deleted pod."""
    return _encoder.encode(
        _DeletedPodRow(
            format=FORMAT,
            version=_storable(memory.version),
            until_us=memory.until_us,
            opened=memory.opened,
            evicted_for=memory.evicted_for,
            evicted_us=memory.evicted_us,
            owner=memory.owner,
        )
    )


def read_deleted_pod_value(key: bytes, value: bytes) -> DeletionMemory:
    """Read what `deleted_pod_value` wrote.

    Raises:
        RowError: it is not such a row.
    """
    row = _read(_deleted_pod_decoder, key, value)
    return DeletionMemory(
        _loaded(row.version),
        row.until_us,
        row.opened,
        evicted_for=row.evicted_for,
        evicted_us=row.evicted_us,
        owner=None if row.owner is None else shared_owner(row.owner),
    )


def _read(decoder: msgspec.msgpack.Decoder[_Row], key: bytes, value: bytes) -> _Row:
    try:
        row = decoder.decode(value)
    except DECODE_ERRORS as error:
        raise _refusal(key, value) from error
    if row.format != FORMAT:
        raise UnsupportedFormatError(key, f"format {row.format}, this program writes {FORMAT}")
    return row


def _refusal(key: bytes, value: bytes) -> RowError:
    """Return the error for a row that does not decode: the format of another version, or a broken row."""
    try:
        number = msgspec.msgpack.decode(_format_decoder.decode(value)[0])
    except (*DECODE_ERRORS, IndexError):
        number = FORMAT
    if number != FORMAT:
        return UnsupportedFormatError(key, f"format {number!r}, this program writes {FORMAT}")
    return CorruptRowError(key, "does not have the fields of its format")


def _storable(version: Version) -> Version:
    return str(version) if isinstance(version, int) and version > _LARGEST_INTEGER else version


def _loaded(version: Version) -> Version:
    return read_version(version) if isinstance(version, str) else version


def _has_long_taint(value: bytes, row: _NodeRow) -> bool:
    return len(value) > LONGEST_TEXT and any(len(taint.key) + len(taint.value) > LONGEST_TEXT for taint in row.taints)


def _earlier_node_row(uid: str, memory: DeletionMemory) -> _EarlierNodeRow:
    left = memory.left
    kind = _TaintedEarlierNodeRow if left is not None and left.taints else _EarlierNodeRow
    row = kind(uid=uid, version=_storable(memory.version), until_us=memory.until_us)
    if left is not None:
        row.left_at_us, row.zone, row.is_unhealthy = left.at_us, left.zone, left.is_unhealthy
        if isinstance(row, _TaintedEarlierNodeRow):
            row.taints = list(left.taints)
    return row


def _earlier_node(row: _TaintedEarlierNodeRow) -> DeletionMemory:
    left = None
    if row.left_at_us is not None:
        left = NodeLeft(row.left_at_us, row.zone, row.is_unhealthy, tuple(row.taints))
    return DeletionMemory(_loaded(row.version), row.until_us, left=left)


def _taint_row(state: TaintState) -> _TaintRow:
    return _TaintRow(
        key=state.taint.key,
        value=state.taint.value,
        since_us=state.since_us,
        value_since_us=state.value_since_us,
        time_added_us=state.time_added_us,
    )


def _taint_state(row: _TaintRow) -> TaintState:
    return TaintState(_taint(row.key, row.value), row.since_us, row.value_since_us, row.time_added_us)


def _taint(key: str, value: str) -> Taint:
    """Return one object for equal taints, as in a running state; very long ones are not cached."""
    return _shared_taint(key, value) if len(key) + len(value) <= _LONGEST_SHARED else Taint(key, value, NO_EXECUTE)


@lru_cache(maxsize=_SHARED_TAINTS)
def _shared_taint(key: str, value: str) -> Taint:
    return Taint(key, value, NO_EXECUTE)
