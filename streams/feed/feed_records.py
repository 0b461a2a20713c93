"""The records that a feed writes about one cluster: changes, what a listing holds, signs of life."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import instant_text
from evictstream.models.messages.fleet import ProfileRef

LISTING_BYTES: Final = 196_608
"""Of UIDs in one `LISTED`: with its envelope it stays under the 256 KiB that docs/messages.md names."""


class ToldCluster(NamedTuple):
    """What a feed says of its cluster, for readers of the fleet.

    Attributes:
        labels: of the cluster.
        profile: where it stands in an inventory; None if that is not known.
    """

    labels: Mapping[str, str]
    profile: ProfileRef | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeedRecords:
    """Makes the values for one cluster in one epoch.

    Attributes:
        cluster: its name.
        uid: UID of its namespace `kube-system`.
        epoch: of its resource versions.
    """

    cluster: str
    uid: str
    epoch: int

    @property
    def key(self) -> bytes:
        """The key of every record of this cluster."""
        return self.cluster.encode()

    def head(self, type_: str) -> bytes:
        """Return the first part of a change of this type, up to its time: the same for all of them."""
        fields = {"cluster": self.cluster, "type": type_} | ({"epoch": self.epoch} if self.epoch else {})
        return msgspec.json.encode(fields)[:-1] + b',"observedAt":"'

    @staticmethod
    def change(head: bytes, at_us: int, object_: bytes) -> bytes:
        """Put a change together, without encoding the object once more."""
        return b"".join((head, instant_text(at_us).encode(), b'","object":', object_, b"}"))

    def heartbeat(self, at_us: int, listed_at_us: int, told: ToldCluster | None = None) -> bytes:
        """Make a sign of life, with the begin of the newest complete listing, and on nodes what is `told`."""
        more: dict[str, object] = {"listedAt": instant_text(listed_at_us)}
        if told is not None and told.labels:
            more["clusterLabels"] = told.labels
        if told is not None and told.profile is not None:
            more["clusterProfile"] = told.profile
        return self._signal("HEARTBEAT", at_us, more)

    def listed(self, at_us: int, version: str, uids: Mapping[str, Sequence[str]]) -> Iterator[bytes]:
        """Say what a complete listing holds.

        Args:
            at_us: when it was complete.
            version: of the list.
            uids: by node, in any order.

        Yields:
            Values. Their ranges adjoin, and the last has no end. Where a node has too many pods for one record, several
            have the same range of names, and ranges of UIDs that adjoin.
        """
        after, held, size = "", dict[str, Sequence[str]](), 0
        for name in sorted(uids):
            more = len(name) + sum(map(_listed_bytes, uids[name]))
            if held and size + more > LISTING_BYTES:
                last = next(reversed(held))
                yield self._listing(at_us, version, {"after": after, "through": last}, held)
                after, held, size = last, {}, 0
            if more > LISTING_BYTES:
                for part, some in _parts(uids[name]):
                    range_ = {"after": after, "through": name} | part
                    yield self._listing(at_us, version, range_, {name: some})
                after = name
                continue
            held[name] = uids[name]
            size += more
        yield self._listing(at_us, version, {"after": after, "through": None}, held)

    def _listing(
        self, at_us: int, version: str, range_: Mapping[str, str | None], uids: Mapping[str, Sequence[str]]
    ) -> bytes:
        return self._signal("LISTED", at_us, {"listing": {"resourceVersion": version, **range_, "uids": uids}})

    def _signal(self, type_: str, at_us: int, more: Mapping[str, object]) -> bytes:
        common = {"cluster": self.cluster, "type": type_, "observedAt": instant_text(at_us)}
        return msgspec.json.encode(common | {"epoch": self.epoch, "clusterUid": self.uid} | dict(more))


def _listed_bytes(uid: str) -> int:
    """Return what a UID takes in `LISTED`: quotes and comma too."""
    return len(uid) + 3


def _parts(uids: Sequence[str]) -> Iterator[tuple[dict[str, str | None], list[str]]]:
    """Split the UIDs of one node, with the ranges that their parts speak for."""
    after, part, size = "", list[str](), 0
    for uid in sorted(uids):
        if part and size + _listed_bytes(uid) > LISTING_BYTES:
            yield {"uidAfter": after, "uidThrough": part[-1]}, part
            after, part, size = part[-1], [], 0
        part.append(uid)
        size += _listed_bytes(uid)
    yield {"uidAfter": after, "uidThrough": None}, part
