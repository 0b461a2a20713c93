"""What nodes that fall silent lose, whatever the pace of the controller and whatever the order of its nodes.

One number would promise too much. The node lifecycle controller computes the states of zones at the end of a round
(semantics.md 8.4), which takes seconds if it writes many nodes and pods; until then the queues go on at the old rates.
So a zone that ends up protected may lose no pods or all of them: that hangs on the load of the API server, and on
chance. And upstream a round goes through the nodes in the random order of a Go map, so of the nodes of a zone any may
be the first to be tainted, or the last. To simulate every order would take forever. Four are played, because order does
three things and each can be bounded:

- **Which** nodes are tainted. The queue of a zone asks nothing of a node but when it came. So what happens to the first
  node of a zone happens to whichever node comes first, and what is played once is told of all silent nodes of the zone.
- **When** a queue fills while a round writes. It fills soonest where silent nodes come first, those with few pods to
  write at their head; and latest where they come last, those with many pods at their head.
- **Whose** queue is worked first: one pass handles the zones in the order in which they were seen, and each waits for
  the writes of those before. Two orders go zone by zone, one forward and one backward.

Of 290 random clusters, each in four random orders at four paces, one order gave a number outside the range.

The cost is that of the simulated runs, and otherwise near linear in nodes and pods.
"""

import dataclasses
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from evictstream.kit.upstream.lifecycle import ClusterChange, TaintsChanged, WatchedNode
from evictstream.kit.upstream.lifecycle.zones import zone_key
from evictstream.kit.upstream.taint_eviction import stay_us
from evictstream.kit.upstream.taint_eviction.cache import address_of
from evictstream.models.kubernetes.matching import tolerations_in_use
from evictstream.models.kubernetes.objects import Pod
from evictstream.models.kubernetes.taints import NO_EXECUTE, UNREACHABLE, Taint

Spans: TypeAlias = Mapping[str, Sequence[int]]

_SILENT: Final = (Taint(UNREACHABLE, effect=NO_EXECUTE),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SilenceRange:
    """The ends of what may happen; between them every number is possible.

    Neither end is a proof: only these paces were simulated.

    Attributes:
        plays: how often the outage was played.
        taints: the fewest and the most nodes that get the health taint.
        evictions: the fewest and the most pods that are evicted.
        surely_evicted: addresses of pods that are evicted in every play, also if their node is the last of its zone.
        possibly_evicted: addresses of pods that are evicted in some play, if their node is the first of its zone.
    """

    plays: int
    taints: tuple[int, int]
    evictions: tuple[int, int]
    surely_evicted: frozenset[str]
    possibly_evicted: frozenset[str]


def orders(nodes: Sequence[WatchedNode], silent: frozenset[str], pods: Iterable[Pod]) -> list[list[WatchedNode]]:
    """Give the orders of all nodes that bound the others, as said above."""
    counts = Counter(pod.node_name for pod in pods)
    few_first = sorted((node for node in nodes if node.name in silent), key=lambda node: counts[node.name])
    others = [node for node in nodes if node.name not in silent]
    soonest, latest = [*few_first, *others], [*others, *reversed(few_first)]
    by_zone = sorted(soonest, key=lambda node: zone_key(node.labels))
    backward = sorted(soonest, key=lambda node: zone_key(node.labels), reverse=True)
    return [soonest, latest, by_zone, backward]


def silence_range(
    plays: Iterable[Callable[[], Iterable[ClusterChange]]],
    nodes: Sequence[WatchedNode],
    pods: Sequence[Pod],
    *,
    until_us: int,
) -> SilenceRange:
    """Play an outage several times, and say between which ends everything lies.

    Args:
        plays: each plays the outage, at its pace and in its order, and gives all changes in the order of their times.
        nodes: the silent ones, with the labels that tell their zones.
        pods: those on them, with their tolerations, as they are all the time.
        until_us: the end; what is later does not count.
    """
    zones = _Zones(nodes, pods)
    taints, evictions = [], []
    for play in plays:
        spans = zones.by_zone(_spans(play(), until_us))
        zones.take(spans)
        taints.append(sum(map(len, spans.values())))
        evictions.append(zones.evictions(spans))
    return SilenceRange(
        plays=len(taints),
        taints=(min(taints), max(taints)),
        evictions=(min(low for low, _ in evictions), max(high for _, high in evictions)),
        surely_evicted=frozenset(zones.surely()),
        possibly_evicted=frozenset(zones.possibly()),
    )


def _spans(changes: Iterable[ClusterChange], until_us: int) -> dict[str, int]:
    """Return the longest time in one piece that each node carries a health NoExecute taint; others are left out."""
    carried: defaultdict[str, set[str]] = defaultdict(set)
    since: dict[str, int] = {}
    spans: dict[str, int] = {}
    for change in changes:
        if not isinstance(change, TaintsChanged) or change.at_us > until_us:
            continue
        keys = carried[change.node]
        keys |= {taint.key for taint in change.added if taint.effect == NO_EXECUTE}
        keys -= {taint.key for taint in change.removed if taint.effect == NO_EXECUTE}
        if keys:
            since.setdefault(change.node, change.at_us)
        elif change.node in since:
            spans[change.node] = max(spans.get(change.node, 0), change.at_us - since.pop(change.node))
    for node, since_us in since.items():
        spans[node] = max(spans.get(node, 0), until_us - since_us)
    return spans


class _Zones:
    """Silent nodes by zone, and how long their pods may stay."""

    def __init__(self, nodes: Sequence[WatchedNode], pods: Sequence[Pod]) -> None:
        self._zone_of = {node.name: zone_key(node.labels) for node in nodes}
        self._sizes = Counter(self._zone_of.values())
        self._longest: dict[str, int] = {}
        self._shortest: dict[str, int | None] = {}
        self._stays = [(pod, stay) for pod in pods if (stay := _stay_us(pod)) is not None]
        on_node: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        for pod, stay in self._stays:
            on_node[self._zone_of[pod.node_name], stay][pod.node_name] += 1
        self._sums = {place: _sums(sorted(counts.values())) for place, counts in on_node.items()}

    def by_zone(self, spans: Mapping[str, int]) -> Spans:
        """Sort what happened to silent nodes, shortest first: which of a zone's nodes it was is chance."""
        counts: dict[str, list[int]] = {zone: [] for zone in self._sizes}
        for name, span in sorted(spans.items(), key=lambda item: item[1]):
            if name in self._zone_of:
                counts[self._zone_of[name]].append(span)
        return counts

    def take(self, spans: Spans) -> None:
        """Take in how long nodes carried the taint in a play."""
        for zone, counts in spans.items():
            if counts:
                self._longest[zone] = max(counts[-1], self._longest.get(zone, 0))
            last = counts[0] if len(counts) == self._sizes[zone] else None
            before = self._shortest.get(zone, last)
            self._shortest[zone] = None if last is None or before is None else min(last, before)

    def evictions(self, spans: Spans) -> tuple[int, int]:
        """Return the fewest and the most pods that go in a play, whichever nodes of a zone come first."""
        fewest = most = 0
        for (zone, stay), sums in self._sums.items():
            reached = len(spans[zone]) - bisect_left(spans[zone], stay)
            with_pods = len(sums) - 1
            fewest += sums[max(0, reached - (self._sizes[zone] - with_pods))]
            most += sums[-1] - sums[max(0, with_pods - reached)]
        return fewest, most

    def surely(self) -> Iterable[str]:
        """Name the pods that go although their node comes last."""
        return self._reached({zone: span for zone, span in self._shortest.items() if span is not None})

    def possibly(self) -> Iterable[str]:
        """Name the pods that go if their node comes first."""
        return self._reached(self._longest)

    def _reached(self, spans: Mapping[str, int]) -> Iterable[str]:
        return (address_of(pod) for pod, stay in self._stays if spans.get(self._zone_of[pod.node_name], -1) >= stay)


def _sums(counts: Sequence[int]) -> list[int]:
    """Add up the smallest 0, 1, 2, ... of counts in ascending order."""
    sums = [0]
    for count in counts:
        sums.append(sums[-1] + count)
    return sums


def _stay_us(pod: Pod) -> int | None:
    """Return how long a pod may stay on a silent node; None means forever."""
    in_use = tolerations_in_use(pod.tolerations, _SILENT)
    return 0 if in_use is None else stay_us(in_use)
