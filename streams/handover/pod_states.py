"""Whether a pod was moved, and why not: what `check` counts, and what `move` and `restore` look for."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from evictstream.models.kubernetes.handed_over import HandedOver, read_handed_over, spec_seconds
from evictstream.models.kubernetes.shapes import NULL, PodObject
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations
from evictstream.streams.handover.policy_expressions import MOST_SECONDS
from evictstream.streams.handover.policy_objects import OPT_OUT_LABEL

MOST_MOVED: Final = 300
"""Tolerations with seconds of one pod that the policy moves, as a rule: its cost grows with their square, and the API
server ends it. Where keys are long it is fewer."""

_OVER: Final = frozenset({"Succeeded", "Failed"})


class HandoverState(enum.StrEnum):
    """What a pod is to the policy. `MOVED` and `TO_MOVE` are the only ones that a policy or a patch changes."""

    MOVED = "moved"
    TO_MOVE = "toMove"
    UNREADABLE = "unreadableAnnotation"
    TOO_MANY = "tooManyTolerations"
    OPTED_OUT = "namespaceOptedOut"
    EXCLUDED = "namespaceExcluded"
    NO_SECONDS = "noSeconds"
    UNTOLERATED = "noToleration"
    MIRROR = "mirrorPod"
    OVER = "over"


MEANINGS: Final = {
    HandoverState.MOVED: "evictstream's",
    HandoverState.TO_MOVE: "created before the policy, or while it did not act; `evictstream handover move` moves them",
    HandoverState.UNREADABLE: "their annotation counts as absent; take it off",
    HandoverState.TOO_MANY: f"more than some {MOST_MOVED} tolerations with seconds, which no policy can move",
    HandoverState.OPTED_OUT: f"their namespace has the label {OPT_OUT_LABEL}=off",
    HandoverState.EXCLUDED: "the binding of the policy leaves their namespace out",
    HandoverState.NO_SECONDS: "their tolerations have no seconds: there is nothing to move",
    HandoverState.UNTOLERATED: "they tolerate no NoExecute taint: the built-in controller evicts them at once",
    HandoverState.MIRROR: "they stand for static pods, which no controller evicts",
    HandoverState.OVER: "finished or terminating",
}
"""Of the pods of each state, for people."""


class ClusterPod(PodObject, gc=False):
    """A pod of a list, with what is in force for it."""

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return (self.metadata.namespace if self.metadata else None) or ""

    @property
    def name(self) -> str:
        """Its name."""
        return (self.metadata.name if self.metadata else None) or ""

    @property
    def path(self) -> str:
        """Where it is at the API server."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def is_over(self) -> bool:
        """Whether it is finished or terminating."""
        phase = self.status.phase if self.status else None
        return phase in _OVER or (self.metadata is not None and self.metadata.deletion_timestamp is not None)

    def annotation(self) -> msgspec.Raw:
        """Return the JSON of the annotation, null if it has none."""
        annotations = self.metadata.annotations if self.metadata else None
        return NULL if annotations is None else annotations.tolerations

    def handed(self) -> HandedOver:
        """Return what is in force.

        Raises:
            msgspec.ValidationError: the tolerations are not as the API server writes them.
        """
        return read_handed_over(self.spec.tolerations if self.spec else NULL, self.annotation())


decode_pod: Final = msgspec.json.Decoder(ClusterPod).decode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRules:
    """Which namespaces the policy is bound to.

    Attributes:
        expressions: of the binding's namespace selector.
        labels: of each namespace.
    """

    expressions: Sequence[Mapping[str, object]] = ()
    labels: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)

    def why_out(self, namespace: str) -> HandoverState | None:
        """Return why pods of a namespace are not moved; None if they are."""
        labels = self.labels.get(namespace, {})
        if labels.get(OPT_OUT_LABEL) == "off":
            return HandoverState.OPTED_OUT
        return None if all(_matches(each, labels) for each in self.expressions) else HandoverState.EXCLUDED


def state_of(pod: ClusterPod, rules: NamespaceRules) -> HandoverState:
    """Return what a pod is to the policy."""
    if pod.is_over():
        return HandoverState.OVER
    if pod.metadata is not None and pod.metadata.is_mirror:
        return HandoverState.MIRROR
    handed = pod.handed()
    left = timed(handed.tolerations)
    if not left:
        return _of_settled(handed)
    out = rules.why_out(pod.namespace)
    if out is not None:
        return out
    if handed.is_unreadable:
        return HandoverState.UNREADABLE
    return HandoverState.TOO_MANY if left > MOST_MOVED else HandoverState.TO_MOVE


def timed(tolerations: Tolerations) -> int:
    """Count the tolerations that the policy would move: the first of each identity, with seconds in the spec."""
    seen = set[tuple[str, str, str, str]]()
    count = 0
    for one in tolerations:
        is_first = one.identity not in seen
        seen.add(one.identity)
        count += is_first and one.effect == NO_EXECUTE and one.toleration_seconds is not None and not _is_moved(one)
    return count


def _is_moved(one: Toleration) -> bool:
    # What the policy writes in place of longer seconds has an entry that only prolongs, and so does not count.
    return one.built_in_seconds is not msgspec.UNSET or spec_seconds(one) == MOST_SECONDS


def _of_settled(handed: HandedOver) -> HandoverState:
    if handed.is_unreadable:
        return HandoverState.UNREADABLE
    if any(map(_is_moved, handed.tolerations)):
        return HandoverState.MOVED
    is_tolerant = any(one.effect in ("", NO_EXECUTE) for one in handed.tolerations)
    return HandoverState.NO_SECONDS if is_tolerant else HandoverState.UNTOLERATED


def _matches(expression: Mapping[str, object], labels: Mapping[str, str]) -> bool:
    """Whether labels fit one expression of a selector; what cannot be read leaves nothing out."""
    value, values = labels.get(str(expression.get("key"))), expression.get("values")
    among = value in values if isinstance(values, Iterable) else False
    match expression.get("operator"):
        case "In":
            return among
        case "NotIn":
            return not among
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return True
