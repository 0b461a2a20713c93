"""Loading aggregates from rows, at a restart and when a partition gets a new owner.

Rows of different keys may come in any order: an eviction may come before its pod. Rows of one key come in the order in
which they were written, and the last one counts. The loaded state leads to the same decisions as the state that wrote
the rows. Only a pod's resource version may be an earlier one (`state.PodState.version`).
"""

from collections.abc import Iterator

from evictstream.models.eviction.row_keys import RowKind, UnknownRowKeyError, row_key, split_row_key
from evictstream.models.eviction.row_values import (
    read_deleted_pod_value,
    read_eviction_value,
    read_node_value,
    read_pod_value,
)
from evictstream.models.eviction.state import Eviction, NodeAggregate, PodState

_NODE, _POD, _EVICTION = RowKind.NODE, RowKind.POD, RowKind.EVICTION


class RowLoader:
    """Loads the rows of one partition, one after the other, at a restart or a take-over.

    Attributes:
        aggregates: what is loaded, by `<cluster>/<node>`. One that has become empty stays: drop it after the last row,
            if `is_empty`.
    """

    __slots__ = ("_of_evictions", "_of_pods", "aggregates")

    def __init__(self) -> None:
        self.aggregates: dict[str, NodeAggregate] = {}
        # By all that stands before the NUL and the UID in the keys of a node's pods, and of their evictions.
        self._of_pods: dict[bytes, NodeAggregate] = {}
        self._of_evictions: dict[bytes, NodeAggregate] = {}

    def load(self, key: bytes, value: bytes | None) -> None:
        """Apply one row.

        Args:
            key: key of the row.
            value: its value; None deletes what an earlier row of this key has loaded.

        Raises:
            RowError: the row was not written by this version of the program, or is damaged.
        """
        # Most rows are of a pod that is new on a known node, or of an eviction whose pod is known. A restart is little
        # else, so they go without what only other rows need.
        prefix, _, tail = key.rpartition(b"\0")
        if value is not None and (aggregate := self._of_pods.get(prefix)) is not None and not aggregate.orphans:
            uid, pods = _uid(key, tail), aggregate.pods
            if uid not in pods:
                pods[uid] = read_pod_value(key, value, uid)
                return
        elif value is not None and (aggregate := self._of_evictions.get(prefix)) is not None:
            pod = aggregate.pods.get(_uid(key, tail))
            if pod is not None:
                _attach(pod, read_eviction_value(key, value))
                return
        self._load_any(key, value)

    def _load_any(self, key: bytes, value: bytes | None) -> None:
        kind, aggregate_key, uid = split_row_key(key)
        aggregate = self.aggregates.get(aggregate_key)
        if aggregate is None:
            cluster, _, name = aggregate_key.partition("/")
            aggregate = self.aggregates[aggregate_key] = NodeAggregate(cluster, name)
            self._of_pods[row_key(_POD, aggregate_key)[:-1]] = aggregate
            self._of_evictions[row_key(_EVICTION, aggregate_key)[:-1]] = aggregate
        if kind is _POD:
            _load_pod(aggregate, uid, None if value is None else read_pod_value(key, value, uid))
        elif kind is _EVICTION:
            _load_eviction(aggregate, uid, None if value is None else read_eviction_value(key, value))
        elif kind is _NODE:
            _load_node(aggregate, key, value)
        elif value is None:
            aggregate.deleted_pods.pop(uid, None)
        else:
            aggregate.deleted_pods[uid] = read_deleted_pod_value(key, value)


def wakeups(aggregate: NodeAggregate) -> Iterator[tuple[int, str]]:
    """Finish loading an aggregate, and yield the wake-ups that it needs.

    Call it once, after the last row, and iterate to the end. It puts the deleted pods into the order in which they may
    be forgotten, and sets `purge_at_us`. There is one wake-up for each open eviction, and one to forget deleted UIDs.

    Yields:
        (instant in microseconds since 1970, UID of the pod or empty for the node itself), in no order. The instant
        may lie in the past; `fire` then does what is owed.
    """
    for pod in aggregate.pods.values():
        if pod.eviction is not None and (at_us := pod.eviction.wakeup_us) is not None:
            yield at_us, pod.uid
    aggregate.deleted_pods = dict(sorted(aggregate.deleted_pods.items(), key=lambda known: known[1].until_us))
    aggregate.purge_at_us = aggregate.next_purge_us
    if aggregate.purge_at_us is not None:
        yield aggregate.purge_at_us, ""


def _uid(key: bytes, tail: bytes) -> str:
    try:
        return tail.decode()
    except UnicodeDecodeError as error:
        raise UnknownRowKeyError(key, "malformed key") from error


def _load_node(aggregate: NodeAggregate, key: bytes, value: bytes | None) -> None:
    if value is None:
        aggregate.node = None
        aggregate.earlier_nodes = {}
    else:
        aggregate.node, aggregate.earlier_nodes = read_node_value(key, value)


def _load_pod(aggregate: NodeAggregate, uid: str, pod: PodState | None) -> None:
    previous = aggregate.pods.pop(uid, None)
    if previous is not None and previous.eviction is not None:
        aggregate.orphans[uid] = previous.eviction
    if pod is None:
        return
    aggregate.pods[uid] = pod
    eviction = aggregate.orphans.pop(uid, None)
    if eviction is not None:
        _attach(pod, eviction)


def _load_eviction(aggregate: NodeAggregate, uid: str, eviction: Eviction | None) -> None:
    pod = aggregate.pods.get(uid)
    if pod is None:
        if eviction is None:
            aggregate.orphans.pop(uid, None)
        else:
            aggregate.orphans[uid] = eviction
    elif eviction is None:
        pod.eviction = None
    else:
        _attach(pod, eviction)


def _attach(pod: PodState, eviction: Eviction) -> None:
    """Attach an eviction to its pod. The pod's row may be older, so `opened` is at least the ordinal plus one."""
    pod.eviction = eviction
    pod.opened = max(pod.opened, eviction.ordinal + 1)
