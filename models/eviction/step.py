"""One step of an aggregate: what it is caused by, what it changes, and the constants for steps that change nothing."""

import enum
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NewType

import msgspec

from evictstream.models.eviction.decision import Coverages
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.row_values import eviction_value, gone_value, node_value, pod_value
from evictstream.models.eviction.rules import MOST_DEPARTED, Rules
from evictstream.models.eviction.state import Eviction, Gone, NodeAggregate, PodState
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.resource_versions import Version, later
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.decision import DecisionCause, DecisionRecord
from evictstream.models.messages.events import Origin
from evictstream.models.messages.vocabulary import CauseKind

EvictionId = NewType("EvictionId", str)

_DIGEST_BYTES: Final = 16  # 128 bit: no two of any number of evictions that a fleet will ever see

_POD = RowKind.POD  # see `evictstream.models.eviction` for these constants
_EVICTION = RowKind.EVICTION
_TIMER = CauseKind.TIMER
_CATCH_UP = CauseKind.CATCH_UP


class Note(enum.StrEnum):
    """What became of an input, for counting."""

    CHANGED = "changed"
    """It has changed rows; there may be messages and wake-ups."""
    UNCHANGED = "unchanged"
    """It was news that changes nothing that is stored."""
    DUPLICATE = "duplicate"
    """It is known already."""
    STALE = "stale"
    """It is older than what is known: an older version, a deleted UID, a result of an old attempt."""
    UNDECIDABLE = "undecidable"
    """It is beyond a limit: its pods are left alone. There may be rows, and messages that cancel."""


class Changes(msgspec.Struct, frozen=True):
    """What a step has changed, for the caller to write in one transaction.

    Steps that write nothing return one of the constants below, so an event that changes nothing allocates nothing.
    `fire` may also return wake-ups alone, with the note `unchanged`.

    Attributes:
        note: what became of the input.
        rows: key and value, each key once; None deletes the row.
        commands: to executors, in the order of sending.
        decisions: records for people, in the order of deciding.
        wakeups: (instant in microseconds since 1970, UID of the pod or empty for the node itself). Earlier ones for the
            same UID may be dropped or kept: a stale wake-up does no harm.
    """

    note: Note
    rows: Sequence[tuple[bytes, bytes | None]] = ()
    commands: Sequence[EvictionCommand] = ()
    decisions: Sequence[DecisionRecord] = ()
    wakeups: Sequence[tuple[int, str]] = ()


UNCHANGED: Final = Changes(Note.UNCHANGED)
DUPLICATE: Final = Changes(Note.DUPLICATE)
STALE: Final = Changes(Note.STALE)
UNDECIDABLE: Final = Changes(Note.UNDECIDABLE)


def merged(slices: Iterable[Changes]) -> Changes:
    """Put the slices of a step together: each row once, with its last value, everything else in order."""
    parts = list(slices)
    if len(parts) == 1:
        return parts[0]
    rows: dict[bytes, bytes | None] = {}
    commands, decisions, wakeups = list[EvictionCommand](), list[DecisionRecord](), list[tuple[int, str]]()
    for part in parts:
        rows.update(part.rows)
        commands += part.commands
        decisions += part.decisions
        wakeups += part.wakeups
    if not rows and not wakeups:
        return UNCHANGED
    note = next((part.note for part in parts if part.note is not Note.UNCHANGED), Note.UNCHANGED)
    return Changes(note, rows=list(rows.items()), commands=commands, decisions=decisions, wakeups=wakeups)


class Step:
    """One step in the making: collects what it changes, and knows what it was caused by.

    Lives only inside one call of a step function. Rows are collected by key, so a row that is changed twice in a step
    is written once, with its last value.

    Attributes:
        note: what `finish` says if there are rows.
        aggregate: of the node; changed in place.
        rules: the numbers.
        at_us: the instant of the input; for a timer, now.
        key: `<cluster>/<node>`.
        node_uid: UID of the node that the step is about; of the old one while that one leaves.
        coverages: shared by the pods that the step decides about.
        commands: to executors, in the order of sending.
        decisions: records for people, in the order of deciding.
        wakeups: as in `Changes`.
    """

    __slots__ = (
        "_cause",
        "_kind",
        "_named",
        "_origin",
        "_rows",
        "aggregate",
        "at_us",
        "commands",
        "coverages",
        "decisions",
        "key",
        "node_uid",
        "note",
        "rules",
        "wakeups",
    )

    def __init__(
        self, aggregate: NodeAggregate, rules: Rules, *, at_us: int, kind: CauseKind, origin: Origin | None
    ) -> None:
        self.note = Note.CHANGED
        self.aggregate = aggregate
        self.key = aggregate.key
        self.rules = rules
        self.at_us = at_us
        self.node_uid = aggregate.node.uid if aggregate.node is not None else None
        self.coverages: Coverages = {}
        self.commands: list[EvictionCommand] = []
        self.decisions: list[DecisionRecord] = []
        self.wakeups: list[tuple[int, str]] = []
        self._rows: dict[bytes, bytes | None] = {}
        self._kind = kind
        self._origin = origin
        self._cause: DecisionCause | None = None
        self._named: tuple[str, int, EvictionId] | None = None

    @property
    def has_news(self) -> bool:
        """Whether a record was read. Else `at_us` comes from the worker's clock, which may be behind the log."""
        return self._kind is not _TIMER and self._kind is not _CATCH_UP

    @property
    def cause(self) -> DecisionCause:
        """The cause for decision records; made once, by the first of them."""
        if self._cause is None:
            origin = self._origin
            at = instant_text(self.at_us)
            self._cause = (
                DecisionCause(kind=self._kind, at=at)
                if origin is None
                else DecisionCause(
                    kind=self._kind, at=at, topic=origin.topic, partition=origin.partition, offset=origin.offset
                )
            )
        return self._cause

    def eviction_id(self, pod: PodState, eviction: Eviction) -> EvictionId:
        """Compute the id of an eviction. The latest one is kept: mostly a command and a record need the same."""
        named = self._named
        if named is not None and named[0] is pod.uid and named[1] == eviction.ordinal:
            return named[2]
        name = eviction_id(self.aggregate.cluster, pod.uid, eviction.ordinal)
        self._named = (pod.uid, eviction.ordinal, name)
        return name

    def write_node(self) -> None:
        """Write the node's row, or delete it if neither the node nor a memory of it is left."""
        node, departed = self.aggregate.node, self.aggregate.departed
        value = node_value(node, departed.items()) if node is not None or departed else None
        self._rows[row_key(RowKind.NODE, self.key)] = value

    def write_pod(self, pod: PodState) -> None:
        """Write a pod's row."""
        self._rows[row_key(_POD, self.key, pod.uid)] = pod_value(pod)

    def delete_pod(self, uid: str) -> None:
        """Delete a pod's row."""
        self._rows[row_key(_POD, self.key, uid)] = None

    def write_eviction(self, pod: PodState) -> None:
        """Write the row of a pod's eviction, or delete it if there is none any more."""
        value = None if pod.eviction is None else eviction_value(pod.eviction)
        self._rows[row_key(_EVICTION, self.key, pod.uid)] = value

    def write_gone(self, uid: str, gone: Gone | None) -> None:
        """Write, or delete, the memory of a deleted pod."""
        self._rows[row_key(RowKind.GONE, self.key, uid)] = None if gone is None else gone_value(gone)

    def remember_node(self, uid: str, version: Version) -> None:
        """Remember a deleted node by its UID; events of it up to `version` will be dropped. Writes the node's row."""
        departed = self.aggregate.departed
        departed[uid] = gone = self._gone(departed.get(uid), version, 0)
        if len(departed) > MOST_DEPARTED:
            del departed[min(departed, key=lambda known: departed[known].until_us)]
        self.write_node()
        self._wake_to_purge(gone)

    def remember_pod(self, uid: str, version: Version, opened: int) -> None:
        """Remember a deleted pod by its UID; events of it up to `version` will be dropped. Writes its row."""
        known = self.aggregate.gone
        known[uid] = gone = self._gone(known.pop(uid, None), version, opened)  # last: the order of forgetting
        self.write_gone(uid, gone)
        self._wake_to_purge(gone)

    def _gone(self, known: Gone | None, version: Version, opened: int) -> Gone:
        until_us = self.at_us + self.rules.remember_deleted_us
        if known is None:
            return Gone(version, until_us, opened)
        return Gone(later(version, known.version), max(until_us, known.until_us), max(opened, known.opened))

    def _wake_to_purge(self, gone: Gone) -> None:
        """Keep one wake-up for the node, not one for each deleted pod: it forgets all that may be forgotten by then."""
        aggregate = self.aggregate
        if aggregate.purge_at_us is None or gone.until_us < aggregate.purge_at_us:
            aggregate.purge_at_us = gone.until_us
            self.wake(gone.until_us, "")

    def wake(self, at_us: int, uid: str) -> None:
        """Ask for a wake-up: of a pod, or of the node itself if `uid` is empty."""
        self.wakeups.append((at_us, uid))

    def finish(self) -> Changes:
        """Give the changes, or the constant if there are none."""
        if self._rows or self.note is Note.UNDECIDABLE:
            return Changes(
                self.note,
                rows=list(self._rows.items()),
                commands=self.commands,
                decisions=self.decisions,
                wakeups=self.wakeups,
            )
        return Changes(Note.UNCHANGED, wakeups=self.wakeups) if self.wakeups else UNCHANGED

    def finish_slice(self) -> Changes:
        """Give the changes so far, and collect the next slice."""
        changes = self.finish()
        self._rows, self.commands, self.decisions, self.wakeups = {}, [], [], []
        return changes


def eviction_id(cluster: str, pod_uid: str, opened_before: int) -> EvictionId:
    """Compute the id of a pod's eviction: never random, and without the time of sending.

    The same for every delivery, replay and restart; another one for every eviction that is opened for the pod, so that
    an id is never used again after a `Cancel`.

    Args:
        cluster: the cluster's id.
        pod_uid: the pod's UID.
        opened_before: how many evictions were opened for this pod before, kept in its row.

    Returns:
        32 hexadecimal digits.
    """
    # Each text behind its length: no two different triples give the same bytes.
    text = f"{len(cluster)}:{cluster}{len(pod_uid)}:{pod_uid}{opened_before}"
    return EvictionId(hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest())
