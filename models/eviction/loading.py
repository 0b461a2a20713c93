"""Loading aggregates from rows, at a restart and when a partition gets a new owner.

Rows of different keys may come in any order: an eviction may come before its pod. Rows of one key come in the order in
which they were written, and the last one counts. The loaded state leads to the same decisions as the state that wrote
the rows. Only a pod's resource version may be an earlier one (`state.PodState.version`).
"""

from collections.abc import Iterator

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.node_rows import read_node_value
from evictstream.models.eviction.pod_rows import read_deleted_pod_value, read_eviction_value, read_pod_value
from evictstream.models.eviction.row_keys import RowKind, row_key, split_row_key
from evictstream.models.eviction.state import Eviction, PodState

_NODE, _POD, _EVICTION = RowKind.NODE, RowKind.POD, RowKind.EVICTION


class RowLoader:
    """Loads the rows of one partition, one after the other, at a restart or a takeover.

    Attributes:
        aggregates: what is loaded, by `<cluster>/<node>`. One that has become empty stays: drop it after the last row,
            if `is_empty`.
    """

    __slots__ = ("_by_key", "aggregates")

    def __init__(self) -> None:
        self.aggregates: dict[str, NodeAggregate] = {}
        # What keys begin with, up to the NUL before the UID. Most rows are of pods, and a node has many: to take each
        # of their keys apart would be a fifth of the time.
        self._by_key: dict[bytes, tuple[RowKind, NodeAggregate]] = {}

    def load(self, key: bytes, value: bytes | None) -> None:
        """Apply one row.

        Args:
            key: key of the row.
            value: its value; None deletes what an earlier row of this key has loaded.

        Raises:
            RowError: the row was not written by this version of the program, or is damaged.
        """
        prefix, _, tail = key.rpartition(b"\0")
        try:
            kind, aggregate = self._by_key[prefix]
            uid = tail.decode()
        except (KeyError, UnicodeDecodeError):
            kind, aggregate, uid = self._take_apart(key)
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

    def _take_apart(self, key: bytes) -> tuple[RowKind, NodeAggregate, str]:
        kind, aggregate_key, uid = split_row_key(key)
        aggregate = self.aggregates.get(aggregate_key)
        if aggregate is None:
            cluster, _, name = aggregate_key.partition("/")
            aggregate = self.aggregates[aggregate_key] = NodeAggregate(cluster, name)
        if kind is not _NODE:
            self._by_key[row_key(kind, aggregate_key)[:-1]] = kind, aggregate
        return kind, aggregate, uid


def wakeups(aggregate: NodeAggregate) -> Iterator[tuple[int, str]]:
    """Yield the wake-ups that an aggregate needs: one for each open eviction, and one to forget deleted UIDs.

    Call it after the last row, and again each time when timers are made from nothing; iterate to the end, with no step
    in between. Whoever calls it drops all earlier wake-ups of the aggregate, so `purge_at_us` becomes the instant of
    the one that is yielded here. Rows come in any order, so deleted pods are put into that of their forgetting first.

    Yields:
        (instant in microseconds since 1970, UID of the pod or empty for the node itself), in no order. The instant
        may lie in the past; `fire` then does what is owed.
    """
    for pod in aggregate.pods.values():
        if pod.eviction is not None and (at_us := pod.eviction.wakeup_us) is not None:
            yield at_us, pod.uid
    aggregate.deleted_pods = dict(sorted(aggregate.deleted_pods.items(), key=lambda item: item[1].until_us))
    aggregate.purge_at_us = aggregate.next_purge_us
    if aggregate.purge_at_us is not None:
        yield aggregate.purge_at_us, ""


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
