"""Steps about all pods of a node, in slices: a node may have any number of pods to decide about.

Such a step is an iterator of changes, at least one. Between two of them the caller may let others work, but not on
this aggregate; it writes all of them, or none: together they are one step. `whole` makes one of them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from models.eviction.changes import UNCHANGED, Changes, Note
from models.eviction.lifecycle import reconcile
from models.eviction.step import Step
from models.messages.wire import DecisionRecord, EvictionCommand

PODS_IN_SLICE: Final = 25
"""A millisecond of work, if each gets a new deadline."""

_TAINTS_LIKE_A_POD: Final = 64  # to look at so many takes as long as to decide about a pod otherwise


def look_weight(taints: int) -> int:
    """Tell for how many usual decisions one counts that looks at so many taints."""
    return 1 + taints // _TAINTS_LIKE_A_POD


def reconcile_all(step: Step) -> Iterator[Changes]:
    """Decide about every pod of the node anew; what the last slice has changed is left in the step."""
    node = step.aggregate.node
    size = max(1, PODS_IN_SLICE // look_weight(len(node.taints) if node is not None else 0))
    for number, pod in enumerate(step.aggregate.pods.values(), start=1):
        reconcile(step, pod)
        if number % size == 0:
            yield step.hand_over()


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
    note = next((part.note for part in parts if part.rows), Note.UNCHANGED)
    return Changes(note, list(rows.items()), commands, decisions, wakeups) if rows or wakeups else UNCHANGED
