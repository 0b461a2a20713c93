"""Whether what would be written about an object fits our topics; asked before the step, only for large records.

A row holds all taints or tolerations of its object; a message holds one of each, the other one from an object
that came earlier. So the whole must fit, and a single taint or toleration must take at most a quarter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from evictstream.models.eviction import NodeEvent, PodEvent, ResultEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARE = 4

E = TypeVar("E", bound=NodeEvent | PodEvent | ResultEvent)


def fitting(event: E, limit_bytes: int) -> E | None:
    """Give an event of which rows and messages stay below the limit of a record.

    Returns:
        The event; or, if its taints or tolerations are too large, the same as undecidable, without them; or None if it
        would not fit either way.
    """
    replace = msgspec.structs.replace
    fit: NodeEvent | PodEvent | ResultEvent = event
    if isinstance(event, PodEvent):
        pod = event.pod
        names = _size((pod.namespace, pod.name, pod.uid, pod.node_name, pod.resource_version))
        if not _list_fits(pod.tolerations, names, limit_bytes):
            fit = replace(event, pod=replace(pod, tolerations=()), is_undecidable=True)
    elif isinstance(event, NodeEvent):
        node = event.node
        names = _size((node.name, node.uid, node.resource_version))
        if not _list_fits(node.taints, names, limit_bytes):
            fit = replace(event, node=replace(node, taints=()), is_undecidable=True)
    else:
        names = _size(event)
    return cast("E", fit) if names < limit_bytes // SHARE else None


def _list_fits(parts: Iterable[object], names: int, limit_bytes: int) -> bool:
    sizes = [_size(part) for part in parts]
    return sum(sizes) + names < limit_bytes // 2 and max(sizes, default=0) + names < limit_bytes // SHARE


def _size(part: object) -> int:
    return len(msgspec.json.encode(part))
