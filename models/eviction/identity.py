"""The name of an eviction: computed, never random, never the time of sending (docs/messages.md#commands)."""

import hashlib
from typing import Final, NewType

EvictionId = NewType("EvictionId", str)

_DIGEST_BYTES: Final = 16  # 128 bit: no two of any number of evictions that a fleet will ever see


def eviction_id(cluster: str, pod_uid: str, opened_before: int) -> EvictionId:
    """Name the eviction of a pod.

    The same for every delivery, replay and restart; another one for every eviction that is opened for the pod, so that
    an id is never used again after a `Cancel`.

    Args:
        cluster: the cluster's id.
        pod_uid: the pod's UID.
        opened_before: how many evictions were opened for this pod before, kept in its row.

    Returns:
        32 hexadecimal digits.
    """
    # Each text behind its length: no two different triples give the same bytes.
    text = f"{len(cluster)}:{cluster}{len(pod_uid)}:{pod_uid}{opened_before}"
    return EvictionId(hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest())
