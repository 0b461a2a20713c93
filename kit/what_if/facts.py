"""What the rules of eviction do not use of nodes and pods, and people ask for: labels, owners, where a pod may land.

Feeds trim objects, and feeds of earlier versions trimmed more. What an object did not hold is not known: it is never
taken for absent.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from evictstream.kit.rules.scheduling.node_affinity import NodePlacement, read_placement
from evictstream.models.kubernetes.objects import ObjectError, listed_taints, read_taints
from evictstream.models.kubernetes.resource_versions import Version, read_version
from evictstream.models.kubernetes.shapes import (
    NULL,
    MetadataObject,
    NodeFactsObject,
    OwnerObject,
    PodFactsMetadata,
    PodFactsObject,
    PodFactsSpec,
    PodLabelsObject,
)
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason

ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
"""Every kubelet sets it, so labels without it were trimmed."""


class NodeFacts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A node, as far as its eviction rules do not need it.

    Attributes:
        labels: those that are known.
        has_all_labels: whether they are all that the node has.
        taints: with all effects, in node order.
        unschedulable: it is cordoned.
    """

    labels: Mapping[str, str] = {}
    has_all_labels: bool = False
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False

    @property
    def zone(self) -> str | None:
        """The zone, None if no label names one."""
        return next((self.labels[label] for label in ZONE_LABELS if label in self.labels), None)


class PodFacts(msgspec.Struct, frozen=True, gc=False):
    """A pod, as far as its eviction rules do not need it.

    Attributes:
        workload: kind and name of its controller, the Deployment where its ReplicaSet was made by one; empty for a pod
            of its own, None if it is not known.
        placement: what it asks of its node, None if it is not known.
    """

    workload: str | None = None
    placement: NodePlacement | None = None


UNKNOWN_POD: Final = PodFacts()


class ReadFacts(msgspec.Struct, frozen=True, gc=False):
    """Facts, and what they are about.

    Attributes:
        uid: of the object.
        version: of the object; facts of older ones do not count.
        facts: None if the object is deleted, or the record changes no object.
    """

    uid: str = ""
    version: Version = 0
    facts: NodeFacts | PodFacts | None = None


class _NodeChange(msgspec.Struct, gc=False):
    type: str | None = None
    epoch: int = 0
    object: NodeFactsObject | None = None


class _PodChange(msgspec.Struct, gc=False):
    type: str | None = None
    epoch: int = 0
    object: PodFactsObject | None = None


_node_decoder: Final = msgspec.json.Decoder(_NodeChange)
_pod_decoder: Final = msgspec.json.Decoder(_PodChange)
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_NOTHING: Final = ReadFacts()


def read_node_facts(value: bytes) -> ReadFacts:
    """Read a record of the nodes topic.

    Raises:
        Unreadable: the service makes a dead letter of such a record too.
    """
    try:
        event = _node_decoder.decode(value)
        node = event.object
        if event.type not in _CHANGES or node is None or node.metadata is None:
            return _NOTHING
        facts = _node_facts(node, node.metadata.labels)
    except (*DECODE_ERRORS, ObjectError) as error:
        raise Unreadable(UnreadableReason.WRONG_TYPE, "object") from error
    return _read(node.metadata, event.epoch, None if event.type == "DELETED" else facts)


def read_pod_facts(value: bytes) -> ReadFacts:
    """Read a record of the pods topic.

    Raises:
        Unreadable: a field has the wrong type.
    """
    try:
        event = _pod_decoder.decode(value)
        pod = event.object
        if event.type not in _CHANGES or pod is None or pod.metadata is None:
            return _NOTHING
        facts = None if event.type == "DELETED" else _pod_facts(pod.metadata, pod.spec)
    except DECODE_ERRORS as error:
        raise Unreadable(UnreadableReason.WRONG_TYPE, "object") from error
    return _read(pod.metadata, event.epoch, facts)


def _read(metadata: MetadataObject, epoch: int, facts: NodeFacts | PodFacts | None) -> ReadFacts:
    return ReadFacts(metadata.uid or "", read_version(metadata.resource_version or "", epoch), facts)


def _node_facts(node: NodeFactsObject, labels: dict[str, str] | None) -> NodeFacts:
    spec, status = node.spec, node.status
    is_whole = status is not None and status.node_info != NULL
    return NodeFacts(
        labels=labels or {},
        has_all_labels=is_whole or HOSTNAME_LABEL in (labels or {}),
        taints=read_taints(listed_taints(node)),
        unschedulable=spec is not None and spec.unschedulable is True,
    )


def _pod_facts(metadata: PodFactsMetadata, spec: PodFactsSpec | None) -> PodFacts:
    selector = NULL if spec is None else spec.node_selector
    affinity = None if spec is None or spec.affinity is None else spec.affinity.node_affinity
    required = NULL if affinity is None else affinity.required
    # A trimmed pod has no containers. What keeps its wishes when it trims keeps `labels` too, if the pod has some.
    is_whole = spec is not None and spec.containers != NULL
    has_wishes = selector != NULL or (spec is not None and spec.affinity is not None)
    is_known = is_whole or has_wishes or metadata.labels is not None
    owner = next((reference for reference in metadata.owner_references or () if reference.controller), None)
    workload = "" if is_known or metadata.owner_references is not None else None
    if owner is not None:
        workload = _workload(owner, metadata.labels)
    return PodFacts(workload, read_placement(bytes(selector), bytes(required)) if is_known else None)


def _workload(owner: OwnerObject, labels: PodLabelsObject | None) -> str:
    """Name the controller; a Deployment names its ReplicaSets after itself and the hash in a label of their pods."""
    kind, name = owner.kind or "", owner.name or ""
    ending = f"-{labels.template_hash}" if labels is not None and labels.template_hash else ""
    if kind == "ReplicaSet" and ending and name.endswith(ending):
        return f"Deployment/{name.removesuffix(ending)}"
    return f"{kind}/{name}"
