"""Steps about a whole node in one go: what the service takes slice by slice, joined as one `Changes`."""

from __future__ import annotations

from collections.abc import Iterable

from evictstream.models.eviction import (
    UNCHANGED,
    Changes,
    Eviction,
    InputEffect,
    NodeAggregate,
    NodeEvent,
    Origin,
    RuleParameters,
    decide_all_slices,
    forget_slices,
    node_slices,
)
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.decision import DecisionRecord


def apply_node(aggregate: NodeAggregate, event: NodeEvent, rules: RuleParameters) -> Changes:
    return _joined(node_slices(aggregate, event, rules))


def decide_all(aggregate: NodeAggregate, at_us: int, rules: RuleParameters, origin: Origin | None = None) -> Changes:
    return _joined(decide_all_slices(aggregate, at_us, rules, origin))


def forget(aggregate: NodeAggregate, at_us: int, rules: RuleParameters, origin: Origin | None = None) -> Changes:
    return _joined(forget_slices(aggregate, at_us, rules, origin))


def _joined(slices: Iterable[Changes]) -> Changes:
    """Join the slices of a step: each row once, with its last value, everything else in order."""
    parts = list(slices)
    if len(parts) == 1:
        return parts[0]
    rows: dict[bytes, bytes | None] = {}
    commands, decisions, wakeups = list[EvictionCommand](), list[DecisionRecord](), list[tuple[int, str]]()
    moves = list[tuple[Eviction | None, Eviction | None]]()
    for part in parts:
        rows.update(part.rows)
        commands += part.commands
        decisions += part.decisions
        wakeups += part.wakeups
        moves += part.moves
    if not rows and not wakeups:
        return UNCHANGED
    effect = next((part.effect for part in parts if part.effect is not InputEffect.UNCHANGED), InputEffect.UNCHANGED)
    return Changes(
        effect, rows=list(rows.items()), commands=commands, decisions=decisions, wakeups=wakeups, moves=moves
    )
