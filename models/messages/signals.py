"""Records of the input topics that change no object: signals of feeds and operators, and what is ignored."""

from typing import TypeAlias

import msgspec


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    """The feed of a cluster is alive.

    Attributes:
        cluster: which cluster.
        at_us: event time, microseconds since 1970.
        listed_at_us: when the feed's last complete listing of the cluster began, by the feed's clock; None if it does
            not say. The records before the heartbeat cover all that was deleted until then, so it closes a gap.
    """

    cluster: str
    at_us: int
    listed_at_us: int | None


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes bookmark: only a resource version. Ignored."""

    cluster: str


class Unbound(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node: nothing can be due for it. Ignored."""

    cluster: str


class Forget(msgspec.Struct, frozen=True, gc=False):
    """An operator takes a cluster out of the service: its nodes in this partition are forgotten."""

    cluster: str
    at_us: int


class AcceptGap(msgspec.Struct, frozen=True, gc=False):
    """An operator accepts that input of this partition expired unread (docs/messages.md#what-operators-say)."""

    at_us: int


Signal: TypeAlias = Heartbeat | Bookmark | Unbound | Forget | AcceptGap
