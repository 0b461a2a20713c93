"""What one policy says of the evictions that were issued: from its page and what was so, without any code of policies.

It knows what no clause allows. Whether an eviction should have been issued sooner it does not ask.
"""

from __future__ import annotations

import fnmatch
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tests.faults.objects import NOT_READY, UNREACHABLE
from tests.kit.replay.steered_incidents import SECOND_US, Incident, NodeThen, PodThen

DAY_SECONDS: Final = 86_400
DELETED_COUNTS_US: Final = 600 * SECOND_US
TERMINATES_US: Final = SECOND_US
"""So long after its `Evict` a pod is gone, where an executor is played."""
LOOKS_AROUND_US: Final = SECOND_US
HOURS_AHEAD: Final = {"UTC": 0.0, "Asia/Kolkata": 5.5}
"""Of zones without summer time."""
Spec = dict[str, Any]


class Said(NamedTuple):
    """One decision of a run, in the order in which they were made.

    Attributes:
        owed_us: since when the pod has to leave.
    """

    at_us: int
    kind: str
    eviction: str
    uid: str
    node: str
    key: str
    deadline_us: int
    owed_us: int

    @property
    def is_issue(self) -> bool:
        """Whether an `Evict` went with it."""
        return self.kind in {"Issued", "Retried"}


class NaivePolicy:
    """One policy that stands all the time."""

    def __init__(self, spec: Spec, incident: Incident, *, plays_executor: bool) -> None:
        self.spec = spec
        self.incident = incident
        self.plays_executor = plays_executor

    def objections(self, said: Sequence[Said]) -> Iterator[str]:
        """Say which evictions of a run this policy would not have let go when they went."""
        issued = [one for one in said if one.is_issue and self.selects(one)]
        for one in issued:
            yield from (f"{clause}: {one}" for clause in self._held(one))
        if "limit" in self.spec:
            yield from self._too_fast(issued)
        if "inFlight" in self.spec:
            yield from self._too_many(said)
        if "guard" in self.spec:
            yield from self._guarded(said)

    def selects(self, one: Said) -> bool:
        """Whether it is about an eviction."""
        return self._matches(self.spec.get("for", {}), one) and not (
            "except" in self.spec and self._matches(self.spec["except"], one)
        )

    def _matches(self, selection: Spec, one: Said) -> bool:
        pod, node = self.incident.pods[one.uid], self.node_of(one)
        facts = {
            **facts_of(node),
            "namespaces": [pod.namespace],
            "owners": [pod.owner, pod.owner.partition("/")[0]] if pod.owner else [],
            "taints": [one.key],
        }
        below = selection.get("priority", {}).get("below")
        return _match(selection, facts) and (below is None or (pod.priority or 0) < int(below))

    def node_of(self, one: Said) -> NodeThen:
        """Give the node of an eviction, as it was then."""
        return self.incident.nodes_at(one.at_us)[self.incident.pods[one.uid].cluster, one.node]

    def _held(self, one: Said) -> Iterator[str]:
        since_us = self.node_of(one).taints.get(one.key)
        if since_us is None:
            yield "no such taint"
            return
        if self.spec.get("observe"):
            yield "observe"
        if one.at_us < since_us + self.spec.get("settleSeconds", 0) * SECOND_US:
            yield "settle"
        if "guard" in self.spec and one.at_us < since_us + LOOKS_AROUND_US:
            yield "guard looks around"
        hold = self.spec.get("hold", {})
        if one.at_us >= one.owed_us + hold.get("atMostSeconds", DAY_SECONDS) * SECOND_US:
            return
        if "outsideOf" in hold and not self._is_open(hold, one):
            yield "window"
        if "while" in hold and (self.spec.get("for", {}).get("taints") or one.key in (NOT_READY, UNREACHABLE)):
            until_us = self._outage_until_us(hold["while"], one)
            share_us = _share_us(one.uid, hold.get("spreadSeconds", 60)) if one.kind == "Issued" else 0
            if until_us is not None and one.owed_us <= until_us and one.at_us < until_us + share_us:
                yield "outage"

    def _is_open(self, hold: Spec, one: Said) -> bool:
        """Whether a window is open; what was due before it opened goes over its beginning."""
        spans = sorted(span for window in hold["outsideOf"] for span in _spans(window, one.at_us))
        merged: list[list[int]] = []
        for begin_us, end_us in spans:
            if merged and begin_us <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end_us)
            else:
                merged.append([begin_us, end_us])
        found = [span for span in merged if span[0] <= one.at_us < span[1]]
        if not found:
            return False
        from_us, to_us = found[0]
        if one.kind != "Issued" or one.owed_us >= from_us:
            return True
        half_seconds = (to_us - from_us) // 2 // SECOND_US
        return one.at_us >= from_us + _share_us(one.uid, min(hold.get("spreadSeconds", 60), half_seconds))

    def _outage_until_us(self, condition: Spec, one: Said) -> int | None:
        """When the last outage ended by the instant of an eviction, just after it if it goes on; None if none was."""
        cluster, zone = self.incident.pods[one.uid].cluster, self.node_of(one).zone
        instants = [at_us for at_us, _ in self.incident.nodes if at_us <= one.at_us]
        instants += [at_us + DELETED_COUNTS_US for at_us in instants if at_us + DELETED_COUNTS_US <= one.at_us]
        until_us, is_out = None, False
        for at_us in sorted(instants):
            was_out, is_out = is_out, self._is_out(condition, cluster, zone, at_us)
            if was_out and not is_out:
                until_us = at_us
        return one.at_us + 1 if is_out else until_us

    def _is_out(self, condition: Spec, cluster: str, zone: str, at_us: int) -> bool:
        nodes = [one for (where, _), one in self.incident.nodes_at(at_us).items() if where == cluster]
        if "zones" in condition:
            there = [one for one in nodes if one.left_us is None]
            return bool(there) and all(one.is_unhealthy for one in there)
        here = [one for one in nodes if one.zone == zone and _counts(one, at_us)]
        sick = sum(one.is_unhealthy for one in here)
        of_zone = condition["zone"]
        share, least = int(of_zone["unhealthyPercent"]), int(of_zone.get("atLeast", 3))
        return sick >= least and sick * 100 // max(1, len(here)) >= share

    def _scope(self, limit: Spec, one: Said) -> tuple[str, ...]:
        pod, node = self.incident.pods[one.uid], self.node_of(one)
        of: dict[str, tuple[str, ...]] = {
            "cluster": (),
            "zone": (node.zone,),
            "label": (node.rack,),
            "namespace": (pod.namespace,),
            "owner": (pod.namespace, pod.owner),
            "group": (pod.namespace, pod.group),
            "node": (node.name,),
        }
        return pod.cluster, *of[limit.get("per", "cluster")]

    def _too_fast(self, issued: Iterable[Said]) -> Iterator[str]:
        """Between two instants no more than rate * time + burst go."""
        limit = self.spec["limit"]
        seconds, burst = limit.get("inSeconds", 1), limit.get("burst", 1)
        by_scope: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for one in issued:
            by_scope[self._scope(limit, one)].append(one.at_us)
        for scope, instants in by_scope.items():
            for first, begin_us in enumerate(instants):
                for last in range(first, len(instants)):
                    span_us = instants[last] - begin_us
                    if last - first + 1 > span_us * limit["evictions"] / (seconds * SECOND_US) + burst:
                        yield f"limit {scope}: {last - first + 1} in {span_us / SECOND_US} s up to {instants[last]}"

    def _too_many(self, said: Iterable[Said]) -> Iterator[str]:
        """No more are in flight than there are slots, when one gets a slot."""
        limit = self.spec["inFlight"]
        flying: dict[str, tuple[Said, tuple[str, ...]]] = {}
        for one in said:
            if one.kind in {"Cancelled", "Withdrawn"}:
                flying.pop(one.eviction, None)
            if one.kind != "Issued" or not self.selects(one):
                continue
            scope = self._scope(limit, one)
            flying[one.eviction] = one, scope
            units = {
                self._unit(limit, other)
                for other, there in flying.values()
                if there == scope and self._is_flying(limit, other, one.at_us)
            }
            if len(units) > self._slots(limit, one):
                yield f"in flight {scope}: {units} at {one}"

    def _is_flying(self, limit: Spec, one: Said, at_us: int) -> bool:
        gone_us = self.incident.ends.get(one.uid, at_us + 1)
        if self.plays_executor:
            replaced_us = self._replaced_us(self.incident.pods[one.uid], one.at_us)
            gone_us = min((one.at_us + TERMINATES_US, *replaced_us))
        return at_us < gone_us and at_us < one.at_us + int(limit.get("countsSeconds", 1_800)) * SECOND_US

    def _replaced_us(self, pod: PodThen, from_us: int) -> Iterator[int]:
        """Yield when another pod got the name of one."""
        for uid, came_us in self.incident.begins.items():
            other = self.incident.pods[uid]
            if uid != pod.uid and other[:3] == pod[:3] and came_us >= from_us:
                yield came_us

    def _unit(self, limit: Spec, one: Said) -> tuple[str, ...]:
        pod = self.incident.pods[one.uid]
        if limit.get("of") == "nodes":
            return pod.cluster, one.node
        return (pod.namespace, pod.group) if limit.get("of") == "groups" and pod.group else (one.uid,)

    def _slots(self, limit: Spec, one: Said) -> int:
        counts: list[int] = [limit["count"]] if "count" in limit else []
        if "sharePercent" in limit:
            pod, node = self.incident.pods[one.uid], self.node_of(one)
            known = [
                other
                for other in self.incident.nodes_at(one.at_us).values()
                if other.cluster == pod.cluster
                and _counts(other, one.at_us)
                and (limit.get("per", "cluster") == "cluster" or other.zone == node.zone)
            ]
            counts.append(max(1, len(known) * limit["sharePercent"] // 100))
        return min(counts)

    def _guarded(self, said: Sequence[Said]) -> Iterator[str]:
        yield from NaiveGuard(self).objections(said)


class NaiveGuard:
    """Finds the incidents of a guard by counting all anew after whatever happens, never more than there are.

    Owners that lose all of their pods are not counted: `tests/streams/partition/test_guards_machine.py` has a model.
    """

    def __init__(self, policy: NaivePolicy) -> None:
        self._policy = policy
        self._guard: Spec = policy.spec["guard"]
        self._known: dict[str, Said] = {}  # the newest decision of each eviction
        self._done: set[str] = set()  # of these, those of pods that have left
        self._from_us: dict[tuple[str, str, str], int] = {}  # by cluster, key and part

    def objections(self, said: Sequence[Said]) -> Iterator[str]:
        """Say which evictions of a run were issued in an incident."""
        if self._guard.get("of") == "ownersLosingAll" or "releaseAfterSeconds" in self._guard:
            return
        happened: list[tuple[int, int, Said | None]] = [(at_us, 0, None) for at_us, _ in self._policy.incident.nodes]
        happened += [(one.at_us, number, one) for number, one in enumerate(said, start=1)]
        for at_us, _, one in sorted(happened, key=lambda each: each[:2]):
            if one is not None and one.is_issue and self._policy.selects(one):
                yield from (f"guard: {one}" for _ in self._holding(one))
            if one is not None:
                self._take(one)
            self._look(at_us)

    def _take(self, one: Said) -> None:
        if one.kind == "Cancelled":
            self._known.pop(one.eviction, None)
        elif one.kind == "Completed":
            self._done.add(one.eviction)
        elif one.kind != "Reported":
            self._known[one.eviction] = one

    def _holding(self, one: Said) -> Iterator[int]:
        node = self._policy.node_of(one)
        from_us = self._from_us.get((node.cluster, one.key, self._part(node)))
        if from_us is not None and node.taints[one.key] >= from_us:
            yield from_us

    def _part(self, node: NodeThen) -> str:
        by = self._guard.get("by", "taintKey")
        return node.zone if by == "zone" else node.name if by == "node" else ""

    def _look(self, at_us: int) -> None:
        """End incidents whose taints are gone, and begin those that exceed the guard."""
        nodes = [one for one in self._policy.incident.nodes_at(at_us).values() if self._selects(one)]
        there: defaultdict[tuple[str, str, str], list[tuple[int, NodeThen]]] = defaultdict(list)
        for node in nodes:
            for key, since_us in node.taints.items() if node.left_us is None else ():
                if self._selects_key(node, key):
                    there[node.cluster, key, self._part(node)].append((since_us, node))
        self._from_us = {
            place: from_us
            for place, from_us in self._from_us.items()
            if any(since_us >= from_us for since_us, _ in there.get(place, ()))
        }
        for place, arrivals in there.items():
            known = sum((one.cluster, self._part(one)) == (place[0], place[2]) and _counts(one, at_us) for one in nodes)
            limits = [self._guard["count"]] if "count" in self._guard else []
            if "sharePercent" in self._guard:
                limits.append(known * self._guard["sharePercent"] // 100)
            weights = [(since_us, *self._weights(node, place[1])) for since_us, node in arrivals]
            if not any(leaving for _, _, leaving in weights):
                continue
            for end_us, _, _ in weights:
                within = [
                    (since_us, weight)
                    for since_us, weight, _ in weights
                    if 0 <= end_us - since_us <= self._guard["withinSeconds"] * SECOND_US
                ]
                if sum(weight for _, weight in within) > min(limits):
                    begin_us = min(since_us for since_us, _ in within)
                    self._from_us[place] = min(begin_us, self._from_us.get(place, begin_us))

    def _weights(self, node: NodeThen, key: str) -> tuple[int, int]:
        """How much a node counts, and how many pods still have to leave it for a taint."""
        leaving = [
            one
            for one in self._known.values()
            if (self._policy.incident.pods[one.uid].cluster, one.node, one.key) == (node.cluster, node.name, key)
            and one.at_us >= node.taints[key]
        ]
        is_of_nodes = self._guard.get("of", "nodes") == "nodes"
        return 1 if is_of_nodes else len(leaving), sum(one.eviction not in self._done for one in leaving)

    def _selects(self, node: NodeThen) -> bool:
        """Whether it counts a node, whatever its taints."""
        spec, facts = self._policy.spec, facts_of(node)
        excluded = spec.get("except", {})
        is_excluded = bool(excluded) and not excluded.keys() & {"namespaces", "owners", "priority", "taints"}
        return _match(spec.get("for", {}), facts) and not (is_excluded and _match(excluded, facts))

    def _selects_key(self, node: NodeThen, key: str) -> bool:
        spec, facts = self._policy.spec, {**facts_of(node), "taints": [key]}
        excluded = spec.get("except", {})
        is_excluded = bool(excluded) and not excluded.keys() & {"namespaces", "owners", "priority"}
        return _match(spec.get("for", {}), facts) and not (is_excluded and _match(excluded, facts))


def facts_of(node: NodeThen) -> dict[str, list[str]]:
    """Give what a selection says of nodes."""
    zones = [node.zone] if node.zone else []
    return {"clusters": [node.cluster], "nodes": [node.name], "zones": zones, "nodeLabels": [f"rack={node.rack}"]}


def _match(selection: Spec, facts: dict[str, list[str]]) -> bool:
    """Whether each list of a selection has a pattern that fits; what `facts` do not have is passed over."""
    return all(
        any(fnmatch.fnmatchcase(fact, pattern) for fact in facts[name] for pattern in patterns)
        for name, patterns in selection.items()
        if name in facts
    )


def _counts(node: NodeThen, at_us: int) -> bool:
    return node.left_us is None or at_us < node.left_us + DELETED_COUNTS_US


def _share_us(uid: str, seconds: int) -> int:
    return zlib.crc32(uid.encode()) * seconds * SECOND_US // 2**32


def _spans(window: Spec, at_us: int) -> Iterator[tuple[int, int]]:
    """Yield when a window of each day is open, the day before, that day and the next one."""
    ahead = int(HOURS_AHEAD[window["zone"]] * 3_600)
    midnight = (at_us // SECOND_US + ahead) // DAY_SECONDS * DAY_SECONDS - ahead
    begins, ends = (int(text[:2]) * 3_600 + int(text[3:]) * 60 for text in (window["begins"], window["ends"]))
    for day in (-1, 0, 1):
        begin = midnight + day * DAY_SECONDS + begins
        yield begin * SECOND_US, (begin + ((ends - begins) % DAY_SECONDS or DAY_SECONDS)) * SECOND_US
