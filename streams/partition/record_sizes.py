"""Whether rows and messages about an object will fit their topics; checked before the step, for large records only.

A row holds all taints of its node or all tolerations of its pod. A message holds one taint and one toleration, one of
them from a record that came earlier. So each list must fit, and a single entry may take at most a quarter of a record.
Labels and traits are in rows only. They decide nothing, so beyond a quarter they count as absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from evictstream.models.eviction import NodeEvent, PodEvent, ResultEvent
from evictstream.models.kubernetes.traits import NO_TRAITS

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARE = 4  # names, and names with the largest entry, stay below this part of a record's limit: a quarter

E = TypeVar("E", bound=NodeEvent | PodEvent | ResultEvent)


def fitting(event: E, limit_bytes: int) -> E | None:
    """Return the event if its rows and messages stay below the limit of a record.

    Returns:
        The event; if its taints or tolerations are too large, a copy that is undecidable and has none; if its labels or
        traits are, a copy without them; `None` if even its names are too large.
    """
    replace = msgspec.structs.replace
    event = _without_large_traits(event, limit_bytes // SHARE)
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


def _without_large_traits(event: E, limit_bytes: int) -> E:
    replace = msgspec.structs.replace
    if isinstance(event, PodEvent) and _size(event.pod.traits.fields) >= limit_bytes:
        return replace(event, pod=replace(event.pod, traits=NO_TRAITS))
    if isinstance(event, NodeEvent) and _size(event.node.labels) >= limit_bytes:
        return replace(event, node=replace(event.node, labels={}))
    return event


def _list_fits(parts: Iterable[object], names: int, limit_bytes: int) -> bool:
    sizes = [_size(part) for part in parts]
    return sum(sizes) + names < limit_bytes // 2 and max(sizes, default=0) + names < limit_bytes // SHARE


def _size(part: object) -> int:
    return len(msgspec.json.encode(part))
