"""One pod, as its rows have it: where it is, what it tolerates, and why it has to leave or need not."""

from __future__ import annotations

import msgspec

from evictstream.kit.replay.why_nothing import PodCase, why_nothing
from evictstream.kit.see.evictions import ListedEviction, Silences, of_node
from evictstream.kit.see.steering import UNSTEERED, Steering
from evictstream.kit.see.stored_state import StoredNode
from evictstream.models.eviction import PodState, RuleParameters
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.tolerations import Toleration


class ListedPod(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One pod.

    Attributes:
        since: when it was first seen on its node.
        case: how it stands with it, in a word.
        text: the same as a sentence.
        tolerations: in the pod's order; none where they are beyond a limit.
        eviction: the pending one.
    """

    cluster: str
    namespace: str
    pod: str
    pod_uid: str
    node: str
    since: str
    case: PodCase
    text: str
    tolerations: tuple[Toleration, ...] = ()
    eviction: ListedEviction | None = None


def listed_pods(
    stored: StoredNode, now_us: int, silences: Silences, rules: RuleParameters, steering: Steering = UNSTEERED
) -> list[ListedPod]:
    """Describe the pods of a node: those with a pending eviction first, the first to be done first, then by name."""
    pending = {one.pod_uid: one for one in of_node(stored, now_us, silences, steering)}
    pods = [
        listed_pod(stored, pod, rules=rules, eviction=pending.get(pod.uid)) for pod in stored.aggregate.pods.values()
    ]
    last = "~"  # behind every instant
    return sorted(pods, key=lambda one: (one.eviction.at if one.eviction else last, one.namespace, one.pod))


def listed_pod(
    stored: StoredNode, pod: PodState, *, rules: RuleParameters, eviction: ListedEviction | None
) -> ListedPod:
    """Describe one pod of a node."""
    namespace, _, name = pod.address.partition("/")
    why = why_nothing(stored.aggregate, pod.uid, rules)
    return ListedPod(
        cluster=stored.aggregate.cluster,
        namespace=namespace,
        pod=name,
        pod_uid=pod.uid,
        node=stored.aggregate.name,
        since=instant_text(pod.since_us),
        case=why.case,
        text=why.text,
        tolerations=pod.tolerations,
        eviction=eviction,
    )
