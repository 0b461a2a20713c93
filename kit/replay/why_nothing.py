"""Why nothing is due for a pod, in a word for programs and a sentence for people (semantics.md 12.5)."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, NamedTuple

from evictstream.kit.replay.story import toleration_text
from evictstream.models.eviction import (
    Due,
    EvictionState,
    NodeAggregate,
    NothingDue,
    PodState,
    RuleParameters,
    built_in_due,
    decide,
)
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.matching import bounded_seconds, first_match
from evictstream.models.kubernetes.taints import taint_text

_MOST_TAINTS: Final = 5
"""Taints of a node that a sentence names."""


class PodCase(enum.StrEnum):
    """How it stands with a pod."""

    NO_TAINT = "NoTaint"
    TOLERATED = "Tolerated"
    BUILT_IN = "BuiltIn"
    TERMINATING = "Terminating"
    FINISHED = "Finished"
    MIRROR = "Mirror"
    UNDECIDABLE = "Undecidable"
    NODE_UNKNOWN = "NodeUnknown"
    NODE_GONE = "NodeGone"
    UNBOUND = "Unbound"
    GONE = "Gone"
    REFUSED = "Refused"
    DUE = "Due"
    THERE = "There"


class WhyNothing(NamedTuple):
    """How it stands with a pod, and the sentence that says so."""

    case: PodCase
    text: str


UNBOUND: Final = WhyNothing(PodCase.UNBOUND, "It is not bound to a node.")
GONE: Final = WhyNothing(PodCase.GONE, "It is gone.")
DEAD_LETTERED: Final = WhyNothing(PodCase.REFUSED, "The recorded object is invalid; the service writes a dead letter.")

_OF_POD: Final[dict[NothingDue, WhyNothing]] = {
    NothingDue.TERMINATING: WhyNothing(PodCase.TERMINATING, "It is already terminating."),
    NothingDue.FINISHED: WhyNothing(PodCase.FINISHED, "It has finished."),
    NothingDue.MIRROR: WhyNothing(PodCase.MIRROR, "It is a mirror pod; only its kubelet can end the static pod."),
    NothingDue.UNDECIDABLE: WhyNothing(
        PodCase.UNDECIDABLE, "It or its node has too many or too long taints or tolerations, so it is ignored."
    ),
}


def why_nothing(aggregate: NodeAggregate, uid: str, rules: RuleParameters) -> WhyNothing:
    """Say how it stands with a pod of a node by what is known now; `GONE` where the node has no such pod."""
    pod = aggregate.pods.get(uid)
    if pod is None:
        return GONE
    due = decide(aggregate.node, pod, rules)
    if isinstance(due, Due):
        return WhyNothing(PodCase.DUE, _due(pod, due))
    if due is NothingDue.NODE_UNKNOWN:
        if aggregate.earlier_nodes:
            return WhyNothing(PodCase.NODE_GONE, f"Its node {aggregate.name} is gone.")
        return WhyNothing(PodCase.NODE_UNKNOWN, f"Its node {aggregate.name} is unknown.")
    if due is NothingDue.NO_TAINT:
        return WhyNothing(PodCase.NO_TAINT, f"Its node {aggregate.name} has no NoExecute taint.")
    if due is NothingDue.TOLERATED:
        return WhyNothing(PodCase.TOLERATED, " ".join(_tolerations(aggregate, pod, rules)))
    if due is NothingDue.BUILT_IN:
        return WhyNothing(PodCase.BUILT_IN, _of_built_in(aggregate, pod, rules))
    return _OF_POD[due]


def _due(pod: PodState, due: Due) -> str:
    eviction = pod.eviction
    if eviction is not None and eviction.state is EvictionState.DONE:
        return "Its eviction is done."
    return f"It has to leave at {instant_text(due.deadline_us)}, because of the taint {taint_text(due.taint)}."


def _of_built_in(aggregate: NodeAggregate, pod: PodState, rules: RuleParameters) -> str:
    due = None if aggregate.node is None else built_in_due(aggregate.node, pod, rules)
    if due is None:
        return "Kubernetes' own controller evicts it."
    taint = taint_text(due.taint)
    return f"Kubernetes' own controller evicts it, because of the taint {taint}, at {instant_text(due.deadline_us)}."


def _tolerations(aggregate: NodeAggregate, pod: PodState, rules: RuleParameters) -> Iterator[str]:
    taints = () if aggregate.node is None else aggregate.node.taints
    for state in taints[:_MOST_TAINTS]:
        match = first_match(pod.tolerations, state.taint, comparison_operators=rules.comparison_operators)
        seconds = None if match is None else bounded_seconds(match)
        stay = "forever" if seconds is None else f"for {seconds} s, which end after the year 9999,"
        by = "" if match is None else f" by its toleration {toleration_text(match)}"
        yield f"It tolerates the taint {taint_text(state.taint)} of {aggregate.name} {stay}{by}."
    if len(taints) > _MOST_TAINTS:
        yield f"It tolerates {len(taints) - _MOST_TAINTS} more taints."
