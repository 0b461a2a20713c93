"""Holds in outages of zones: nothing goes while each count of nodes that a worker may know is of an outage.

Such a clause stands here as a brake with the field `while`. It holds nothing for sure in the search for a pod's story,
and may let everything wait. What is surely wrong is found here, from counts made anew from the nodes topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.limits import SECOND_US, OracleLimits
from evictstream.kit.oracle.readiness import node_turns, ready_status
from evictstream.kit.oracle.reading import Json, Statement
from evictstream.kit.oracle.records import Violation
from evictstream.kit.oracle.standing_brakes import BrakeSpell

_DELETED_COUNTS_US: Final = 600 * SECOND_US

_ZONE: Final = "topology.kubernetes.io/zone"
_HEALTH: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MOST_TAINTS: Final = 1_000  # a node with more has none that count


class _NodeThen(NamedTuple):
    """A node: its zone, whether it is unhealthy, and when it was deleted."""

    zone: str
    is_sick: bool
    left_us: int | None = None


class _State(NamedTuple):
    """All nodes of a cluster, from a record on."""

    append_us: int
    nodes: Mapping[str, _NodeThen]


def check_outages(
    commands: Iterable[SeenCommand],
    nodes: Mapping[str, Mapping[str, Sequence[Statement]]],
    spells: Sequence[Sequence[BrakeSpell]],
    limits: OracleLimits,
) -> Iterator[Violation]:
    """Find evictions that were issued in an outage, while every worker knew the hold.

    Args:
        commands: of all partitions.
        nodes: statements of the nodes topic, by cluster and node.
        spells: of all brakes.
        limits: how old what a worker knows may be.
    """
    holds = [spell for of_key in spells for spell in of_key if spell.fields and "while" in spell.fields]
    if not holds:
        return
    states = {cluster: list(_states(of_cluster)) for cluster, of_cluster in nodes.items()}
    for one in commands:
        if one.action != "Evict":
            continue
        for spell in holds:
            from_us = min(one.issued_at_us, one.at_us) - limits.lag_us - limits.clock_skew_us
            is_known = spell.is_surely_known(one.issued_at_us, one.at_us)
            if is_known and _holds(spell, one) and _is_out(one, spell, states.get(one.cluster, []), from_us):
                text = f"{one}, under {(spell.fields or {})['while']}"
                yield Violation("issued in an outage", text, cluster=one.cluster, node=one.node, pod_uid=one.pod_uid)


def _holds(spell: BrakeSpell, one: SeenCommand) -> bool:
    is_about = bool((spell.fields or {}).get("taints")) or one.taint in _HEALTH
    return is_about and spell.matches(one.cluster, one.pod.partition("/")[0], one.taint)


def _is_out(one: SeenCommand, spell: BrakeSpell, states: Sequence[_State], from_us: int) -> bool:
    """Tell whether each state that may have been known is of an outage."""
    before = [state for state in states if state.append_us <= from_us][-1:]
    between = [state for state in states if from_us < state.append_us <= one.at_us]
    condition: Json = (spell.fields or {})["while"]
    return bool(before) and all(_is_met(condition, state, one.node, one.at_us) for state in (*before, *between))


def _is_met(condition: Json, state: _State, name: str, at_us: int) -> bool:
    node = state.nodes.get(name)
    if node is None or node.left_us is not None:
        return False
    if "zones" in condition:
        return all(each.is_sick for each in state.nodes.values() if each.left_us is None)
    here = [each for each in state.nodes.values() if each.zone == node.zone]
    if any(each.left_us is not None and each.left_us + _DELETED_COUNTS_US <= at_us for each in here):
        return False  # whether it counted then is not sure
    sick = sum(each.is_sick for each in here)
    zone: dict[str, int] = condition["zone"]
    return sick >= zone.get("atLeast", 3) and sick * 100 // len(here) >= zone["unhealthyPercent"]


def _states(of_cluster: Mapping[str, Sequence[Statement]]) -> Iterator[_State]:
    turns = [
        (turn.statement.record.offset, name, turn) for name, said in of_cluster.items() for turn in node_turns(said)
    ]
    nodes: dict[str, _NodeThen] = {}
    for _, name, (statement, uid) in sorted(turns, key=lambda turn: turn[0]):
        before = nodes.get(name)
        if uid is not None:
            nodes[name] = _node(statement.content)
        elif before is not None:
            nodes[name] = before._replace(left_us=statement.at_us)
        yield _State(statement.record.append_at_us, dict(nodes))


def _node(node: Json) -> _NodeThen:
    taints = (node.get("spec") or {}).get("taints") or ()
    is_tainted = len(taints) <= _MOST_TAINTS and any(
        taint["key"] in _HEALTH and taint["effect"] == "NoExecute" for taint in taints
    )
    zone = (node["metadata"].get("labels") or {}).get(_ZONE) or ""
    return _NodeThen(zone, is_tainted or ready_status(node) not in {None, "True"})
