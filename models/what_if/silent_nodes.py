"""What Kubernetes' own controllers would do if nodes fell silent: fewest and most taints and evictions.

The node lifecycle controller decides whether a zone is protected while it is busy writing, so the answer is a range
(semantics.md 8.6).
"""

from __future__ import annotations

import dataclasses
from typing import Final

from evictstream.models.kubernetes.objects import Pod
from evictstream.models.upstream.lifecycle import Condition, RequestPace, WatchedNode, WatchedPod, plausible_paces
from evictstream.models.upstream.silence import play_silence
from evictstream.models.upstream.taint_range import TaintRange, taint_range
from evictstream.models.what_if.change import NodeChoice
from evictstream.models.what_if.facts import ZONE_LABELS
from evictstream.models.what_if.preview import KnownCluster, KnownNode

FEW_NODES: Final = 300
"""Up to so many, all plausible paces are played, which takes half a minute; of more, the extremes."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SilencePreview:
    """What would happen.

    Attributes:
        silent: names of the nodes that fall silent.
        nodes: of the cluster.
        pods: on the silent nodes, those that could be evicted.
        outcome: at each pace that was played; pods by address.
    """

    silent: frozenset[str]
    nodes: int
    pods: int
    outcome: TaintRange


def preview_silence(known: KnownCluster, choice: NodeChoice, *, until_us: int) -> SilencePreview:
    """Let the chosen nodes fall silent for good, with the flags of the release.

    Args:
        known: the cluster as it is; nodes count as ready.
        choice: which nodes.
        until_us: the end, microseconds after their last heartbeat.
    """
    nodes = {name: node for name, node in known.nodes.items() if node.aggregate.node is not None}
    silent = frozenset(name for name, node in nodes.items() if choice.chooses(name, node.facts))
    pods = [pod for name in sorted(silent) for pod in _pods_of(name, nodes[name])]
    watched = [_watched(name, node) for name, node in sorted(nodes.items())]
    marked = [WatchedPod(pod.namespace, pod.name, pod.node_name) for pod in pods]
    return SilencePreview(
        silent=silent,
        nodes=len(nodes),
        pods=len(pods),
        outcome=taint_range(
            lambda pace: play_silence(watched, marked, silent, until_us=until_us, pace=pace),
            pods,
            until_us,
            None if len(nodes) <= FEW_NODES else _extremes(),
        ),
    )


def _extremes() -> tuple[RequestPace, ...]:
    """Give the release's pace and the slowest one, which leaves the queues the most time."""
    return RequestPace(), plausible_paces()[-1]


def _watched(name: str, node: KnownNode) -> WatchedNode:
    zone = node.facts.zone
    labels = {} if zone is None else {ZONE_LABELS[0]: zone}
    return WatchedNode(name, labels=labels, conditions=(Condition("Ready", "True"),))


def _pods_of(name: str, node: KnownNode) -> list[Pod]:
    found = []
    for pod in node.aggregate.pods.values():
        namespace, _, own_name = pod.address.partition("/")
        if not pod.exemptions:
            found.append(Pod(namespace, own_name, pod.uid, "1", node_name=name, tolerations=pod.tolerations))
    return found
