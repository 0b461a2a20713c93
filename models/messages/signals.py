"""Records of the input topics that change no object: signals of feeds and operators, and what is ignored."""

from typing import TypeAlias

import msgspec

from evictstream.models.messages.events import Origin
from evictstream.models.messages.fleet import ProfileRef


class Heartbeat(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The feed of a cluster is alive.

    Attributes:
        cluster: which cluster.
        at_us: event time, microseconds since 1970.
        listed_at_us: when the feed's last complete listing of the cluster began, by the feed's clock; None if it does
            not say. The records before the heartbeat cover all that was deleted until then, so it closes a gap.
        epoch: that of its listing.
        cluster_uid: UID of the cluster's namespace `kube-system`; empty if the feed does not say.
        cluster_labels: what its feed was told of the cluster. Those on the nodes topic count.
        cluster_profile: where the cluster stands in an inventory; that on the nodes topic counts.
    """

    cluster: str
    at_us: int
    listed_at_us: int | None
    epoch: int = 0
    cluster_uid: str = ""
    cluster_labels: dict[str, str] = {}
    cluster_profile: ProfileRef | None = None


class Listed(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a complete listing of a cluster holds, in a range of node names: whatever else is known there is gone.

    Where one node has too many pods for a record, each of several records also has a range of UIDs.

    It is whole for itself: neither the order of such records nor what was listed before matters.

    Attributes:
        cluster: which cluster.
        at_us: event time, microseconds since 1970.
        origin: place of the record.
        epoch: that of the listing; what is known of a later one stays.
        cluster_uid: UID of the cluster's namespace `kube-system`; empty if the feed does not say.
        resource_version: that of the list; what is newer stays.
        after: the range begins behind this node name.
        through: the last node name of the range, None for no end.
        uids: by node name the UIDs of its pods, or on the nodes topic its own.
        uid_after: of the objects of these nodes, only those with a UID behind this one are in the range.
        uid_through: the last UID of the range, None for no end.
    """

    cluster: str
    at_us: int
    origin: Origin
    epoch: int
    cluster_uid: str
    resource_version: str
    after: str
    through: str | None
    uids: dict[str, tuple[str, ...]]
    uid_after: str = ""
    uid_through: str | None = None

    def covers(self, node: str) -> bool:
        """Tell whether the range has this node name. Names compare by code points, which is the order of UTF-8."""
        return self.after < node and (self.through is None or node <= self.through)

    def covers_uid(self, uid: str) -> bool:
        """Tell whether the range has this UID, on any of its nodes."""
        return self.uid_after < uid and (self.uid_through is None or uid <= self.uid_through)


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes bookmark: only a resource version. Ignored."""

    cluster: str


class Unbound(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node: nothing can be due for it. Ignored."""

    cluster: str


class Forget(msgspec.Struct, frozen=True, gc=False):
    """An operator takes a cluster out of the service: its nodes and pods are forgotten."""

    cluster: str
    at_us: int


class AcceptGap(msgspec.Struct, frozen=True, gc=False):
    """An operator accepts that input of a cluster expired unread (docs/messages.md#operator-signals)."""

    cluster: str
    at_us: int


class QueueReport(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An executor says what waits in its queue (docs/messages.md#reports).

    Attributes:
        cluster: which cluster.
        read_to_us: the latest `issuedAt` of an attempt that it has read, microseconds since 1970.
    """

    cluster: str
    read_to_us: int


Signal: TypeAlias = Heartbeat | Listed | Bookmark | Unbound | Forget | AcceptGap | QueueReport
