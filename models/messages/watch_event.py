"""The contract of the inputs: the watch events on the nodes and the pods topic. Key: `<cluster>/<node>`.

What the Kubernetes watch gives, with the cluster and the time at which the feed received it. The line format of
`kubectl get pods -A -o json --watch --output-watch-events` is this less `cluster` and `observedAt`. Records
about a whole cluster, and pods that are not bound, have the key `<cluster>/`.
"""

import enum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from evictstream.models.kubernetes.times import read_time
from evictstream.models.messages.parts import Contract, Instant, KubernetesPart, TaintPart, TolerationPart


class WatchEventType(enum.StrEnum):
    """What a watch event says."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    HEARTBEAT = "HEARTBEAT"
    FORGET = "FORGET"
    ACCEPT_GAP = "ACCEPT_GAP"


_WITH_OBJECT = frozenset({WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.DELETED})


class NodeMetadata(KubernetesPart):
    """The part of a node's metadata in use."""

    name: str = Field(min_length=1)
    uid: str = Field(min_length=1)
    resource_version: str = Field(min_length=1)


class PodMetadata(NodeMetadata):
    """The part of a pod's metadata in use."""

    namespace: str = Field(min_length=1)
    deletion_timestamp: str | None = None
    annotations: dict[str, str | None] | None = Field(
        default=None, description="Only `kubernetes.io/config.mirror` matters."
    )


def _readable(text: str) -> str:
    """Refuse what is no instant to Kubernetes.

    Raises:
        ValueError: it is none.
    """
    if read_time(text) is None:
        message = "not an instant that Kubernetes reads"
        raise ValueError(message)
    return text


_KubernetesInstant = Annotated[
    str,
    AfterValidator(_readable),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T02:15:53Z"]}),
]


class WatchedTaint(TaintPart):
    """A taint as the API server gives it."""

    time_added: _KubernetesInstant | None = Field(
        default=None, description="Optional; only tells instances of a taint apart."
    )


class NodeSpec(KubernetesPart):
    """The part of a node's spec in use."""

    taints: tuple[WatchedTaint, ...] | None = Field(default=None, strict=False)


class NodeCondition(KubernetesPart):
    """A condition of a node; only `Ready` matters."""

    type: str
    status: str


class NodeStatus(KubernetesPart):
    """The part of a node's status in use."""

    conditions: tuple[NodeCondition, ...] | None = Field(default=None, strict=False)


class PodSpec(KubernetesPart):
    """The part of a pod's spec in use."""

    node_name: str | None = None
    tolerations: tuple[TolerationPart, ...] | None = Field(default=None, strict=False)


class PodStatus(KubernetesPart):
    """The part of a pod's status in use."""

    phase: str | None = None


class WatchedNode(KubernetesPart):
    """A v1 Node, whole or trimmed."""

    kind: Literal["Node"]
    api_version: Literal["v1"] = "v1"
    metadata: NodeMetadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class WatchedPod(KubernetesPart):
    """A v1 Pod, whole or trimmed."""

    kind: Literal["Pod"]
    api_version: Literal["v1"] = "v1"
    metadata: PodMetadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class BookmarkObject(KubernetesPart):
    """The object of a bookmark: a kind and a resource version. Not looked at."""


class WatchEventContract(Contract):
    """One record of the nodes or the pods topic."""

    cluster: str = Field(min_length=1, description="The cluster's id, as in the key.")
    type: WatchEventType = Field(
        description="`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` (ignored): as the watch gives them. `HEARTBEAT`: the"
        " feed is alive. `FORGET`: take the cluster out of the service. `ACCEPT_GAP`: go on although input expired"
        " unread."
    )
    observed_at: Instant | None = Field(
        default=None,
        description="When the feed received it. Counts limited to the minute before the append time and the append"
        " time itself; absent means the append time.",
    )
    listed_at: Instant | None = Field(
        default=None, description="Only on `HEARTBEAT`: when the feed's last complete listing began."
    )
    object: Annotated[WatchedNode | WatchedPod, Field(discriminator="kind")] | BookmarkObject | None = Field(
        default=None, description="The object, with `ADDED`, `MODIFIED` and `DELETED`."
    )

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        """Hold the parts together that belong together.

        Raises:
            ValueError: a change without its object, or `listedAt` on something else than a heartbeat.
        """
        if self.type in _WITH_OBJECT and not isinstance(self.object, WatchedNode | WatchedPod):
            message = "object: a change needs a Node or a Pod"
            raise ValueError(message)
        if self.listed_at is not None and self.type is not WatchEventType.HEARTBEAT:
            message = "listedAt: only on HEARTBEAT"
            raise ValueError(message)
        return self
