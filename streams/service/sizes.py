"""Whether what would be written about an object fits our topics; asked before the step, only for large records.

A row holds all taints or tolerations of its object; a message holds one of each, the other one from an object
that came earlier. So the whole must fit, and a single taint or toleration must take at most a quarter.
"""

from __future__ import annotations

import msgspec

from models.eviction import NodeEvent, PodEvent

SHARE = 4


def fits(event: object, limit_bytes: int) -> bool:
    """Whether rows and messages about this event stay below the limit of a record."""
    parts: tuple[object, ...]
    rest: tuple[str, ...]
    match event:
        case PodEvent(pod=pod):
            parts, rest = pod.tolerations, (pod.namespace, pod.name, pod.uid, pod.node_name)
        case NodeEvent(node=node):
            parts, rest = node.taints, (node.name, node.uid)
        case _:
            return len(msgspec.json.encode(event)) < limit_bytes // SHARE
    sizes = [len(msgspec.json.encode(part)) for part in parts]
    names = len(msgspec.json.encode(rest))
    return sum(sizes) + names < limit_bytes // 2 and max(sizes, default=0) + names < limit_bytes // SHARE
