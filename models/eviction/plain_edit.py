"""The most frequent change of a pod: a newer version with at most other tolerations, while nothing is due for it.

`pod_steps.apply_pod` decides every change. These two functions decide the plain ones, which are five of six, without an
event, a step or a decision; `tests/streams/partition/test_fast_path.py` holds both to the same results.
"""

from typing import Final

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.lifecycle import has_to_decide
from evictstream.models.eviction.pod_rows import pod_value
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.state import PodState
from evictstream.models.eviction.step import InputEffect
from evictstream.models.kubernetes.resource_versions import Version
from evictstream.models.kubernetes.tolerations import Tolerations

_POD: Final = RowKind.POD  # see `evictstream.models.eviction` for these constants
_UNCHANGED: Final = InputEffect.UNCHANGED
_CHANGED: Final = InputEffect.CHANGED


def take_plain_version(
    aggregate: NodeAggregate, pod: PodState, version: Version, tolerations: Tolerations
) -> InputEffect | None:
    """Take in a newer version of a pod that is bound here, runs, and is no mirror pod.

    Args:
        aggregate: of the node.
        pod: the known pod.
        version: of the event.
        tolerations: the known ones, or edited ones. A move of seconds is no edit (`is_same_in_force`): leave it out.

    Returns:
        `UNCHANGED` if that was all; `CHANGED` if the tolerations are others: call `edit_tolerations` next; `None` if
        the change is not plain, so that `apply_pod` has to decide it. Then nothing is taken in.
    """
    earlier = pod.version
    if pod.exemptions or not isinstance(version, int) or not isinstance(earlier, int) or version <= earlier:
        return None
    known = pod.tolerations
    if tolerations is known or tolerations == known:
        pod.version = version
        return _UNCHANGED
    if has_to_decide(aggregate, pod):
        return None
    pod.version = version
    return _CHANGED


def edit_tolerations(
    aggregate: NodeAggregate, pod: PodState, tolerations: Tolerations, at_us: int
) -> tuple[bytes, bytes]:
    """Replace the tolerations of a pod for which nothing is due, from `at_us` on; returns its row, key and value."""
    pod.tolerations = tolerations
    pod.tolerations_since_us = at_us
    return row_key(_POD, aggregate.key, pod.uid), pod_value(pod)
