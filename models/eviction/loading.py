"""Loads aggregates from rows, at a restart and when a partition gets a new owner.

Rows of different keys may come in any order, an eviction before its pod too; rows of one key come in the order in
which they were written, and the last one counts. The state is then equal to the one that wrote them in everything that
decides. Only a pod's resource version may be an earlier one (`state.PodState.version`).
"""

from collections.abc import Iterator

from evictstream.models.eviction.row_keys import RowKind, split_row_key
from evictstream.models.eviction.row_values import read_eviction_value, read_gone_value, read_node_value, read_pod_value
from evictstream.models.eviction.state import Eviction, NodeAggregate, PodState

_NODE, _POD, _EVICTION = RowKind.NODE, RowKind.POD, RowKind.EVICTION


def load_row(aggregates: dict[str, NodeAggregate], key: bytes, value: bytes | None) -> None:
    """Apply one row.

    Args:
        aggregates: by `<cluster>/<node>`; one that is missing is added. One that has become empty stays: the caller
            drops it once all rows are loaded, if `is_empty`.
        key: key of the row.
        value: its value; None deletes what an earlier row has brought.

    Raises:
        RowError: the row was not written by this version of the program, or is damaged.
    """
    kind, aggregate_key, uid = split_row_key(key)
    aggregate = aggregates.get(aggregate_key)
    if aggregate is None:
        cluster, _, name = aggregate_key.partition("/")
        aggregate = aggregates[aggregate_key] = NodeAggregate(cluster, name)
    if kind is _POD:  # the most by far
        _load_pod(aggregate, uid, None if value is None else read_pod_value(key, value, uid))
    elif kind is _EVICTION:
        _load_eviction(aggregate, uid, None if value is None else read_eviction_value(key, value))
    elif kind is _NODE:
        _load_node(aggregate, key, value)
    elif value is None:
        aggregate.gone.pop(uid, None)
    else:
        aggregate.gone[uid] = read_gone_value(key, value)


def wakeups(aggregate: NodeAggregate) -> Iterator[tuple[int, str]]:
    """List the wake-ups that a loaded aggregate needs: one per open eviction, one to forget deleted UIDs.

    Yields:
        (instant in microseconds since 1970, UID of the pod or empty for the node itself), in no order. The instant
        may lie in the past; `fire` then does what is owed.
    """
    for pod in aggregate.pods.values():
        if pod.eviction is not None and (at_us := pod.eviction.wakeup_us) is not None:
            yield at_us, pod.uid
    aggregate.gone = dict(sorted(aggregate.gone.items(), key=lambda known: known[1].until_us))
    aggregate.purge_at_us = aggregate.next_purge_us
    if aggregate.purge_at_us is not None:
        yield aggregate.purge_at_us, ""


def _load_node(aggregate: NodeAggregate, key: bytes, value: bytes | None) -> None:
    if value is None:
        aggregate.node = None
        aggregate.departed = {}
    else:
        aggregate.node, aggregate.departed = read_node_value(key, value)


def _load_pod(aggregate: NodeAggregate, uid: str, pod: PodState | None) -> None:
    aggregate.reset_addresses()
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
    """Join an eviction to its pod, whose row need not have been written when it was opened: the ordinal counts."""
    pod.eviction = eviction
    pod.opened = max(pod.opened, eviction.ordinal + 1)
