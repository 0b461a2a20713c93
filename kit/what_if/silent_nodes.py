"""What Kubernetes' own controllers would do if nodes fell silent: fewest and most taints and evictions.

The node lifecycle controller decides whether a zone is protected while it is busy writing, so the answer is a range
(semantics.md 8.6).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Final

from evictstream.kit.upstream.lifecycle import (
    INSTANT,
    Condition,
    LifecycleSettings,
    RequestPace,
    WatchedNode,
    WatchedPod,
    plausible_paces,
)
from evictstream.kit.upstream.silence import play_silence
from evictstream.kit.upstream.silence_range import SilenceRange, orders, silence_range
from evictstream.kit.what_if.change import NodeChoice
from evictstream.kit.what_if.preview import PreviewCluster, PreviewNode
from evictstream.models.kubernetes.objects import Pod

FEW_NODES: Final = 100
"""Up to so many, all plausible paces are played in four orders, which takes half a minute. Of more, the extremes of
both: a thousand nodes take as long."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SilencePreview:
    """What would happen.

    Attributes:
        silent: names of the nodes that fall silent.
        nodes: of the cluster.
        unlabelled: of these, whose labels are not all known: their zones may be others.
        pods: pods on the silent nodes that could be evicted.
        outcome: the ends of what may happen; pods by address.
    """

    silent: frozenset[str]
    nodes: int
    unlabelled: int
    pods: int
    outcome: SilenceRange


def preview_silence(
    cluster: PreviewCluster,
    choice: NodeChoice,
    *,
    until_us: int,
    settings: LifecycleSettings | None = None,
    pace: RequestPace | None = None,
) -> SilencePreview:
    """Let the chosen nodes fall silent for good.

    Args:
        cluster: as it is; nodes count as ready.
        choice: which nodes.
        until_us: the end, microseconds after their last heartbeat.
        settings: flags of the controller; the release's defaults if absent.
        pace: flags of its client; the release's defaults if absent.
    """
    nodes = {name: node for name, node in sorted(cluster.nodes.items()) if node.aggregate.node is not None}
    silent = frozenset(name for name, node in nodes.items() if choice.chooses(name, node.facts))
    pods = [pod for name in sorted(silent) for pod in _pods_of(name, nodes[name])]
    watched = [
        WatchedNode(name, labels=node.facts.labels, conditions=(Condition("Ready", "True"),))
        for name, node in nodes.items()
    ]
    marked = [WatchedPod(pod.namespace, pod.name, pod.node_name) for pod in pods]
    in_order = orders(watched, silent, pods)
    paces = plausible_paces(pace)
    if len(nodes) > FEW_NODES:
        in_order, paces = in_order[:2], (INSTANT, pace or RequestPace(), paces[-1])
    plays = [
        functools.partial(play_silence, order, marked, silent, until_us=until_us, settings=settings, pace=pace)
        for pace in paces
        for order in (in_order[:1] if pace == INSTANT else in_order)  # where nothing takes time, order does nothing
    ]
    return SilencePreview(
        silent=silent,
        nodes=len(nodes),
        unlabelled=sum(not node.facts.has_all_labels for node in nodes.values()),
        pods=len(pods),
        outcome=silence_range(plays, [node for node in watched if node.name in silent], pods, until_us=until_us),
    )


def _pods_of(name: str, node: PreviewNode) -> list[Pod]:
    pods = []
    for pod in node.aggregate.pods.values():
        namespace, _, own_name = pod.address.partition("/")
        if not pod.exemptions:
            pods.append(Pod(namespace, own_name, pod.uid, "1", node_name=name, tolerations=pod.tolerations))
    return pods
