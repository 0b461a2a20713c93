"""Writes what a feed and an executor would write: watch events, heartbeats, results."""

from __future__ import annotations

import json

from evictstream.models.instants import instant_text
from evictstream.streams.demo.recording import Event
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.settings import Settings


class InputWriter:
    """Puts records under the right key on the right topic."""

    def __init__(self, publisher: Publisher, settings: Settings) -> None:
        """Write through `publisher`."""
        self._publisher = publisher
        self._settings = settings

    def change(self, event: Event) -> None:
        """Send the watch event of a node or a pod; an unbound pod goes under its cluster's key."""
        thing = event["object"]
        if thing["kind"] == "Node":
            topic, node = self._settings.nodes_topic, thing["metadata"]["name"]
        else:
            topic, node = self._settings.pods_topic, thing["spec"].get("nodeName") or ""
        self._publisher.send(topic, f"{event['cluster']}/{node}".encode(), _encode(event))

    def heartbeat(self, cluster: str, now_us: int) -> None:
        """Send a sign of life to each partition of nodes and pods."""
        value = _encode({"cluster": cluster, "type": "HEARTBEAT", "observedAt": instant_text(now_us)})
        for topic in (self._settings.nodes_topic, self._settings.pods_topic):
            for partition in self._publisher.partitions:
                self._publisher.send(topic, f"{cluster}/".encode(), value, partition)

    def result(self, result: Event) -> None:
        """Send what was done with a command."""
        key = f"{result['cluster']}/{result['node']}".encode()
        self._publisher.send(self._settings.results_topic, key, _encode(result))


def _encode(value: Event) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
