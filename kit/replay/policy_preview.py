"""What brakes and policies would make of a preview: a partition takes the changed nodes over, and time goes on.

So the rules, the holds and the order of those that wait are the service's own. Each eviction succeeds at once, and its
pod is gone a second later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.simulated_executor import SimulatedExecutor
from evictstream.kit.replay.standing_holds import StandingHold
from evictstream.kit.replay.virtual_partition import VirtualPartition
from evictstream.models.eviction import NodeAggregate, PodState, RowKind
from evictstream.models.eviction.node_rows import node_value
from evictstream.models.eviction.pod_rows import eviction_value, pod_value
from evictstream.models.eviction.row_keys import row_key
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.shapes import POD_GROUP_LABEL
from evictstream.models.kubernetes.traits import NO_TRAITS
from evictstream.models.messages.command import decode_command
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.worker.service_config import partition_config

if TYPE_CHECKING:
    from evictstream.streams.settings import Settings


class GovernedFate(NamedTuple):
    """What becomes of a pod that has to leave.

    Attributes:
        issued_us: when its eviction is issued, microseconds since 1970; None if it is not by the end of the look ahead.
        hold: what holds it then; None if nothing does.
    """

    issued_us: int | None
    hold: StandingHold | None


class GovernedPreview(NamedTuple):
    """What becomes of all of them.

    Attributes:
        seconds: how far it looks ahead.
        fates: by UID of the pod; those that stay, and those whose deadline lies behind the end, have none.
    """

    seconds: int
    fates: Mapping[str, GovernedFate]


def governed_preview(
    settings: Settings, nodes: Iterable[NodeAggregate], steering: RecordedSteering, *, at_us: int, seconds: int
) -> GovernedPreview:
    """Look ahead.

    Args:
        settings: whose rules and limits count.
        nodes: of one cluster, as the change leaves them.
        steering: what stands all the time; buckets of limits begin empty.
        at_us: when the change is seen, microseconds since 1970.
        seconds: how far to look.
    """
    config = partition_config(settings.model_copy(update={"topic_prefix": ""}), settings.max_record_bytes)
    kept, executor = list(nodes), SimulatedExecutor(fails_one_in=0)
    for node in kept:
        for pod in node.pods.values():
            executor.admit(_as_seen(node, pod), at_us)
    partition = VirtualPartition(0, config, executor, steering=steering)
    issued_us = {
        uid: at_us
        for node in kept
        for uid, pod in node.pods.items()
        if pod.eviction is not None and pod.eviction.issued_at_us is not None
    }
    for messages in (partition.take_over(_rows(kept), at_us), partition.advance(at_us + seconds * SECOND_US)):
        for message in messages:
            if message.topic == "commands":
                command = decode_command(message.value)
                if command.action is Action.EVICT:
                    issued_us.setdefault(command.pod_uid, instant_us(command.issued_at))
    fates = {uid: GovernedFate(one_us, None) for uid, one_us in issued_us.items()}
    for hold in partition.holds():
        fates.setdefault(hold.pod_uid, GovernedFate(None, hold))
    return GovernedPreview(seconds, fates)


def _as_seen(node: NodeAggregate, pod: PodState) -> bytes:
    """Write the event that has told of a pod what the service knows: a version with its epoch is a number too."""
    namespace, _, name = pod.address.partition("/")
    traits = pod.traits or NO_TRAITS
    owner = {"kind": traits.owner_kind, "name": traits.owner_name, "controller": True}
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": pod.uid,
        "resourceVersion": str(pod.version),
        "labels": {POD_GROUP_LABEL: traits.group} if traits.group else {},
        "ownerReferences": [owner] if traits.owner_kind else [],
    }
    spec = {"nodeName": node.name, "priority": traits.priority}
    object_ = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}
    return msgspec.json.encode({"type": "ADDED", "cluster": node.cluster, "object": object_})


def _rows(nodes: Iterable[NodeAggregate]) -> Iterator[tuple[bytes, bytes]]:
    for node in nodes:
        yield row_key(RowKind.NODE, node.key), node_value(node.node, ())
        for uid, pod in node.pods.items():
            yield row_key(RowKind.POD, node.key, uid), pod_value(pod)
            if pod.eviction is not None:
                yield row_key(RowKind.EVICTION, node.key, uid), eviction_value(pod.eviction)
