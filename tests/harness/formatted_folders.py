"""Folders of brokers: Kafka's tool formats the first one of a process, further ones are copies with ids of their own.

The tool is a process of Java, a third of what a broker costs until it answers. What it writes differs only by the ids
of cluster and node, which are text, and by the features that were asked for.
"""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from typing import Any, Final

from evictstream.streams.broker.kafka_node import KafkaNode

CHECKPOINT: Final = "bootstrap.checkpoint"
FORMAT: Final = KafkaNode._format

_checkpoints: dict[tuple[tuple[str, int], ...], bytes] = {}


def format_or_copy(node: KafkaNode, *of_tool: Any) -> None:
    """Do what `KafkaNode` does before its first start."""
    folder: Path = node._folder / "data"
    features = tuple(sorted(node._features.items()))
    if features not in _checkpoints:
        FORMAT(node, *of_tool)
        _checkpoints[features] = (folder / CHECKPOINT).read_bytes()
        return
    folder.mkdir()
    directory_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    ids = {"version": 1, "cluster.id": node._cluster_id, "node.id": node.address.node_id, "directory.id": directory_id}
    (folder / CHECKPOINT).write_bytes(_checkpoints[features])
    (folder / "meta.properties").write_text("".join(f"{name}={value}\n" for name, value in ids.items()))
