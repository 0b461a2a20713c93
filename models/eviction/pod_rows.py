"""The rows of a pod, of its eviction, and of what is remembered once the pod is deleted (`row_format.py`).

Tolerations are JSON lists inside: msgpack integers have at most 64 bits, and `tolerationSeconds` may have more.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from evictstream.models.eviction.row_format import FORMAT, loaded, read_row, shared_taint, storable
from evictstream.models.eviction.state import OVER_LIMIT, DeletionMemory, Due, Eviction, PodState
from evictstream.models.kubernetes.resource_versions import Version
from evictstream.models.kubernetes.tolerations import read_tolerations_row, shared_tolerations_row, tolerations_row
from evictstream.models.kubernetes.traits import Owner, TraitFields, shared_owner, shared_pod_traits
from evictstream.models.messages.object_limits import LARGEST_LIST, has_long_text, is_too_long
from evictstream.models.messages.vocabulary import EvictionState, Outcome, Verdict, meant_outcome, written_outcome


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


_encoder: Final = msgspec.msgpack.Encoder()
_pod_decoder: Final = msgspec.msgpack.Decoder(_PodRow)
_eviction_decoder: Final = msgspec.msgpack.Decoder(_TimedEvictionRow)
_deleted_pod_decoder: Final = msgspec.msgpack.Decoder(_DeletedPodRow)


def pod_value(pod: PodState) -> bytes:
    """Write a pod without its eviction."""
    traits = pod.traits
    # The fields of `_PodRow`, in its order: each edit writes one, and a tuple takes half the time to make.
    return _encoder.encode(
        (
            FORMAT,
            pod.address,
            storable(pod.version),
            shared_tolerations_row(pod.tolerations),
            pod.since_us,
            pod.tolerations_since_us,
            pod.exemptions,
            pod.opened,
            None if traits is None else (traits.owner_kind, traits.owner_name, traits.priority, traits.group),
        )
    )


def read_pod_value(key: bytes, value: bytes, uid: str) -> PodState:
    """Read what `pod_value` wrote.

    Raises:
        RowError: it is not such a row.
    """
    row = read_row(_pod_decoder, key, value)
    text = row.tolerations
    is_long = len(text) > LARGEST_LIST  # if not, it is within all limits; older rows may have been written without them
    is_undecidable = is_long and is_too_long(text, opening=b"[")
    tolerations = () if is_undecidable else read_tolerations_row(text)
    if is_long and has_long_text(tolerations):
        tolerations, is_undecidable = (), True
    return PodState(
        uid=uid,
        address=row.address,
        version=loaded(row.version),
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
    row = read_row(_eviction_decoder, key, value)
    due = Due(
        deadline_us=row.deadline_us,
        verdict=row.verdict,
        taint=shared_taint(row.taint_key, row.taint_value),
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
            version=storable(memory.version),
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
    row = read_row(_deleted_pod_decoder, key, value)
    return DeletionMemory(
        loaded(row.version),
        row.until_us,
        row.opened,
        evicted_for=row.evicted_for,
        evicted_us=row.evicted_us,
        owner=None if row.owner is None else shared_owner(row.owner),
    )
