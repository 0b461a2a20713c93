"""One step in the making: collects what it changes, and knows what it was caused by.

Lives only inside one call of a step function. Rows are collected by key, so a row that is changed twice in a step is
written once, with its last value.
"""

from evictstream.models.eviction.changes import UNCHANGED, Changes, Note
from evictstream.models.eviction.coverage import Coverage
from evictstream.models.eviction.identity import EvictionId, eviction_id
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.row_layout import eviction_value, gone_value, node_value, pod_value
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.state import Eviction, Gone, NodeAggregate, PodState
from evictstream.models.instants import instant_text
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.decision import DecisionCause, DecisionRecord
from evictstream.models.messages.events import Origin
from evictstream.models.messages.vocabulary import CauseKind

_POD = RowKind.POD  # bound once: an enum looks its members up slowly
_EVICTION = RowKind.EVICTION
_TIMER = CauseKind.TIMER
_CATCH_UP = CauseKind.CATCH_UP


class Step:
    """Collects the changes of one step.

    Attributes:
        note: what `finish` says of a step that has something to say.
        aggregate: what is stepped.
        rules: the numbers.
        at_us: the instant of the input, or now for a timer.
        key: `<cluster>/<node>`.
        node_uid: UID of the node that the step is about; of the old one while that one leaves.
        covered: what `decide` has worked out in this step, which looks at the taints of one node at most.
        commands: to be sent.
        decisions: to be recorded.
        wakeups: to be asked for.
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
        "covered",
        "decisions",
        "key",
        "node_uid",
        "note",
        "rules",
        "wakeups",
    )

    def __init__(
        self, aggregate: NodeAggregate, rules: Rules, at_us: int, kind: CauseKind, origin: Origin | None
    ) -> None:
        """Begin a step."""
        self.note = Note.CHANGED
        self.aggregate = aggregate
        self.key = aggregate.key
        self.rules = rules
        self.at_us = at_us
        self.node_uid = aggregate.node.uid if aggregate.node is not None else None
        self.covered: dict[int, Coverage] = {}
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
        """Whether something was heard, at `at_us`; else that is by our clock, which may be behind."""
        return self._kind is not _TIMER and self._kind is not _CATCH_UP

    @property
    def cause(self) -> DecisionCause:
        """The cause for decision records; made when the first one asks."""
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
        """Name an eviction; the name of the latest one is kept, since a command and a record mostly need the same."""
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

    def wake(self, at_us: int, uid: str) -> None:
        """Ask to be woken."""
        self.wakeups.append((at_us, uid))

    def finish(self) -> Changes:
        """Give what was collected, or the constant for nothing."""
        if self._rows or self.note is Note.UNDECIDABLE:
            return Changes(self.note, list(self._rows.items()), self.commands, self.decisions, self.wakeups)
        return Changes(Note.UNCHANGED, wakeups=self.wakeups) if self.wakeups else UNCHANGED

    def hand_over(self) -> Changes:
        """Give what was collected so far, and collect anew."""
        changes = self.finish()
        self._rows, self.commands, self.decisions, self.wakeups = {}, [], [], []
        return changes
