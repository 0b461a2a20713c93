"""Nodes and pods as the node lifecycle controller sees them, and the conditions that it reads and writes."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from evictstream.models.kubernetes.taints import Taint

READY: Final = "Ready"
MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"
NETWORK_UNAVAILABLE: Final = "NetworkUnavailable"

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """One entry of `node.status.conditions`.

    Attributes:
        type: such as `Ready`.
        status: `True`, `False`, `Unknown`, or any other text.
        reason: one word for machines.
        message: a sentence for people.
        heartbeat_at_us: `lastHeartbeatTime`, None if absent. Only its change matters, never its distance from now: the
            kubelet's clock may be wrong.
        transition_at_us: `lastTransitionTime`, None if absent.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    heartbeat_at_us: int | None = None
    transition_at_us: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WatchedNode:
    """A node with all fields that decide about its taints.

    Attributes:
        name: its name.
        uid: its identity; only reported; the controller identifies nodes by name.
        labels: `metadata.labels`; zone and exclusion from disruption checks come from them.
        created_at_us: `metadata.creationTimestamp`.
        is_unschedulable: `spec.unschedulable`.
        conditions: `status.conditions` in node order.
        taints: `spec.taints` in node order.
    """

    name: str
    uid: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    created_at_us: int = 0
    is_unschedulable: bool = False
    conditions: tuple[Condition, ...] = ()
    taints: tuple[Taint, ...] = ()


PodAddress: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


@dataclasses.dataclass(frozen=True, slots=True)
class WatchedPod:
    """A pod with its own condition `Ready`.

    Attributes:
        namespace: of its address.
        name: of its address.
        node_name: the node it is bound to, empty while it is not.
        ready: status of its condition `Ready`, None if it has none; such a pod is never written as not ready.
    """

    namespace: str
    name: str
    node_name: str = ""
    ready: str | None = TRUE

    @property
    def key(self) -> PodAddress:
        """Its address within the cluster."""
        return self.namespace, self.name


def find_condition(conditions: Iterable[Condition], wanted: str) -> Condition | None:
    """Find the first condition of a type; later ones of the same type are ignored, as in Kubernetes."""
    return next((condition for condition in conditions if condition.type == wanted), None)
