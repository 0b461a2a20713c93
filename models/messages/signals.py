"""What a feed or an operator says on the input topics besides changes of objects."""

from typing import TypeAlias

import msgspec


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    """The feed of a cluster is alive.

    Attributes:
        cluster: which cluster.
        at_us: event time, microseconds since 1970.
        listed_at_us: when the feed's last complete listing of the cluster began, if it says so. Objects that were
            deleted before have been told of by then, so it closes a gap in the log. As the feed's clock gave it.
    """

    cluster: str
    at_us: int
    listed_at_us: int | None


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes bookmark: only a resource version. Ignored."""

    cluster: str


class Unbound(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node. Nothing is due for it and no node's aggregate keeps it. Ignored."""

    cluster: str


class Forget(msgspec.Struct, frozen=True, gc=False):
    """An operator takes a cluster out of the service: its nodes in this partition are forgotten."""

    cluster: str
    at_us: int


class AcceptGap(msgspec.Struct, frozen=True, gc=False):
    """An operator accepts that input of this partition expired unread (docs/messages.md#what-operators-say)."""

    at_us: int


Signal: TypeAlias = Heartbeat | Bookmark | Unbound | Forget | AcceptGap
