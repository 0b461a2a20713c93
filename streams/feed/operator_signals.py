"""An operator's signals on the nodes topic: forget a cluster, accept a gap.

Each partition keeps its own nodes, so each gets the signal, by its number and not by key. The value has no time: the
append time counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from evictstream.models.messages.cluster_names import ANY_CLUSTER
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.publisher import Publisher


def forget_cluster(publisher: Publisher, topic: str, cluster: str) -> tuple[int, ...]:
    """Have all partitions forget a cluster, and return which: its evictions are cancelled, its rows removed.

    Args:
        publisher: where to.
        topic: the nodes topic.
        cluster: its name.

    Raises:
        BrokerError: not every partition got the signal. Sending it to all again does no harm.
    """
    return _send(publisher, topic, publisher.partitions, cluster, "FORGET")


def check_partitions(publisher: Publisher, topic: str, partitions: Iterable[int]) -> tuple[int, ...]:
    """Return partitions in order, all if none are named.

    Raises:
        WrongUseError: there is no such partition.
    """
    chosen = tuple(sorted(set(partitions))) or publisher.partitions
    unknown = [str(number) for number in chosen if number not in publisher.partitions]
    if unknown:
        raise WrongUseError(f"{topic} has {len(publisher.partitions)} partitions, none numbered {', '.join(unknown)}")
    return chosen


def accept_gap(publisher: Publisher, topic: str, partitions: Iterable[int] = ()) -> tuple[int, ...]:
    """Have partitions, all if none are named, go on although input expired unread; return which.

    Raises:
        WrongUseError: there is no such partition; nothing was sent.
        BrokerError: not every partition got the signal. Sending it to all again does no harm.
    """
    chosen = check_partitions(publisher, topic, partitions)
    return _send(publisher, topic, chosen, ANY_CLUSTER, "ACCEPT_GAP")


def _send(publisher: Publisher, topic: str, partitions: tuple[int, ...], cluster: str, what: str) -> tuple[int, ...]:
    value = msgspec.json.encode({"cluster": cluster, "type": what})
    for number in partitions:
        publisher.send(topic, f"{cluster}/".encode(), value, number)
    publisher.flush()
    return partitions
