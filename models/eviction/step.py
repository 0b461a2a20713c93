"""One step of an aggregate: its cause, its changes, and the constants for steps that change nothing."""

import enum
import hashlib
from collections.abc import Sequence
from typing import Final, NewType

import msgspec

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.built_in_timer import Before
from evictstream.models.eviction.decision import Coverages
from evictstream.models.eviction.leaving_pods import count_left
from evictstream.models.eviction.node_rows import node_value
from evictstream.models.eviction.node_standing import node_standing
from evictstream.models.eviction.pod_owners import controller_of
from evictstream.models.eviction.pod_rows import deleted_pod_value, eviction_value, pod_value
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.rule_parameters import MOST_EARLIER_NODES, RuleParameters
from evictstream.models.eviction.state import DeletionMemory, Due, Eviction, NodeLeft, PodState
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.resource_versions import Version, later
from evictstream.models.kubernetes.traits import shared_owner
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.decision import DecisionCause, DecisionRecord
from evictstream.models.messages.events import Origin
from evictstream.models.messages.vocabulary import CauseKind
from evictstream.models.steering.holds import Hold

EvictionId = NewType("EvictionId", str)

_DIGEST_BYTES: Final = 16  # 128 bits: no collision among the evictions of any fleet

_POD = RowKind.POD  # see `evictstream.models.eviction` for these constants
_EVICTION = RowKind.EVICTION
_TIMER = CauseKind.TIMER
_CATCH_UP = CauseKind.CATCH_UP


class InputEffect(enum.StrEnum):
    """What an input did to the aggregate, for counting."""

    CHANGED = "changed"
    """Rows have changed; there may be messages and wake-ups."""
    UNCHANGED = "unchanged"
    """The input is newer, but changes nothing that is stored."""
    DUPLICATE = "duplicate"
    """The input was applied before."""
    STALE = "stale"
    """The input is older than the state: an older version, a deleted UID, a result of an old attempt."""
    UNDECIDABLE = "undecidable"
    """The object is beyond a limit: its pods are left alone. There may be rows, and messages that cancel."""


class Changes(msgspec.Struct, frozen=True):
    """What a step has changed, for the caller to write in one transaction.

    Steps that write nothing return one of the constants below, so an event that changes nothing allocates nothing.
    `fire` may also return wake-ups or a hold alone, with the effect `unchanged`.

    Attributes:
        effect: what the input did.
        rows: key and value, each key once; None deletes the row.
        commands: to executors, in the order of sending.
        decisions: records for people, in the order of deciding.
        wakeups: (instant in microseconds since 1970, UID of the pod or empty for the node itself). Earlier ones for the
            same UID may be dropped or kept: a stale wake-up does no harm.
        is_last: whether the step is whole; if not, other slices of it follow.
        hold: what holds an attempt that would be issued; None if nothing does.
        moves: each eviction that has changed, as it was and as it is; None where there is none.
    """

    effect: InputEffect
    rows: Sequence[tuple[bytes, bytes | None]] = ()
    commands: Sequence[EvictionCommand] = ()
    decisions: Sequence[DecisionRecord] = ()
    wakeups: Sequence[tuple[int, str]] = ()
    is_last: bool = True
    hold: Hold | None = None
    moves: Sequence[tuple[Eviction | None, Eviction | None]] = ()


UNCHANGED: Final = Changes(InputEffect.UNCHANGED)
DUPLICATE: Final = Changes(InputEffect.DUPLICATE)
STALE: Final = Changes(InputEffect.STALE)
UNDECIDABLE: Final = Changes(InputEffect.UNDECIDABLE)


class Step:
    """A step being built: it collects its changes and holds their cause.

    It lives only inside one call of a step function. Rows are collected by key, so a row that is changed twice in a
    step is written once, with its last value.

    Attributes:
        effect: that of the changes, if there are rows.
        aggregate: of the node; changed in place.
        rules: parameters of the rules.
        at_us: the instant of the input; for a timer, now.
        heard_us: when the cluster's feed was last heard, for a step that issues; None if it never was.
        held_by: what has held what a step issues, for its record; None if nothing has.
        patience_us: how long after its deadline a budget may keep the pod of what it issues; None if no policy says.
        hold: as in `Changes`.
        key: `<cluster>/<node>`.
        node_uid: UID of the node that the step is about; of the old one while that one leaves.
        coverages: cache for `decide`, shared by the pods of the step.
        before: for the timers of Kubernetes' own controller; None where that is off, and if the cause is no event.
        commands: to executors, in the order of sending.
        decisions: records for people, in the order of deciding.
        wakeups: as in `Changes`, and `moves`.
    """

    __slots__ = (
        "_cause",
        "_kind",
        "_named",
        "_origin",
        "_rows",
        "aggregate",
        "at_us",
        "before",
        "commands",
        "coverages",
        "decisions",
        "effect",
        "heard_us",
        "held_by",
        "hold",
        "key",
        "moves",
        "node_uid",
        "patience_us",
        "rules",
        "wakeups",
    )

    def __init__(
        self,
        aggregate: NodeAggregate,
        rules: RuleParameters,
        *,
        at_us: int,
        kind: CauseKind,
        origin: Origin | None,
        heard_us: int | None = None,
    ) -> None:
        self.effect = InputEffect.CHANGED
        self.aggregate = aggregate
        self.key = aggregate.key
        self.rules = rules
        self.at_us = at_us
        self.heard_us = heard_us
        self.held_by: str | None = None
        self.patience_us: int | None = None
        self.hold: Hold | None = None
        self.node_uid = aggregate.node.uid if aggregate.node is not None else None
        self.coverages: Coverages = {}
        self.commands: list[EvictionCommand] = []
        self.decisions: list[DecisionRecord] = []
        self.wakeups: list[tuple[int, str]] = []
        self.moves: list[tuple[Eviction | None, Eviction | None]] = []
        self._rows: dict[bytes, bytes | None] = {}
        self._kind = kind
        self._origin = origin
        self._cause: DecisionCause | None = None
        self.before = Before(aggregate.node, {}) if rules.built_in and self.is_from_event else None
        self._named: tuple[str, int, EvictionId] | None = None

    @property
    def is_from_event(self) -> bool:
        """Whether the cause is an event; otherwise `at_us` may come from the worker's clock, which may be behind."""
        return self._kind is not _TIMER and self._kind is not _CATCH_UP

    @property
    def is_catch_up(self) -> bool:
        """Whether it decides everything anew: what it changes has other rules as its reason."""
        return self._kind is _CATCH_UP

    @property
    def cause(self) -> DecisionCause:
        """The cause for decision records; created once, for the first of them."""
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
        """Compute the id of an eviction. The latest is cached: what asks for it and what tells of it share it."""
        named = self._named
        if named is not None and named[0] is pod.uid and named[1] == eviction.ordinal:
            return named[2]
        name = eviction_id(self.aggregate.cluster, pod.uid, eviction.ordinal)
        self._named = (pod.uid, eviction.ordinal, name)
        return name

    def write_node(self) -> None:
        """Write the node's row, or delete it if neither the node nor an earlier one is kept; and count the node."""
        aggregate = self.aggregate
        node, earlier_nodes = aggregate.node, aggregate.earlier_nodes
        if aggregate.known is not None:
            aggregate.known.take(aggregate.name, node_standing(aggregate), self.at_us)
        value = node_value(node, earlier_nodes.items()) if node is not None or earlier_nodes else None
        self._rows[row_key(RowKind.NODE, self.key)] = value

    def write_pod(self, pod: PodState) -> None:
        """Write a pod's row."""
        self._rows[row_key(_POD, self.key, pod.uid)] = pod_value(pod)

    def delete_pod(self, pod: PodState) -> None:
        """Delete the rows of a pod and of its eviction."""
        if pod.eviction is not None:
            self._rows[row_key(_EVICTION, self.key, pod.uid)] = None
        self._rows[row_key(_POD, self.key, pod.uid)] = None

    def write_eviction(self, pod: PodState) -> None:
        """Write the row of a pod's eviction, or delete it if the pod has none any more."""
        value = None if pod.eviction is None else eviction_value(pod.eviction)
        self._rows[row_key(_EVICTION, self.key, pod.uid)] = value

    def write_deleted_pod(self, uid: str, memory: DeletionMemory | None) -> None:
        """Write the row of a deleted pod, or delete it with None."""
        self._rows[row_key(RowKind.DELETED_POD, self.key, uid)] = None if memory is None else deleted_pod_value(memory)

    def remember_node(self, uid: str, version: Version, left: NodeLeft | None = None) -> None:
        """Remember a deleted node by its UID; events of it up to `version` will be dropped. Writes the node's row.

        Args:
            uid: of the node.
            version: of its deletion.
            left: as it was, if it was known until now.
        """
        earlier_nodes = self.aggregate.earlier_nodes
        memory = self._remembered(earlier_nodes.get(uid), version, 0)
        earlier_nodes[uid] = memory = memory if left is None else msgspec.structs.replace(memory, left=left)
        if len(earlier_nodes) > MOST_EARLIER_NODES:
            del earlier_nodes[min(earlier_nodes, key=lambda known: earlier_nodes[known].until_us)]
        self.write_node()
        self._wake_to_purge(memory)

    def remember_pod(self, uid: str, version: Version, opened: int, pod: PodState | None = None) -> None:
        """Remember a deleted pod by its UID; events of it up to `version` will be dropped. Writes its row.

        `pod` is it as it was, if it was known: it may have an eviction that was issued.
        """
        memories = self.aggregate.deleted_pods
        # Popped, so that it is moved to the end: the order is that of forgetting.
        before = memories.pop(uid, None)
        memory = self._remembered(before, version, opened)
        if pod is not None and (done := pod.eviction) is not None:
            owner = controller_of(pod)
            memory = msgspec.structs.replace(
                memory,
                evicted_for=done.due.taint.key,
                evicted_us=done.issued_at_us or done.due.deadline_us,
                owner=None if owner is None else shared_owner(owner),
            )
        memories[uid] = memory
        count_left(self.aggregate, before, -1)
        count_left(self.aggregate, memory, 1)
        self.write_deleted_pod(uid, memory)
        self._wake_to_purge(memory)

    def _remembered(self, memory: DeletionMemory | None, version: Version, opened: int) -> DeletionMemory:
        until_us = self.at_us + self.rules.remember_deleted_us
        if memory is None:
            return DeletionMemory(version, until_us, opened)
        return msgspec.structs.replace(
            memory,
            version=later(version, memory.version),
            until_us=max(until_us, memory.until_us),
            opened=max(opened, memory.opened),
        )

    def _wake_to_purge(self, memory: DeletionMemory) -> None:
        """Keep one wake-up for the node, not one for each deleted pod: `expire` forgets all whose time is over."""
        aggregate = self.aggregate
        if aggregate.purge_at_us is None or memory.until_us < aggregate.purge_at_us:
            aggregate.purge_at_us = memory.until_us
            self.wake(memory.until_us, "")

    def issued_at_us(self, due: Due) -> int:
        """Return a command's `issuedAt`: the step's instant, but not before the reason for the command.

        The step's instant may be earlier, if the later of two records was read first or if the worker's clock is
        behind.
        """
        reason_us = due.reason_us
        return self.at_us if self.at_us > reason_us else reason_us  # noqa: FURB136 - max() costs twice as much here

    def wake(self, at_us: int, uid: str) -> None:
        """Ask for a wake-up: of a pod, or of the node itself if `uid` is empty."""
        self.wakeups.append((at_us, uid))

    def finish(self) -> Changes:
        """Return the changes, or the constant if there are none."""
        if self._rows or self.effect is InputEffect.UNDECIDABLE:
            return Changes(
                self.effect,
                rows=list(self._rows.items()),
                commands=self.commands,
                decisions=self.decisions,
                wakeups=self.wakeups,
                hold=self.hold,
                moves=self.moves,
            )
        if self.wakeups or self.hold is not None:
            return Changes(InputEffect.UNCHANGED, wakeups=self.wakeups, hold=self.hold)
        return UNCHANGED

    def finish_slice(self) -> Changes:
        """Return the changes so far, and begin the next slice."""
        changes = msgspec.structs.replace(self.finish(), is_last=False)
        self._rows, self.commands, self.decisions, self.wakeups, self.moves = {}, [], [], [], []
        return changes


def eviction_id(cluster: str, pod_uid: str, opened_before: int) -> EvictionId:
    """Compute the id of a pod's eviction, without chance and without the time of sending.

    It is the same for every delivery, replay and restart. Every eviction that is opened for the pod has another one, so
    an id is never used again after a `Cancel`.

    Args:
        cluster: the cluster's id.
        pod_uid: the pod's UID.
        opened_before: how many evictions were opened for this pod before, kept in its row.

    Returns:
        32 hexadecimal digits.
    """
    # Each text follows its length, so two different triples never give the same bytes.
    text = f"{len(cluster)}:{cluster}{len(pod_uid)}:{pod_uid}{opened_before}"
    return EvictionId(hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest())
