"""Which deletes of an executor are right, told from the cluster alone: no topic, no command, no row is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evictstream.models.execution.last_look import read_seen_node, read_seen_pod
from evictstream.models.kubernetes.matching import bounded_seconds, first_match, tolerations_in_use
from evictstream.models.messages.object_limits import LARGEST_LIST

Object = dict[str, Any]
Together = Mapping[tuple[str, str], int]
"""When a pod (UID) and a taint (key) of its node were first together, microseconds."""

SECOND_US = 1_000_000


class Deleted(NamedTuple):
    """A pod that an executor has deleted.

    Attributes:
        pod: as it was.
        nodes: states of its node that may have been seen at the last look: no precondition can hold a node.
        at_us: when.
    """

    pod: Object
    nodes: tuple[Object, ...]
    at_us: int


def wrong_delete(deleted: Deleted, together: Together) -> Iterator[str]:
    """Say what is wrong about a delete, if something is."""
    pod = deleted.pod
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    stays = [found for node in deleted.nodes if (found := stays_us(pod, node)) is not None]
    if not stays:
        specs = [node["spec"] for node in deleted.nodes]
        yield f"{name} was deleted although nothing was due: {pod['spec']}, {specs}"
        return
    since_us = min((at_us for (one, _), at_us in together.items() if one == uid), default=deleted.at_us)
    if deleted.at_us < since_us + min(stays):
        yield f"{name} was deleted {(since_us + min(stays) - deleted.at_us) / 1e6} s early"


def stays_us(pod: Object, node: Object) -> int | None:
    """Return how long a pod may stay from the first taint on, at least; None forever, as for an absurd one."""
    seen, there = read_seen_pod(json.dumps(pod).encode()), read_seen_node(json.dumps(node).encode())
    if not there.taints or len(seen.tolerations) > LARGEST_LIST:
        return None
    in_use = tolerations_in_use(seen.tolerations, there.taints)
    if in_use is None:
        return 0
    seconds = [
        found
        for taint in there.taints
        if (toleration := first_match(seen.tolerations, taint)) and (found := bounded_seconds(toleration)) is not None
    ]
    return min(seconds) * SECOND_US if seconds else None
