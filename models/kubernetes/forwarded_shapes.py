"""Nodes and pods as a feed passes them on: the fields that some view of `shapes.py` reads, with values as they came."""

from typing import Final, TypeAlias

import msgspec

from evictstream.models.kubernetes.shapes import (
    MIRROR_ANNOTATION,
    POD_GROUP_LABEL,
    REQUIRED_AFFINITY,
    TEMPLATE_HASH_LABEL,
    TOLERATIONS_ANNOTATION,
)

_Any: TypeAlias = msgspec.Raw | msgspec.UnsetType
_NONE: Final = msgspec.UNSET


class _ForwardedMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    uid: str
    resource_version: str


class _ForwardedNodeMetadata(_ForwardedMetadata, rename="camel", omit_defaults=True):
    labels: _Any = _NONE


class ForwardedNodeSpec(msgspec.Struct, omit_defaults=True):
    """`spec` of a node."""

    taints: _Any = _NONE
    unschedulable: _Any = _NONE


class _ForwardedCondition(msgspec.Struct):
    type: str
    status: _Any = _NONE


class _ForwardedNodeStatus(msgspec.Struct, omit_defaults=True):
    conditions: list[_ForwardedCondition] | None = None


class ForwardedNode(msgspec.Struct, rename="camel", omit_defaults=True):
    """A node. Items of a list carry neither kind nor API version."""

    metadata: _ForwardedNodeMetadata
    kind: str = ""
    api_version: str = ""
    spec: ForwardedNodeSpec | None = None
    status: _ForwardedNodeStatus | None = None


class _ForwardedAnnotations(msgspec.Struct, omit_defaults=True):
    mirror: _Any = msgspec.field(default=_NONE, name=MIRROR_ANNOTATION)
    tolerations: _Any = msgspec.field(default=_NONE, name=TOLERATIONS_ANNOTATION)


class _ForwardedPodLabels(msgspec.Struct, omit_defaults=True):
    template_hash: _Any = msgspec.field(default=_NONE, name=TEMPLATE_HASH_LABEL)
    pod_group: _Any = msgspec.field(default=_NONE, name=POD_GROUP_LABEL)


class _ForwardedOwner(msgspec.Struct, rename="camel", omit_defaults=True):
    kind: _Any = _NONE
    name: _Any = _NONE
    uid: _Any = _NONE
    controller: _Any = _NONE


class _ForwardedPodMetadata(_ForwardedMetadata, rename="camel", omit_defaults=True):
    namespace: str = ""
    deletion_timestamp: _Any = _NONE
    annotations: _ForwardedAnnotations | None = None
    labels: _ForwardedPodLabels | None = None
    owner_references: list[_ForwardedOwner] | None = None


class _ForwardedNodeAffinity(msgspec.Struct, omit_defaults=True):
    required: _Any = msgspec.field(default=_NONE, name=REQUIRED_AFFINITY)


class _ForwardedAffinity(msgspec.Struct, rename="camel", omit_defaults=True):
    node_affinity: _ForwardedNodeAffinity | None = None


class ForwardedPodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """`spec` of a pod."""

    node_name: str | None = None
    tolerations: _Any = _NONE
    priority: _Any = _NONE
    scheduling_group: _Any = _NONE
    node_selector: _Any = _NONE
    affinity: _ForwardedAffinity | None = None


class _ForwardedDisruption(_ForwardedCondition, omit_defaults=True):
    reason: _Any = _NONE


class ForwardedPodStatus(msgspec.Struct, omit_defaults=True):
    """`status` of a pod."""

    phase: _Any = _NONE
    conditions: list[_ForwardedDisruption] | None = None


class ForwardedPod(msgspec.Struct, rename="camel", omit_defaults=True):
    """A pod."""

    metadata: _ForwardedPodMetadata
    kind: str = ""
    api_version: str = ""
    spec: ForwardedPodSpec | None = None
    status: ForwardedPodStatus | None = None
