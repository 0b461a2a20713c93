"""Whether a pod's own spec lets it land on a node: `nodeSelector` and the required part of its node affinity.

Source: `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go` (`RequiredNodeAffinity`),
with requirements on labels as `staging/src/k8s.io/apimachinery/pkg/labels/selector.go` has them. Preferred terms move
ranks only and are not read.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

NODE_NAME_FIELD: Final = "metadata.name"
"""The only field that `matchFields` may name; DaemonSets bind their pods with it."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)
_PLACEMENTS_KEPT: Final = 4096
"""Distinct texts that are read once; a cluster has tens, and as many as nodes where DaemonSets name each node."""


class NodeRequirement(msgspec.Struct, frozen=True):
    """One condition on a label or a field; an unknown operator is never met."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions that have to be met together; a term without any is met by no node."""

    match_expressions: tuple[NodeRequirement, ...] | None = None
    match_fields: tuple[NodeRequirement, ...] | None = None


class NodePlacement(msgspec.Struct, frozen=True):
    """What a pod asks of its node.

    Attributes:
        selector: labels that the node must have, with their values.
        terms: one of them must be met; None if the pod requires nothing further.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def admits(self, name: str, labels: Mapping[str, str] | None) -> bool | None:
        """Tell whether a node meets it.

        Args:
            name: of the node.
            labels: of the node, None if they are not known.

        Returns:
            None if it depends on labels that are not known.
        """
        if labels is None:
            near = [] if self.terms is None else [term for term in self.terms if _may_be_met(term, name)]
            if self.terms is not None and not near:
                return False
            depends = bool(self.selector) or (bool(near) and all(term.match_expressions for term in near))
            return None if depends else True
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.terms is None or any(_is_met(term, name, labels) for term in self.terms)


ANYWHERE: Final = NodePlacement()


class _Required(msgspec.Struct, rename="camel"):
    node_selector_terms: tuple[NodeTerm, ...] | None = None


_selector_decoder: Final = msgspec.json.Decoder(dict[str, str] | None)
_required_decoder: Final = msgspec.json.Decoder(_Required | None)


@lru_cache(maxsize=_PLACEMENTS_KEPT)
def read_placement(selector: bytes, required: bytes) -> NodePlacement:
    """Read what a pod asks of its node; equal texts give one object.

    Args:
        selector: JSON of `spec.nodeSelector`, or null.
        required: JSON of `requiredDuringSchedulingIgnoredDuringExecution` of its node affinity, or null.

    Raises:
        msgspec.DecodeError: one of them has another shape.
    """
    labels = _selector_decoder.decode(selector) or {}
    affinity = _required_decoder.decode(required)
    terms = None if affinity is None else affinity.node_selector_terms or ()
    return NodePlacement(tuple(sorted(labels.items())), terms)


def _is_met(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    return _may_be_met(term, name) and all(_has_label(one, labels) for one in term.match_expressions or ())


def _may_be_met(term: NodeTerm, name: str) -> bool:
    """Tell whether the fields of a node meet a term, which is all that can be told without its labels."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_has_name(one, name) for one in term.match_fields or ())


def _has_name(requirement: NodeRequirement, name: str) -> bool:
    if requirement.key != NODE_NAME_FIELD or len(requirement.values) != 1:
        return False
    match requirement.operator:
        case "In":
            return requirement.values[0] == name
        case "NotIn":
            return requirement.values[0] != name
        case _:
            return False


def _has_label(requirement: NodeRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compares(requirement.operator, value, requirement.values)
        case _:
            return False


def _compares(operator: str, text: str, bounds: Sequence[str]) -> bool:
    value, bound = _integer(text), _integer(bounds[0]) if len(bounds) == 1 else None
    if value is None or bound is None:
        return False
    return value > bound if operator == "Gt" else value < bound


def _integer(text: str) -> int | None:
    """Read a number as Go's `ParseInt` does, with sign and leading zeros."""
    if not _INTEGER.fullmatch(text):
        return None
    return number if (number := int(text)) in _INT64 else None
