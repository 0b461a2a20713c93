"""Writes what a feed and an executor would write: watch events, heartbeats, results."""

from __future__ import annotations

import json

from evictstream.kit.demo.recording import Event
from evictstream.models.instants import instant_text
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.settings import Settings


class InputWriter:
    """Puts records under the right key on the right topic."""

    def __init__(self, publisher: Publisher, settings: Settings) -> None:
        """Write through `publisher`."""
        self._publisher = publisher
        self._settings = settings

    def change(self, event: Event) -> None:
        """Send the watch event of a node or a pod."""
        topic = self._settings.nodes_topic if event["object"]["kind"] == "Node" else self._settings.pods_topic
        self._publisher.send(topic, record_key(event), encode(event))

    def heartbeat(self, cluster: str, now_us: int) -> None:
        """Send a sign of life to each partition of nodes and pods."""
        value = encode({"cluster": cluster, "type": "HEARTBEAT", "observedAt": instant_text(now_us)})
        for topic in (self._settings.nodes_topic, self._settings.pods_topic):
            for partition in self._publisher.partitions:
                self._publisher.send(topic, f"{cluster}/".encode(), value, partition)

    def result(self, result: Event) -> None:
        """Send what was done with a command."""
        key = f"{result['cluster']}/{result['node']}".encode()
        self._publisher.send(self._settings.results_topic, key, encode(result))


def record_key(event: Event) -> bytes:
    """Give the key of a watch event: its node's; an unbound pod goes under its cluster's."""
    thing = event["object"]
    node = thing["metadata"]["name"] if thing["kind"] == "Node" else thing["spec"].get("nodeName") or ""
    return f"{event['cluster']}/{node}".encode()


def encode(value: Event) -> bytes:
    """Give the value of a record: compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
