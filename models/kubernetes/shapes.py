"""Nodes and pods in the shape of their JSON: the fields that are read, in one place, with a view for each reader.

| view | read by |
|---|---|
| `NodeObject`, `PodObject` | the service; with narrower types its fast path (`messages.plain_pods`) |
| `NodeFactsObject`, `PodFactsObject` | what-if and reports; recordings are trimmed to them |
| `DisruptedPod` | the comparison with what Kubernetes did |
| `LookedAtNode`, `LookedAtPod` | the executor's last look |
| `AuditedObject` | the import of audit logs |
| `ForwardedNode`, `ForwardedPod` in `forwarded_shapes.py` | the feed, which trims objects to them |

The first view has what decides; the next four add fields that their reader uses too, or require those that it
needs. Otherwise a field may be absent, and null stands for absent, as in Kubernetes. Unknown fields are skipped.

What a feed has to write is stricter, and published as JSON Schema: `messages.watch_event`.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["Node", "Pod"]

OBJECT_API_VERSION: Final = "v1"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
TOLERATIONS_ANNOTATION: Final = "evictstream.io/tolerations"
"""Of a pod: the seconds of its tolerations, where its spec has later ones for the built-in controller."""
DISRUPTION_TARGET: Final = "DisruptionTarget"
"""The condition whose reason says who deletes a pod."""
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
"""Of a node: its zone."""
EXCLUDE_DISRUPTION_LABEL: Final = "node.kubernetes.io/exclude-disruption"
"""Of a node: it does not count for the state of its zone, whatever the value."""
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""Of a pod: its PodGroup, where a scheduler plugin and not `spec.schedulingGroup` names it."""
TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})

TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
REQUIRED_AFFINITY: Final = "requiredDuringSchedulingIgnoredDuringExecution"

LIST_OF: Final = "list of"
"""Key in the metadata of an undecoded list's type: the type of its entries, whose fields trimming keeps."""

SHOWS_WHOLE: Final = "shows whole"
"""Key in the metadata of a field that shows that an object was not trimmed; trimming does not keep it."""

NULL: Final = msgspec.Raw(b"null")
"""An absent value, where values are left undecoded."""

_Witness = Annotated[msgspec.Raw, msgspec.Meta(extra={SHOWS_WHOLE: True})]


# ---------------------------------------------------------------------------------------------------- what decides


class _Annotations(msgspec.Struct, gc=False):
    # Only the annotations in use; a struct skips the others without building them.
    mirror: str | msgspec.UnsetType | None = msgspec.field(default=msgspec.UNSET, name=MIRROR_ANNOTATION)
    tolerations: msgspec.Raw = msgspec.field(default=NULL, name=TOLERATIONS_ANNOTATION)  # undecoded, see handed_over.py


class OwnerObject(msgspec.Struct, gc=False):
    """One entry of `metadata.ownerReferences`."""

    kind: str | None = None
    name: str | None = None
    controller: bool | None = None


class SchedulingGroupObject(msgspec.Struct, rename="camel", gc=False):
    """`spec.schedulingGroup` of a pod."""

    pod_group_name: str | None = None


class MetadataObject(msgspec.Struct, rename="camel", gc=False):
    """`metadata` of a node or pod."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    deletion_timestamp: str | None = None
    annotations: _Annotations | None = None
    labels: msgspec.Raw = NULL  # left undecoded, as all traits: one that cannot be read counts as absent, see traits.py

    @property
    def is_mirror(self) -> bool:
        """Whether the pod stands for a static pod. Kubernetes reads null as an empty text."""
        return self.annotations is not None and self.annotations.mirror is not msgspec.UNSET

    @property
    def handed_over(self) -> msgspec.Raw:
        """The annotation of a pod with its tolerations, undecoded; null if absent."""
        return NULL if self.annotations is None else self.annotations.tolerations


class PodMetadataObject(MetadataObject, rename="camel", gc=False):
    """`metadata` of a pod."""

    owner_references: Annotated[msgspec.Raw, msgspec.Meta(extra={LIST_OF: OwnerObject})] = NULL


class TaintObject(msgspec.Struct, rename="camel", gc=False):
    """One entry of `spec.taints`."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None
    time_added: str | None = None  # an instant to Kubernetes, which reads more than `Moment`: see times.py


class ConditionObject(msgspec.Struct, gc=False):
    """One entry of `status.conditions`."""

    type: str | None = None
    status: str | None = None


class NodeSpecObject(msgspec.Struct, gc=False):
    """`spec` of a node."""

    # Left undecoded, like the tolerations: readers count the entries before they decode them.
    taints: Annotated[msgspec.Raw, msgspec.Meta(extra={LIST_OF: TaintObject})] = NULL


class _NodeStatus(msgspec.Struct, rename="camel", gc=False):
    conditions: Annotated[msgspec.Raw, msgspec.Meta(extra={LIST_OF: ConditionObject})] = NULL


class NodeObject(msgspec.Struct, rename="camel", gc=False):
    """A v1 Node; `objects.read_node` flattens it."""

    kind: str | None = None
    api_version: str | None = None
    metadata: MetadataObject | None = None
    spec: NodeSpecObject | None = None
    status: _NodeStatus | None = None


class PodSpecObject(msgspec.Struct, rename="camel", gc=False):
    """`spec` of a pod."""

    node_name: str | None = None
    tolerations: msgspec.Raw = NULL  # left undecoded: equal lists are decoded once, see tolerations.py
    priority: msgspec.Raw = NULL
    scheduling_group: msgspec.Raw = NULL


class PodStatusObject(msgspec.Struct, gc=False):
    """`status` of a pod."""

    phase: str | None = None


class PodObject(msgspec.Struct, rename="camel", gc=False):
    """A v1 Pod; `objects.read_pod` flattens it."""

    kind: str | None = None
    api_version: str | None = None
    metadata: PodMetadataObject | None = None
    spec: PodSpecObject | None = None
    status: PodStatusObject | None = None


# ------------------------------------------------------------------------------------------- what people ask for


class PodLabelsObject(msgspec.Struct, gc=False):
    """The labels of a pod that are in use."""

    template_hash: str | None = msgspec.field(default=None, name=TEMPLATE_HASH_LABEL)
    pod_group: str | None = msgspec.field(default=None, name=POD_GROUP_LABEL)


class _NodeFactsMetadata(MetadataObject, gc=False):
    labels: dict[str, str] | None = None  # type: ignore[assignment] # decoded here


class _NodeFactsSpec(NodeSpecObject, gc=False):
    unschedulable: bool | None = None


class _NodeFactsStatus(_NodeStatus, rename="camel", gc=False):
    node_info: _Witness = NULL


class NodeFactsObject(NodeObject, gc=False):
    """A node, with its labels and its cordon."""

    metadata: _NodeFactsMetadata | None = None
    spec: _NodeFactsSpec | None = None
    status: _NodeFactsStatus | None = None


class PodFactsMetadata(PodMetadataObject, rename="camel", gc=False):
    """`metadata` of a pod, with what names its workload."""

    labels: PodLabelsObject | None = None  # type: ignore[assignment] # decoded here, as the next
    owner_references: list[OwnerObject] | None = None  # type: ignore[assignment]


class _NodeAffinity(msgspec.Struct, gc=False):
    required: msgspec.Raw = msgspec.field(default=NULL, name=REQUIRED_AFFINITY)


class _Affinity(msgspec.Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinity | None = None


class PodFactsSpec(PodSpecObject, rename="camel", gc=False):
    """`spec` of a pod, with what it asks of its node."""

    node_selector: msgspec.Raw = NULL
    affinity: _Affinity | None = None
    containers: _Witness = NULL


class PodFactsObject(PodObject, gc=False):
    """A pod, with its workload and with what it asks of its node."""

    metadata: PodFactsMetadata | None = None
    spec: PodFactsSpec | None = None


# --------------------------------------------------------------------------------------------- what Kubernetes did


class DisruptionObject(ConditionObject, gc=False):
    """A condition with its reason."""

    reason: str | None = None


class DisruptedPodStatus(PodStatusObject, gc=False):
    """`status` of a pod, with its conditions."""

    conditions: list[DisruptionObject] | None = None


class DisruptedPod(PodObject, gc=False):
    """A pod, with who deletes it."""

    status: DisruptedPodStatus | None = None


# ------------------------------------------------------------------------------------- what the API server holds


class _LookedAtMetadata(PodMetadataObject, gc=False, kw_only=True):
    uid: str


class _LookedAtNodeSpec(msgspec.Struct, gc=False):
    taints: list[TaintObject] | None = None


class _LookedAtNodeMetadata(_LookedAtMetadata, gc=False, kw_only=True):
    labels: dict[str, str] | None = None  # type: ignore[assignment] # decoded here


class LookedAtNode(msgspec.Struct, gc=False):
    """A node with a UID, and with its labels."""

    metadata: _LookedAtNodeMetadata
    spec: _LookedAtNodeSpec = msgspec.field(default_factory=_LookedAtNodeSpec)


class _LookedAtPodStatus(PodStatusObject, gc=False):
    conditions: list[ConditionObject] | None = None


class LookedAtPod(PodObject, gc=False, kw_only=True):
    """A pod with a UID, and with its conditions."""

    metadata: _LookedAtMetadata
    spec: PodSpecObject
    status: _LookedAtPodStatus = msgspec.field(default_factory=_LookedAtPodStatus)


# --------------------------------------------------------------------------------------- what audit logs answer with


class AuditedMetadata(PodMetadataObject, rename="camel", gc=False):
    """`metadata`, with what an object that is deleted still waits for."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class AuditedHead(msgspec.Struct, gc=False):
    """An object, or a Status, whose `status` is a word."""

    kind: str = ""
    metadata: AuditedMetadata = msgspec.field(default_factory=AuditedMetadata)


class _AuditedSpec(PodSpecObject, rename="camel", gc=False):
    termination_grace_period_seconds: int | None = None


class AuditedObject(PodObject, gc=False):
    """A pod; or a node, which has none of the fields in use below `spec`."""

    kind: str = ""
    metadata: AuditedMetadata = msgspec.field(default_factory=AuditedMetadata)
    spec: _AuditedSpec | None = None
