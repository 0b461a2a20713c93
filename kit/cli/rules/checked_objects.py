"""Nodes and pods of files, checked as the API server checks them, with the fields that the rules read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from evictstream.kit.cli.rules.fields import Fields, child_at, field_entries_at, flag_at, texts_at
from evictstream.kit.cli.rules.object_files import FoundObject
from evictstream.kit.rules.admission import ResourceAmounts, is_best_effort
from evictstream.kit.rules.validation import (
    ErrorType,
    FieldError,
    unknown_fields,
    validate_node_taints,
    validate_pod_tolerations,
)
from evictstream.kit.rules.validation.field_errors import required, wrong_type
from evictstream.kit.rules.validation.raw import object_at, text_at
from evictstream.models.kubernetes import Taint, Toleration, Tolerations
from evictstream.models.kubernetes.handed_over import handed_over
from evictstream.models.kubernetes.shapes import TOLERATIONS_ANNOTATION
from evictstream.models.kubernetes.times import read_time
from evictstream.models.kubernetes.tolerations import GREATER_THAN, LESS_THAN

NODE = "Node"
POD = "Pod"

_WITHOUT_COMPARISON: Final = (
    'supported values: "Equal", "Exists"; "Gt" and "Lt" need the feature gate TaintTolerationComparisonOperators:'
    " give --comparison-operators if it is on"
)


class ObjectErrors(NamedTuple):
    """The errors of one object.

    Attributes:
        source: its file, `-` for standard input.
        kind: `Node`, `Pod`, or `object` for one without kind.
        name: of a pod with its namespace; empty where it has none.
        errors: every broken rule with its field.
    """

    source: str
    kind: str
    name: str
    errors: tuple[FieldError, ...]

    @property
    def subject(self) -> str:
        """How people name it, such as `Pod default/web-0`."""
        return f"{self.kind} {self.name}".strip()


class NodeSubject(NamedTuple):
    """The fields of a node that the rules read; `raw` is the whole object."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    raw: dict[object, object]


class PodSubject(NamedTuple):
    """The fields of a pod that the rules read.

    Attributes:
        name: with its namespace.
        namespace: `default` if it has none.
        labels: `metadata.labels`.
        node_name: of the node that it is bound to; empty if it is bound to none.
        tolerations: in pod order.
        annotations: `metadata.annotations`.
        is_stored: it has a UID, so the API server has admitted it.
        is_daemon: a DaemonSet is its controller.
        host_network: `spec.hostNetwork`.
        requested: names of all resources that its containers request.
        is_best_effort: see `evictstream.kit.rules.admission.quality`.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    node_name: str
    tolerations: Tolerations
    annotations: Mapping[str, str]
    is_stored: bool
    is_daemon: bool
    host_network: bool
    requested: tuple[str, ...]
    is_best_effort: bool


def kinds_of(objects: Iterable[FoundObject]) -> list[str]:
    """List the kinds of the objects, each once, for messages."""
    return sorted({str(item.value.get("kind") or "an object without kind") for item in objects})


def nodes_of(objects: Iterable[FoundObject]) -> tuple[list[NodeSubject], list[ObjectErrors]]:
    """Return the valid nodes among the objects, and the errors of the other nodes."""
    nodes, wrong = [], []
    for item in _of_kind(objects, NODE):
        errors = list(validate_node_taints(item.value))
        name = _name(item.value, errors)
        labels = texts_at(child_at(item.value, "metadata", "", errors), "labels", "metadata", errors)
        spec = child_at(item.value, "spec", "", errors)
        errors += unknown_fields(item.value, NODE, is_stored=_is_stored(item.value))
        unschedulable = flag_at(spec, "unschedulable", "spec", errors)
        if errors:
            wrong.append(ObjectErrors(item.source, NODE, name, _each_once(errors)))
        else:
            nodes.append(
                NodeSubject(name=name, labels=labels, taints=_taints(spec), unschedulable=unschedulable, raw=item.value)
            )
    return nodes, wrong


def pods_of(
    objects: Iterable[FoundObject], *, comparison_operators: bool
) -> tuple[list[PodSubject], list[ObjectErrors]]:
    """Return the valid pods among the objects, and the errors of the other pods.

    Args:
        objects: from `read_objects`.
        comparison_operators: whether the API server would accept `Gt` and `Lt`.
    """
    pods, wrong = [], []
    for item in _of_kind(objects, POD):
        errors = list(validate_pod_tolerations(item.value, comparison_operators=comparison_operators))
        pod = _pod(item.value, errors)
        errors += unknown_fields(item.value, POD, is_stored=pod.is_stored)
        if errors:
            wrong.append(ObjectErrors(item.source, POD, pod.name, _each_once(map(_with_remedy, errors))))
        else:
            pods.append(pod)
    return pods, wrong


def unnamed_kinds(objects: Iterable[FoundObject]) -> list[ObjectErrors]:
    """Return errors of the objects without a kind; kubectl refuses them."""
    wrong = []
    for item in objects:
        kind = item.value.get("kind")
        if not kind or not isinstance(kind, str):
            error = wrong_type("kind", kind, "a string") if kind else required("kind")
            wrong.append(ObjectErrors(item.source, "object", "", (error,)))
    return wrong


def _of_kind(objects: Iterable[FoundObject], kind: str) -> Iterable[FoundObject]:
    # Shortened objects may lack the version. The same kind of another API group is another kind.
    return (
        item for item in objects if item.value.get("kind") == kind and item.value.get("apiVersion") in (None, "", "v1")
    )


def _pod(value: Fields, errors: list[FieldError]) -> PodSubject:
    metadata = child_at(value, "metadata", "", errors)
    spec = child_at(value, "spec", "", errors)
    status = child_at(value, "status", "", errors)
    name = _name(value, errors)
    namespace = text_at(metadata, "namespace", "metadata", errors) or "default"
    containers = [
        _amounts(container, f"{path}.resources", errors)
        for field in ("containers", "initContainers")
        for path, container in field_entries_at(spec, field, "spec", errors)
    ]
    pod_level = None if spec.get("resources") is None else _amounts(spec, "spec.resources", errors)
    annotations = texts_at(metadata, "annotations", "metadata", errors)
    reported_class = text_at(status, "qosClass", "status", errors) or ""
    return PodSubject(
        name=f"{namespace}/{name}" if name else "",
        namespace=namespace,
        labels=texts_at(metadata, "labels", "metadata", errors),
        node_name=text_at(spec, "nodeName", "spec", errors) or "",
        tolerations=()
        if errors
        else handed_over(_tolerations(spec), annotations.get(TOLERATIONS_ANNOTATION)).tolerations,
        annotations=annotations,
        is_stored=bool(text_at(metadata, "uid", "metadata", errors)),
        is_daemon=any(
            owner.get("controller") is True
            and owner.get("kind") == "DaemonSet"
            and str(owner.get("apiVersion")).startswith("apps/")
            for _, owner in field_entries_at(metadata, "ownerReferences", "metadata", errors)
        ),
        host_network=flag_at(spec, "hostNetwork", "spec", errors),
        requested=tuple(name for amounts in containers for name in (*amounts.requests, *amounts.limits)),
        is_best_effort=is_best_effort(containers, pod_level=pod_level, reported_class=reported_class),
    )


def _taints(spec: Fields) -> tuple[Taint, ...]:
    """Turn checked raw taints into values."""
    listed = spec.get("taints")
    taints = []
    for entry in listed if isinstance(listed, list) else ():
        added = entry.get("timeAdded")
        taints.append(
            Taint(
                key=entry["key"],
                value=entry.get("value") or "",
                effect=entry["effect"],
                time_added_us=None if added is None else read_time(added),
            )
        )
    return tuple(taints)


def _tolerations(spec: Fields) -> Tolerations:
    """Turn checked raw tolerations into values."""
    tolerations = spec.get("tolerations")
    return tuple(
        Toleration(
            key=entry.get("key") or "",
            operator=entry.get("operator") or "",
            value=entry.get("value") or "",
            effect=entry.get("effect") or "",
            toleration_seconds=entry.get("tolerationSeconds"),
        )
        for entry in (
            {} if entry is None else entry for entry in (tolerations if isinstance(tolerations, list) else ())
        )
    )


def _amounts(holder: Fields, path: str, errors: list[FieldError]) -> ResourceAmounts:
    """Read requests and limits; a limit without request is a request too, as the API server fills it in."""
    resources = object_at(holder.get("resources"), path, errors) or {}
    limits = _quantities(resources, "limits", path, errors)
    return ResourceAmounts(requests=limits | _quantities(resources, "requests", path, errors), limits=limits)


def _quantities(resources: Fields, name: str, path: str, errors: list[FieldError]) -> dict[str, str]:
    quantities = object_at(resources.get(name), f"{path}.{name}", errors) or {}
    amounts = {}
    for resource, amount in quantities.items():
        if isinstance(amount, bool) or not isinstance(amount, str | int | float):
            errors.append(wrong_type(f"{path}.{name}[{resource}]", amount, "a quantity"))
        else:
            amounts[str(resource)] = str(amount)
    return amounts


def _name(value: Fields, errors: list[FieldError]) -> str:
    metadata = child_at(value, "metadata", "", errors)
    name = text_at(metadata, "name", "metadata", errors)
    generated = text_at(metadata, "generateName", "metadata", errors)
    if name == "" and not generated:
        errors.append(FieldError(required("").type, "metadata.name", "", "name or generateName is required"))
    return name or generated or ""


def _is_stored(value: Fields) -> bool:
    metadata = value.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("uid"))


def _with_remedy(error: FieldError) -> FieldError:
    """Name the option behind which `Gt` and `Lt` are legal; Kubernetes' own sentence names them as supported."""
    if error.type is not ErrorType.NOT_SUPPORTED or error.bad_value not in (GREATER_THAN, LESS_THAN):
        return error
    return msgspec.structs.replace(error, detail=_WITHOUT_COMPARISON)


def _each_once(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Drop repeated errors: a field of a wrong type is reported for each field inside it."""
    kept: list[FieldError] = []
    for error in errors:
        if error not in kept:
            kept.append(error)
    return tuple(kept)
