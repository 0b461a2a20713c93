"""The inputs of a decision: changes of nodes and pods, and results of executors.

`at_us` is the event time (microseconds since 1970, UTC), a function of the log alone. `origin` is the place of the
record, which decisions name as their cause.
"""

import msgspec

from evictstream.models.kubernetes.objects import Node, Pod
from evictstream.models.messages.vocabulary import EventType, Outcome


class Origin(msgspec.Struct, frozen=True, gc=False):
    """The place of a record in the log."""

    topic: str
    partition: int
    offset: int


class NodeEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A node as it is now, or as it was last if it is deleted.

    Attributes:
        epoch: of its resource version.
        is_undecidable: its lists are beyond a limit, and left out of `node` (`object_limits.py`).
    """

    type: EventType
    node: Node
    at_us: int
    origin: Origin
    epoch: int = 0
    is_undecidable: bool = False


class PodEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A bound pod as it is now, or as it was last if it is deleted.

    Attributes:
        epoch: of its resource version.
        is_undecidable: its tolerations are beyond a limit, and left out of `pod` (`object_limits.py`).
    """

    type: EventType
    pod: Pod
    at_us: int
    origin: Origin
    epoch: int = 0
    is_undecidable: bool = False


def node_name_of(event: "NodeEvent | PodEvent | ResultEvent") -> str:
    """Return the name of the node that an event is about: a pod's is the one that it is bound to."""
    if isinstance(event, PodEvent):
        return event.pod.node_name
    return event.node.name if isinstance(event, NodeEvent) else event.node


class ResultEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What an executor did with one attempt.

    Attributes:
        node: as in the command.
        eviction_id: as in the command.
        attempt: as in the command; only the current one counts.
        pod_uid: the pod.
        outcome: what was done.
        reason: explanation of the executor, for people; may be empty.
        at_us: event time, as for the other events.
        origin: place of the record.
        held_by: id of the brake, of the outcome `Held`.
    """

    node: str
    eviction_id: str
    attempt: int
    pod_uid: str
    outcome: Outcome
    reason: str
    at_us: int
    origin: Origin
    held_by: str | None = None
