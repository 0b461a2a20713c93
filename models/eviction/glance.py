"""The shortest way for the most frequent inputs: a known pod of which nothing changed but its version or tolerations.

Five of six events are status changes. They, and edits while nothing is owed to the pod, are told from all others at a
glance, before the object is flattened and an event is made, in a third of the time. All else, also what is stale,
repeated or malformed, takes the long way.
"""

import datetime as dt
from typing import Final, TypeAlias

import msgspec

from evictstream.models.eviction.accepting import read_version
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.row_layout import pod_value
from evictstream.models.eviction.state import NodeAggregate
from evictstream.models.kubernetes.objects import API_VERSION, TERMINAL_PHASES, PodObject
from evictstream.models.kubernetes.tolerations import Tolerations, read_tolerations
from evictstream.models.messages.envelope import DECODE_ERRORS, InputLimits, event_at_us
from evictstream.models.messages.object_limits import LONGEST_TEXT, has_long_text, is_too_long

Glance: TypeAlias = tuple[bytes, bytes] | bool
"""What a glance has told: `False`, nothing, take the long way; `True`, taken in and nothing to write; or key and value
of the one row to write."""

_POD: Final = RowKind.POD  # bound once: an enum looks its members up slowly


def glance_at(
    aggregate: NodeAggregate, seen: PodObject, observed_at: dt.datetime | None, append_at_us: int, limits: InputLimits
) -> Glance:
    """Take in a pod that is the known one, unmarked, with a newer version and at most other tolerations.

    Does exactly what `apply_pod` would do for such an event (`ADDED` or `MODIFIED`), or nothing.

    Args:
        aggregate: of the node in the record's key; changed in place.
        seen: the decoded object, not yet checked.
        observed_at: when the feed saw it, if it says so.
        append_at_us: append time of the record, microseconds since 1970.
        limits: how far `observed_at` may lie before that.
    """
    metadata, spec = seen.metadata, seen.spec
    if metadata is None or spec is None or not _is_plain(seen) or spec.node_name != aggregate.name:
        return False
    pod = aggregate.pods.get(metadata.uid or "")
    if pod is None or pod.marks or not (metadata.name and metadata.namespace and metadata.resource_version):
        return False
    tolerations = _tolerations(bytes(spec.tolerations))
    if tolerations is None:
        return False
    version, known = read_version(metadata.resource_version), pod.version
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
    pod.tolerations_since_us = event_at_us(observed_at, append_at_us, limits)
    return row_key(_POD, aggregate.key, pod.uid), pod_value(pod)


def _tolerations(text: bytes) -> Tolerations | None:
    """Read tolerations, but for those that are broken or beyond a limit."""
    if is_too_long(text):
        return None
    try:
        tolerations = read_tolerations(text)
    except DECODE_ERRORS:
        return None
    return None if len(text) > LONGEST_TEXT and has_long_text(tolerations) else tolerations


def _is_plain(seen: PodObject) -> bool:
    """Tell whether it is a v1 Pod that runs, or will: neither a mirror nor terminating nor finished."""
    metadata, status = seen.metadata, seen.status
    if metadata is None or status is None or seen.kind != "Pod" or seen.api_version != API_VERSION:
        return False
    annotations = metadata.annotations
    if annotations is not None and annotations.mirror is not msgspec.UNSET:
        return False
    return not metadata.deletion_timestamp and status.phase not in TERMINAL_PHASES
