"""What brakes and policies have in common: the eviction that they look at, and the answer that it has to wait."""

import contextlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.traits import NodeLabels, PodTraits
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.steering.node_counts import KnownNodes

_FRACTIONS: Final = 2**32
_POLICY: Final = "policy/"
_HEX: Final = "hex:"

_Standing = TypeVar("_Standing")


class Subject(NamedTuple):
    """An eviction that is due, as brakes and policies see it.

    Attributes:
        namespace: of the pod.
        pod_uid: of the pod.
        taint: key of the taint that is the reason.
        due_us: since when it is due, microseconds.
        zone: of the node, empty if it has none; None where it is not known. A brake with zones does not hold it there.
        node: name of the node; for policies, as the next ones.
        taint_since_us: since when the taint is on the node.
        node_labels: of the node; None where they are not known.
        traits: owner, priority and group of the pod; None where they are not known.
        known: how many nodes the cluster has; None where nobody has counted them.
        first_issued_us: when it first was in flight; None before, and while it is only observed.
        leaves_us: since when the pod has to leave: of a repeat long before `due_us`; None if that is the same.
    """

    namespace: str
    pod_uid: str
    taint: str
    due_us: int
    zone: str | None = None
    node: str = ""
    taint_since_us: int = 0
    node_labels: NodeLabels | None = None
    traits: PodTraits | None = None
    known: KnownNodes | None = None
    first_issued_us: int | None = None
    leaves_us: int | None = None

    def waits_until_us(self, at_most_seconds: int) -> int:
        """Return until when a hold that lasts so long at most may hold it: a repeat begins no wait of its own."""
        return (self.due_us if self.leaves_us is None else self.leaves_us) + at_most_seconds * SECOND_US


class Hold(NamedTuple):
    """An eviction that has to wait.

    Attributes:
        by: what holds it: the id of a brake, or `policy/NAME/REVISION/CLAUSE`.
        until_us: when it may go, unless something else holds it then; None until a person changes something.
    """

    by: str
    until_us: int | None


class Holder(Protocol):
    """A brake or a policy, as long as one decision takes."""

    @property
    def holder(self) -> str:
        """Its name, as `holder_of` gives it."""

    def hold(self, subject: Subject, now_us: int) -> Hold | None:
        """Return until when it holds an eviction of one of its clusters; None if it does not."""


def longest_hold(holders: Iterable[Holder], subject: Subject, now_us: int) -> Hold | None:
    """Return what holds an eviction longest; None if nothing does."""
    return longest(holder.hold(subject, now_us) for holder in holders)


def longest(holds: Iterable[Hold | None]) -> Hold | None:
    """Return the hold that ends last; None if there is none."""
    found: Hold | None = None
    for hold in holds:
        if hold is None:
            continue
        if hold.until_us is None:
            return hold
        if found is None or hold.until_us > (found.until_us or 0):
            found = hold
    return found


def share_us(pod_uid: str, spread_seconds: int) -> int:
    """Return how long after the end of a hold a pod goes: the same for every reader, and even over all pods."""
    return zlib.crc32(pod_uid.encode()) * spread_seconds * SECOND_US // _FRACTIONS


def with_record(
    standing: Mapping[str, _Standing],
    unreadable: Mapping[str, str],
    record: tuple[bytes | None, bytes | None],
    read: Callable[[str, bytes, Mapping[str, _Standing]], _Standing | str],
) -> tuple[dict[str, _Standing], dict[str, str]]:
    """Return what stands and what cannot be read, by key, after one more record of a topic.

    Args:
        standing: what stood before.
        unreadable: what could not be read before, and why.
        record: key and value; one without a value removes what had its key.
        read: gets the key, the value, and all others that stand; returns what the record says, or why it says nothing.
    """
    key, value = record
    name = name_of(key or b"")
    stand = {other: one for other, one in standing.items() if other != name}
    unread = {other: detail for other, detail in unreadable.items() if other != name}
    if value is not None:
        try:
            found = read(name, value, stand)
        except Unreadable as error:
            found = str(error)
        if isinstance(found, str):
            unread[name] = found
        else:
            stand[name] = found
    return stand, unread


def name_of(key: bytes) -> str:
    """Return the key of a record as people read and type it; one that is no UTF-8 in hexadecimal: `hex:ff01`."""
    try:
        name = key.decode()
    except UnicodeDecodeError:
        return f"{_HEX}{key.hex()}"
    return f"{_HEX}{key.hex()}" if name.startswith(_HEX) else name


def key_of(name: str) -> bytes:
    """Return the key of a record by its name, as `name_of` gives it."""
    if name.startswith(_HEX):
        with contextlib.suppress(ValueError):
            return bytes.fromhex(name.removeprefix(_HEX))
    return name.encode()


def policy_holder(name: str) -> str:
    """Name a policy as a holder: no brake has such an id."""
    return f"{_POLICY}{name}"


def holder_of(by: str) -> str:
    """Return the brake or policy that a hold is `by`, without revision and clause."""
    return "/".join(by.split("/", 2)[:2]) if by.startswith(_POLICY) else by


def is_of_policy(by: str) -> bool:
    """Whether a hold, or its holder, is a policy's."""
    return by.startswith(_POLICY)
