"""An operator's signals on the nodes topic: forget a cluster, accept a gap. Their time is the append time."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from evictstream.streams.feed.publisher import Publisher


def forget_cluster(publisher: Publisher, topic: str, cluster: str) -> None:
    """Have a cluster forgotten: its evictions are cancelled, its rows removed.

    Args:
        publisher: where to.
        topic: the nodes topic.
        cluster: its name.

    Raises:
        BrokerError: the signal could not be written. Sending it again does no harm.
    """
    _send(publisher, topic, (cluster,), "FORGET")


def accept_gap(publisher: Publisher, topic: str, clusters: Iterable[str]) -> None:
    """Have evictions of clusters go on although input expired unread.

    Raises:
        BrokerError: not every signal could be written. Sending all again does no harm.
    """
    _send(publisher, topic, clusters, "ACCEPT_GAP")


def _send(publisher: Publisher, topic: str, clusters: Iterable[str], what: str) -> None:
    for cluster in clusters:
        publisher.send(topic, cluster.encode(), msgspec.json.encode({"cluster": cluster, "type": what}))
    publisher.flush()
