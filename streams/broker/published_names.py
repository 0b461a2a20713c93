"""The names of clusters and zones that workers publish: of this service, and at a centre of all regions."""

from __future__ import annotations

from evictstream.streams.broker.follow import follow
from evictstream.streams.errors import TopicsDifferError
from evictstream.streams.settings import Settings


def read_published(settings: Settings) -> dict[str, set[str]]:
    """Read the clusters of the fleet topic, each with its zones, from the keys alone.

    Empty where a service of an earlier version has no such topic.

    Raises:
        BrokerError: the topic cannot be read.
    """
    standing: dict[bytes, bool] = {}
    try:
        with follow(settings, settings.fleet_topic, "beginning", is_stopped=lambda: False, idle_seconds=0.0) as batches:
            for batch in batches:
                for record in sorted(batch, key=lambda one: (one.partition, one.offset)):  # a clock may be behind
                    standing[record.key or b""] = record.value is not None
    except TopicsDifferError:
        return {}
    found: dict[str, set[str]] = {}
    for key, is_there in standing.items():
        cluster, _, zone = key.decode(errors="replace").partition("/")
        if is_there and cluster:
            found.setdefault(cluster, set()).update({zone} - {""})
    return found
