"""Traits of nodes and pods: what policies select and count by, and what no rule of Kubernetes' evictions looks at.

A trait never makes an object unreadable or undecidable. One that has a wrong type or is too long counts as absent.

Thousands of pods have one owner, and all nodes of a zone one label, so equal traits are one object.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

import msgspec

from evictstream.models.kubernetes.shapes import (
    NULL,
    POD_GROUP_LABEL,
    ZONE_LABEL,
    OwnerObject,
    PodMetadataObject,
    PodSpecObject,
    SchedulingGroupObject,
)

LONGEST_TRAIT: Final = 253
"""Characters of the kind and the name of an owner, of a group and of a zone. Kubernetes' names have no more; kinds and
names of owners are not checked there. A longer one counts as absent."""

LONGEST_LABELS_BYTES: Final = 32_768
"""JSON of all labels of a node; a node with two hundred discovered features has some 12,000. Each row of the node
contains them. Of more only the zone is kept."""

_SHARED_PODS: Final = 8_192  # the pods of one owner are listed one after the other
_SHARED_LABELS: Final = 8_192  # some are of all nodes of a zone, and of each node some are its own
_SHARED_TEXTS: Final = 1_024  # kinds of owners, and keys of labels
_LONGEST_SHARED: Final = 253  # characters of what these caches keep, so that each has at most some megabytes
_PRIORITIES: Final = range(-(2**31), 2**31)
_PRIORITY_BYTES: Final = 32  # of these the longest has eleven; no more digits are read

_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

NodeLabels: TypeAlias = tuple[tuple[str, str], ...]
"""Labels of a node, by key; each pair is shared."""


class PodTraits(msgspec.Struct, gc=False, eq=False):  # noqa: PLW1641 - nothing finds them by their value
    """What policies know of a pod; shared by the pods of one owner, and never changed.

    Attributes:
        owner_kind: kind of the owner that is its controller, as Kubernetes shows it: of a pod of a Deployment that is
            `ReplicaSet`. Empty if it has none.
        owner_name: its name.
        priority: `spec.priority`; 0 if absent, as in Kubernetes.
        group: name of its PodGroup, by `spec.schedulingGroup`, else by the label `scheduling.x-k8s.io/pod-group`; empty
            if it has none.
        text: hash of the JSON that last had these traits, for the fast path; 0 before, as after a restart. It has 64
            bits and a secret of the process, so no two texts have the same. Not compared.
    """

    owner_kind: str = ""
    owner_name: str = ""
    priority: int = 0
    group: str = ""
    text: int = 0

    def __eq__(self, other: object) -> bool:
        """Compare all but the text."""
        return self is other or (isinstance(other, PodTraits) and self.fields == other.fields)

    def __ne__(self, other: object) -> bool:
        """Say so too: a struct's own compares identities."""
        return not self == other

    @property
    def fields(self) -> "TraitFields":
        """As in a row."""
        return self.owner_kind, self.owner_name, self.priority, self.group

    @property
    def owner(self) -> str:
        """`Kind/name` of its controller; empty if it has none."""
        return f"{self.owner_kind}/{self.owner_name}" if self.owner_kind else ""


Owner: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name of the controller of pods."""

TraitFields: TypeAlias = tuple[str, str, int, str]
"""Kind and name of the owner, priority, and group."""

NO_TRAITS: Final = PodTraits()
"""Of a pod without controller, priority and group."""

_T = TypeVar("_T")

_owners: Final = msgspec.json.Decoder(list[OwnerObject] | None)
_priority: Final = msgspec.json.Decoder(int | None)
_scheduling_group: Final = msgspec.json.Decoder(SchedulingGroupObject | None)
_labels: Final = msgspec.json.Decoder(dict[str, str | None] | None)


class _GroupLabel(msgspec.Struct, gc=False):
    group: str | None = msgspec.field(default=None, name=POD_GROUP_LABEL)


class _ZoneLabel(msgspec.Struct, gc=False):
    zone: str | None = msgspec.field(default=None, name=ZONE_LABEL)


_group_label: Final = msgspec.json.Decoder(_GroupLabel | None)
_zone_label: Final = msgspec.json.Decoder(_ZoneLabel | None)


def read_pod_traits(metadata: PodMetadataObject, spec: PodSpecObject | None) -> PodTraits:
    """Read the traits of a pod into the object that all equal ones share."""
    owner = _controller(metadata.owner_references)
    priority = 0
    group: str | None = None
    if spec is not None:
        if len(bytes(spec.priority)) <= _PRIORITY_BYTES:
            priority = _read(_priority, spec.priority) or 0
        named = _read(_scheduling_group, spec.scheduling_group)
        group = None if named is None else _short(named.pod_group_name)
    if not group:
        labelled = _read(_group_label, metadata.labels)
        group = None if labelled is None else _short(labelled.group)
    kind, name = ("", "") if owner is None else (owner.kind or "", owner.name or "")
    return shared_pod_traits((kind, name, priority if priority in _PRIORITIES else 0, group or ""))


def shared_pod_traits(fields: TraitFields) -> PodTraits:
    """Return the object that stands for all traits with these fields; very long ones are not shared."""
    kind, name, priority, group = fields
    if len(kind) + len(name) + len(group) <= _LONGEST_SHARED:
        return _shared_traits(kind, name, priority, group)
    return PodTraits(kind, name, priority, group)


def shared_owner(owner: Owner) -> Owner:
    """Return the object that stands for all equal owners; very long ones are not shared."""
    return _shared_owner(owner) if sum(map(len, owner)) <= _LONGEST_SHARED else owner


def read_node_labels(labels: msgspec.Raw) -> Mapping[str, str | None]:
    """Read the labels of a node; only the zone of those that are too many, or of which one cannot be read."""
    if labels == NULL:
        return {}
    if len(bytes(labels)) <= LONGEST_LABELS_BYTES:
        read: dict[str, str | None] | None = _read(_labels, labels)
        if read is not None:
            return read
    zone = _read(_zone_label, labels)
    return {} if zone is None or zone.zone is None else {ZONE_LABEL: _short(zone.zone)}


def shared_node_labels(labels: Mapping[str, str | None], known: NodeLabels | None) -> NodeLabels:
    """Return labels as a node keeps them: what is known if it is the same."""
    if known is not None and len(known) == len(labels) and all(labels.get(key) == value for key, value in known):
        return known
    return shared_labels((key, value or "") for key, value in sorted(labels.items()))


def shared_labels(labels: Iterable[tuple[str, str]]) -> NodeLabels:
    """Return labels with the pairs that stand for all equal ones; very long ones are not shared."""
    return tuple(
        _shared_label(*label) if len(label[0]) + len(label[1]) <= _LONGEST_SHARED else label for label in labels
    )


def zone_of(labels: NodeLabels | None) -> str | None:
    """Return the zone by a node's labels: empty if none names it, None if the labels are not known."""
    return None if labels is None else label_of(labels, ZONE_LABEL) or ""


def label_of(labels: NodeLabels, wanted: str) -> str | None:
    """Return the value of a label; None if the node has no such label."""
    for key, value in labels:
        if key == wanted:
            return value
    return None


def _controller(references: msgspec.Raw) -> OwnerObject | None:
    """Return the owner that is the controller, unless its kind or name is missing or too long."""
    for owner in _read(_owners, references) or ():
        if owner.controller:
            return owner if _short(owner.kind) and _short(owner.name) else None
    return None


def _short(text: str | None) -> str:
    return text if text is not None and len(text) <= LONGEST_TRAIT else ""


def _read(decoder: msgspec.json.Decoder[_T], text: msgspec.Raw) -> _T | None:
    if text == NULL:
        return None
    try:
        return decoder.decode(text)
    except _ERRORS:
        return None


@lru_cache(maxsize=_SHARED_PODS)
def _shared_traits(kind: str, name: str, priority: int, group: str) -> PodTraits:
    traits = PodTraits(_shared_text(kind), name, priority, group)
    return NO_TRAITS if traits == NO_TRAITS else traits


@lru_cache(maxsize=_SHARED_PODS)
def _shared_owner(owner: Owner) -> Owner:
    return owner


@lru_cache(maxsize=_SHARED_LABELS)
def _shared_label(key: str, value: str) -> tuple[str, str]:
    return _shared_text(key), value


@lru_cache(maxsize=_SHARED_TEXTS)
def _shared_text(text: str) -> str:
    return text
