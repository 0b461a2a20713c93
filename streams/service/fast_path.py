"""The fast path for the most frequent input: a known pod of which only the version or the tolerations changed.

Five of six events are status changes. The fast path recognises them, and edits of tolerations while nothing is due for
the pod, on the decoded JSON object. It does not check the object or make an event of it, and takes a third of the time.
All other records go through `apply_pod`: stale, repeated and malformed ones too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from evictstream.models.eviction import RowKind, row_key
from evictstream.models.eviction.row_values import pod_value
from evictstream.models.kubernetes.objects import API_VERSION, TERMINAL_PHASES
from evictstream.models.kubernetes.resource_versions import read_version
from evictstream.models.kubernetes.tolerations import Tolerations, read_tolerations
from evictstream.models.messages.envelope import DECODE_ERRORS, event_at_us
from evictstream.models.messages.object_limits import LONGEST_TEXT, has_long_text, is_too_long

if TYPE_CHECKING:
    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.kubernetes.objects import PodObject
    from evictstream.models.messages.decoding import PodWatch
    from evictstream.models.messages.envelope import InputLimits

Applied: TypeAlias = tuple[bytes, bytes] | bool
"""`False`: not applied, call `apply_pod`. `True`: applied, and no row changes. Otherwise the key and the value of the
only row that changes."""

_POD: Final = RowKind.POD  # see `evictstream.models.eviction` for this constant


def apply_plain_change(
    aggregate: NodeAggregate, found: PodWatch, seen: PodObject, append_at_us: int, limits: InputLimits
) -> Applied:
    """Apply an event of a known pod, without exemptions, with a newer version and at most other tolerations.

    Does exactly what `apply_pod` would do for such an event (`ADDED` or `MODIFIED`), or nothing.

    Args:
        aggregate: the node of the record's key; changed in place.
        found: the decoded record.
        seen: its object, unchecked.
        append_at_us: append time of the record, microseconds since 1970.
        limits: how far before `append_at_us` the event's `observedAt` may be.
    """
    metadata, spec = seen.metadata, seen.spec
    if metadata is None or spec is None or not _is_plain(seen) or spec.node_name != aggregate.name:
        return False
    pod = aggregate.pods.get(metadata.uid or "")
    if pod is None or pod.exemptions or not (metadata.name and metadata.namespace and metadata.resource_version):
        return False
    tolerations = _tolerations(bytes(spec.tolerations))
    if tolerations is None:
        return False
    version, known = read_version(metadata.resource_version, found.epoch), pod.version
    if not isinstance(version, int) or not isinstance(known, int) or version <= known:
        return False
    if tolerations is pod.tolerations or tolerations == pod.tolerations:
        pod.version = version
        return True
    node = aggregate.node
    if pod.eviction is not None or (node is not None and node.taints):
        return False
    pod.version = version
    pod.tolerations = tolerations
    pod.tolerations_since_us = event_at_us(found.observed_at, append_at_us, limits)
    return row_key(_POD, aggregate.key, pod.uid), pod_value(pod)


def _tolerations(text: bytes) -> Tolerations | None:
    """Read tolerations; `None` if they are malformed or beyond a limit."""
    if is_too_long(text):
        return None
    try:
        tolerations = read_tolerations(text)
    except DECODE_ERRORS:
        return None
    return None if len(text) > LONGEST_TEXT and has_long_text(tolerations) else tolerations


def _is_plain(seen: PodObject) -> bool:
    """Whether the object is a v1 Pod that runs or will run: no mirror pod, not terminating, not finished."""
    metadata, status = seen.metadata, seen.status
    if metadata is None or status is None or seen.kind != "Pod" or seen.api_version != API_VERSION:
        return False
    annotations = metadata.annotations
    if annotations is not None and annotations.mirror is not msgspec.UNSET:
        return False
    return not metadata.deletion_timestamp and status.phase not in TERMINAL_PHASES
