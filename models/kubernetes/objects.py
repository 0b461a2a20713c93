"""Nodes and pods, read tolerantly from v1 objects, whole or trimmed to the fields in use.

Readable objects are never refused for odd values (semantics.md 12.3): an unknown operator, negative seconds or an
illegal label are read as they are. Wrong types are errors. JSON null stands for an absent list, map or text, as in
Kubernetes; unknown fields are ignored.

Two layers: `NodeObject` and `PodObject` (`shapes`) have the shape of the JSON and take part in a larger decoded
record; `read_node` and `read_pod` turn them into the flat `Node` and `Pod` that everything else uses.

Errors:
    ObjectError            an object that cannot be read; `field` is its path, for people
    +-- MissingFieldError  a field is absent, null or empty that every stored object has
    +-- WrongKindError     another kind or API version
    +-- FieldTypeError     a field has the wrong type
    +-- FieldTimeError     a text is no instant to Kubernetes
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from evictstream.models.kubernetes.handed_over import HandedOver, read_handed_over
from evictstream.models.kubernetes.shapes import (
    EXCLUDE_DISRUPTION_LABEL,
    OBJECT_API_VERSION,
    ConditionObject,
    MetadataObject,
    NodeObject,
    PodObject,
    PodSpecObject,
    TaintObject,
)
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.times import read_time
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.kubernetes.traits import NO_TRAITS, PodTraits, read_node_labels, read_pod_traits

Moment = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""RFC 3339 text with a zone; more than six digits of a second are rounded to six. For evictstream's own fields."""


class ObjectError(ValueError):
    """An object cannot be read.

    Attributes:
        field: path of the field below the object, such as `metadata.uid`. Never a value: values may be secret.
    """

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


class MissingFieldError(ObjectError):
    """A field is absent, null or empty that every stored object has."""


class WrongKindError(ObjectError):
    """The object is of another kind or API version."""


class FieldTypeError(ObjectError):
    """A field has the wrong type."""


class FieldTimeError(ObjectError):
    """A text is no instant to Kubernetes."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """The fields of a node that decisions use.

    Attributes:
        name: its name, unique at any one time within a cluster.
        uid: its identity; another one under the same name is another node.
        resource_version: version text as given; comparable within one cluster (semantics.md 12.3).
        taints: `spec.taints` in node order, with all effects.
        ready: status of the condition `Ready` (`True`, `False`, `Unknown`), None if it is not reported.
        labels: for policies, and to know whether it counts for its zone.
    """

    name: str
    uid: str
    resource_version: str
    taints: tuple[Taint, ...] = ()
    ready: str | None = None
    labels: Mapping[str, str | None] = {}

    @property
    def counts_as_ready(self) -> bool:
        """Whether it is Ready and counts for the state of its zone (semantics.md 8.3)."""
        return self.ready == "True" and EXCLUDE_DISRUPTION_LABEL not in self.labels

    @property
    def is_unready(self) -> bool:
        """Whether the condition is reported, and is not `True`."""
        return self.ready is not None and self.ready != "True"


class Pod(msgspec.Struct, frozen=True, gc=False):
    """The fields of a pod that decisions use.

    Attributes:
        namespace: namespace of its address.
        name: name of its address.
        uid: its identity.
        resource_version: version text as given.
        node_name: the node it is bound to, empty while it is not; it never changes once set.
        tolerations: in pod order, with the seconds in force; a shared tuple, so compare by identity first.
        is_annotation_unreadable: whether it has seconds in an annotation that count as absent (`handed_over.py`).
        phase: `status.phase`, empty if absent.
        is_terminating: `metadata.deletionTimestamp` is set.
        is_mirror: it stands for a static pod, recognised by the annotation `kubernetes.io/config.mirror`.
        traits: for policies; no rule looks at them. Equal ones are one object.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    node_name: str = ""
    tolerations: Tolerations = ()
    phase: str = ""
    is_terminating: bool = False
    is_mirror: bool = False
    traits: PodTraits = msgspec.field(default_factory=lambda: NO_TRAITS)
    is_annotation_unreadable: bool = False


_List = TypeVar("_List")

_taints_decoder: Final = msgspec.json.Decoder(list[TaintObject] | None)
_conditions_decoder: Final = msgspec.json.Decoder(list[ConditionObject] | None)


def read_node(node: NodeObject) -> Node:
    """Flatten a decoded node.

    Raises:
        MissingFieldError: no kind, name, UID or resource version.
        WrongKindError: not a v1 Node.
        FieldTypeError: the taints or conditions, which are decoded late, have a wrong type somewhere.
        FieldTimeError: `timeAdded` of a taint is no instant.
    """
    metadata = node.metadata
    check_object_kind(node.kind, node.api_version, "Node")
    if metadata is None or not (metadata.name and metadata.uid and metadata.resource_version):
        raise _missing(metadata, namespaced=False)
    taints = listed_taints(node)
    status = node.status
    conditions = None if status is None else _read_list(_conditions_decoder, status.conditions, "status.conditions")
    return Node(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        taints=read_taints(taints),
        ready=next((condition.status for condition in conditions or () if condition.type == "Ready"), None),
        labels=read_node_labels(metadata.labels),
    )


def read_pod(pod: PodObject) -> Pod:
    """Flatten a decoded pod.

    Raises:
        MissingFieldError: no kind, namespace, name, UID or resource version.
        WrongKindError: not a v1 Pod.
        FieldTypeError: the tolerations, which are decoded late, have a wrong type somewhere.
        msgspec.DecodeError: the text of the tolerations is no JSON.
    """
    if pod.kind != "Pod" or pod.api_version != OBJECT_API_VERSION:
        check_object_kind(pod.kind, pod.api_version, "Pod")
    metadata = pod.metadata
    if metadata is None or not (metadata.name and metadata.uid and metadata.namespace and metadata.resource_version):
        raise _missing(metadata, namespaced=True)
    spec = pod.spec
    status = pod.status
    handed = _NOTHING if spec is None else _read_tolerations(spec, metadata.handed_over)
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        node_name=(spec.node_name or "") if spec is not None else "",
        tolerations=handed.tolerations,
        phase=(status.phase or "") if status is not None else "",
        is_terminating=metadata.deletion_timestamp is not None and metadata.deletion_timestamp != "",
        is_mirror=metadata.is_mirror,
        traits=read_pod_traits(metadata, spec),
        is_annotation_unreadable=handed.is_unreadable,
    )


_NOTHING: Final = HandedOver(())


def _read_tolerations(spec: PodSpecObject, annotation: msgspec.Raw) -> HandedOver:
    try:
        return read_handed_over(spec.tolerations, annotation)
    except msgspec.ValidationError as error:
        raise _wrong_type("spec.tolerations", error) from error


def _read_list(decoder: msgspec.json.Decoder[_List], text: msgspec.Raw, field: str) -> _List:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _wrong_type(field, error) from error


def _wrong_type(field: str, error: msgspec.ValidationError) -> FieldTypeError:
    """Name the field below a list that was decoded late."""
    return FieldTypeError(field + str(error).partition("`$")[2].rstrip("`"))


def listed_taints(node: NodeObject) -> Sequence[TaintObject]:
    """Decode the taints of a node.

    Raises:
        FieldTypeError: something has the wrong type.
    """
    spec = node.spec
    return () if spec is None else _read_list(_taints_decoder, spec.taints, "spec.taints") or ()


def read_taints(taints: Sequence[TaintObject]) -> tuple[Taint, ...]:
    """Flatten the decoded taints of a node; absent or null fields become empty, `timeAdded` becomes None.

    Raises:
        FieldTimeError: a `timeAdded` is not an instant.
    """
    return tuple(
        Taint(
            key=taint.key or "",
            value=taint.value or "",
            effect=taint.effect or "",
            time_added_us=read_instant(taint.time_added, f"spec.taints[{index}].timeAdded"),
        )
        for index, taint in enumerate(taints)
    )


def read_instant(text: str | None, field: str) -> int | None:
    """Read an instant as Kubernetes does; None if it is absent.

    Args:
        text: what was found.
        field: its path, for the error.

    Raises:
        FieldTimeError: it is no instant.
    """
    if text is None:
        return None
    at_us = read_time(text)
    if at_us is None:
        raise FieldTimeError(field)
    return at_us


def check_object_kind(kind: str | None, api_version: str | None, wanted: str) -> None:
    """Refuse an object that is not v1 or not of the wanted kind.

    Raises:
        MissingFieldError: no kind.
        WrongKindError: another kind, or an API version that is not v1.
    """
    if kind != wanted:
        raise WrongKindError("kind") if kind else MissingFieldError("kind")
    if (
        api_version != OBJECT_API_VERSION and api_version
    ):  # a trimmed object may leave it out, another group may not pass
        raise WrongKindError("apiVersion")


def _missing(metadata: MetadataObject | None, *, namespaced: bool) -> MissingFieldError:
    """Name the first missing field; one is known to be missing."""
    if metadata is None:
        return MissingFieldError("metadata")
    if not metadata.name:
        return MissingFieldError("metadata.name")
    if not metadata.uid:
        return MissingFieldError("metadata.uid")
    if namespaced and not metadata.namespace:
        return MissingFieldError("metadata.namespace")
    return MissingFieldError("metadata.resourceVersion")
