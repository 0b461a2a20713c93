"""The steps about what a complete listing does not hold: it is gone, and its deletion was missed (semantics.md 12.3).

Each object is removed as a `DELETED` with the version of the listing would remove it. So nothing that is newer than the
listing is touched, and applying a listing twice changes nothing the second time.
"""

from collections.abc import Iterator

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.node_steps import node_slices
from evictstream.models.eviction.pod_steps import apply_pod
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.step import Changes
from evictstream.models.kubernetes.objects import Node, Pod
from evictstream.models.messages.events import NodeEvent, PodEvent
from evictstream.models.messages.signals import Listed
from evictstream.models.messages.vocabulary import EventType


def unlisted_node_slices(aggregate: NodeAggregate, listed: Listed, rules: RuleParameters) -> Iterator[Changes]:
    """Remove the node if a listing of nodes does not hold it, and no newer state of it is known.

    Args:
        aggregate: of a node in the listing's range; changed in place.
        listed: from the nodes topic.
        rules: the numbers.

    Yields:
        The changes, slice by slice: none if the node is listed or not known, `STALE` if it is newer.
    """
    node = aggregate.node
    if node is None or node.uid in listed.uids.get(aggregate.name, ()) or not listed.covers_uid(node.uid):
        return
    event = NodeEvent(
        type=EventType.DELETED,
        node=Node(name=aggregate.name, uid=node.uid, resource_version=listed.resource_version),
        at_us=listed.at_us,
        origin=listed.origin,
        epoch=listed.epoch,
    )
    yield from node_slices(aggregate, event, rules)


def unlisted_pod_slices(aggregate: NodeAggregate, listed: Listed, rules: RuleParameters) -> Iterator[Changes]:
    """Remove the pods of a node that a listing of pods does not hold there, and of which no newer state is known.

    Args:
        aggregate: of a node in the listing's range; changed in place.
        listed: from the pods topic.
        rules: the numbers.

    Yields:
        The changes, one for each pod that is not listed: `STALE` if it is newer.
    """
    present = frozenset(listed.uids.get(aggregate.name, ()))
    for pod in [pod for uid, pod in aggregate.pods.items() if uid not in present and listed.covers_uid(uid)]:
        namespace, _, name = pod.address.partition("/")
        event = PodEvent(
            type=EventType.DELETED,
            pod=Pod(
                namespace=namespace,
                name=name,
                uid=pod.uid,
                resource_version=listed.resource_version,
                node_name=aggregate.name,
            ),
            at_us=listed.at_us,
            origin=listed.origin,
            epoch=listed.epoch,
        )
        yield apply_pod(aggregate, event, rules)
