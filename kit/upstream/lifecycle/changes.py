"""The writes of the node lifecycle controller to the cluster, as values."""

import dataclasses
from typing import TypeAlias

from evictstream.kit.upstream.lifecycle.nodes import Condition, PodAddress
from evictstream.kit.upstream.lifecycle.zones import ZoneState
from evictstream.models.kubernetes.taints import Taint


@dataclasses.dataclass(frozen=True, slots=True)
class TaintsChanged:
    """One write of a node's taints. A swap is two writes: the first adds the new taint, the second removes the old one.

    Attributes:
        at_us: when.
        node: name of the node.
        added: taints that were added, also those added again with a later time.
        removed: taints that were removed.
    """

    at_us: int
    node: str
    added: tuple[Taint, ...] = ()
    removed: tuple[Taint, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionsWritten:
    """A silent node's conditions were written.

    Attributes:
        at_us: when.
        node: name of the node.
        conditions: all of them as they are now.
    """

    at_us: int
    node: str
    conditions: tuple[Condition, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PodsMarkedNotReady:
    """Pods got their condition `Ready` set to False.

    Attributes:
        at_us: when.
        node: the node they are on.
        pods: the written pods; pods that were not ready before are omitted.
    """

    at_us: int
    node: str
    pods: tuple[PodAddress, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeReported:
    """A Kubernetes event about a node.

    Attributes:
        at_us: when.
        node: name of the node.
        uid: its identity.
        reason: `RegisteredNode`, `RemovingNode` or `NodeNotReady`.
    """

    at_us: int
    node: str
    uid: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTurned:
    """A zone changed its state.

    Attributes:
        at_us: when.
        zone: key of the zone.
        before: its state until now.
        after: its state from now on.
    """

    at_us: int
    zone: str
    before: ZoneState
    after: ZoneState


ClusterChange: TypeAlias = TaintsChanged | ConditionsWritten | PodsMarkedNotReady | NodeReported | ZoneTurned
