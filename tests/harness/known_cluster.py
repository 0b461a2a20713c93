"""What a cluster holds, as the topics say it: read without a line of the service."""

from __future__ import annotations

from typing import Any

from evictstream.streams.settings import Settings
from tests.harness.reading import TopicReader


class KnownCluster:
    """What a reader of the topics knows, by the rules of docs/messages.md: epochs, versions, listings.

    Attributes:
        objects: kind, node and version (epoch first) by UID.
        heartbeats: how many were read.
        epochs: all that were named.
    """

    def __init__(self, settings: Settings, cluster: str) -> None:
        self.objects: dict[str, tuple[str, str, tuple[int, int]]] = {}
        self.heartbeats = 0
        self.epochs: set[int] = set()
        for topic, kind in ((settings.nodes_topic, "Node"), (settings.pods_topic, "Pod")):
            reader = TopicReader(settings, topic)
            for record in reader.to_end():
                if record.key == cluster.encode():
                    self._take(kind, record.value)
            reader.close()

    def _take(self, kind: str, event: Any) -> None:
        epoch = event.get("epoch", 0)
        self.epochs.add(epoch)
        if event["type"] == "HEARTBEAT":
            self.heartbeats += 1
        elif event["type"] == "LISTED":
            listing = event["listing"]
            version = (epoch, int(listing["resourceVersion"]))
            for uid, (of, node, known) in list(self.objects.items()):
                is_covered = listing["after"] < node and (listing["through"] is None or node <= listing["through"])
                through = listing.get("uidThrough")
                is_covered = is_covered and uid > listing.get("uidAfter", "") and (through is None or uid <= through)
                if of == kind and is_covered and known <= version and uid not in listing["uids"].get(node, ()):
                    del self.objects[uid]
        else:
            found = event["object"]
            meta = found["metadata"]
            version = (epoch, int(meta["resourceVersion"]))
            node = meta["name"] if kind == "Node" else found["spec"]["nodeName"]
            if meta["uid"] in self.objects and self.objects[meta["uid"]][2] > version:
                return
            self.objects.pop(meta["uid"], None)
            if event["type"] != "DELETED":
                self.objects[meta["uid"]] = (kind, node, version)
