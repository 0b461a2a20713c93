"""Steps about all pods of a node, in slices: a node may have any number of pods to decide about.

Such a step is an iterator of changes, at least one. Between two of them the caller may let others work, but not on
this aggregate; it writes all of them, or none: together they are one step. `whole` makes one of them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from evictstream.models.eviction.changes import UNCHANGED, Changes, Note
from evictstream.models.eviction.lifecycle import reconcile
from evictstream.models.eviction.state import NodeState
from evictstream.models.eviction.step import Step
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.decision import DecisionRecord

PODS_IN_SLICE: Final = 100
"""Some two milliseconds of work, if each gets a new deadline."""

GONE_IN_SLICE: Final = 1_000
"""Remembered UIDs that are forgotten at once: a millisecond."""

_LOOKS_LIKE_A_POD: Final = 64  # to look at so many takes as long as to decide about a usual pod


def weight_of(node: NodeState | None, tolerations: Tolerations) -> int:
    """Tell for how many usual decisions one counts: it looks at all taints of the node and all of these."""
    if node is None or not node.taints:
        return 1
    return 1 + (len(node.taints) + len(tolerations)) // _LOOKS_LIKE_A_POD


def reconcile_all(step: Step) -> Iterator[Changes]:
    """Decide about every pod of the node anew; what the last slice has changed is left in the step."""
    node = step.aggregate.node
    weight = 0
    for pod in step.aggregate.pods.values():
        reconcile(step, pod)
        weight += weight_of(node, pod.tolerations)
        if weight >= PODS_IN_SLICE:
            yield step.hand_over()
            weight = 0


def whole(slices: Iterable[Changes]) -> Changes:
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
    note = next((part.note for part in parts if part.note is not Note.UNCHANGED), Note.UNCHANGED)
    return Changes(note, list(rows.items()), commands, decisions, wakeups) if rows or wakeups else UNCHANGED
