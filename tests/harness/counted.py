"""What a cluster's levels must be, by looking at each of its nodes and pods: slow, and in no step's way."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable
from typing import NamedTuple

from evictstream.models.eviction import Eviction, EvictionState, NodeAggregate, Outcome, PodState
from evictstream.models.eviction.levels import ClusterLevels, Levels
from evictstream.models.instants import instant_text, instant_us
from evictstream.models.kubernetes import NOT_READY, UNREACHABLE
from evictstream.models.messages.fleet import DeadlineBucket, EvictionCounts, NodeCounts
from evictstream.models.messages.workload import FleetWorkload

MINUTE_US = 60_000_000
BUCKETS = 30
STEPS = 16
FAILED = (Outcome.FAILED, Outcome.OBSOLETE, Outcome.REFUSED)


def nodes_anew(aggregates: Iterable[NodeAggregate]) -> NodeCounts:
    """Count nodes by the keys of their taints."""
    found: collections.Counter[str] = collections.Counter()
    for aggregate in aggregates:
        node = aggregate.node
        if (node is None and aggregate.pods) or (node is not None and node.is_undecidable):
            found["unknown"] += 1
        elif node is not None:
            is_sick = any(state.taint.key in (NOT_READY, UNREACHABLE) for state in node.taints)
            found["unhealthy" if is_sick else "healthy"] += 1
            found["tainted"] += bool(node.taints)
    return NodeCounts(**{name: found[name] for name in NodeCounts.__struct_fields__})


def evictions_anew(aggregates: Iterable[NodeAggregate], now_us: int) -> EvictionCounts:
    """Count open evictions; nothing is held."""
    states: collections.Counter[str] = collections.Counter()
    minutes: collections.Counter[int] = collections.Counter()
    owed: list[int] = []
    timers: list[int] = []
    for eviction in open_of(aggregates):
        if eviction.built_in_us is not None:
            timers.append(eviction.built_in_us)
        if eviction.state is EvictionState.SCHEDULED:
            deadline_us = eviction.due.deadline_us
            if deadline_us > now_us:
                states["scheduled"] += 1
                minutes[(deadline_us // MINUTE_US + 1) * MINUTE_US] += 1
                continue
            states["due"] += 1
            owed.append(deadline_us)
            continue
        owed.append(eviction.owed_us)
        states[str(eviction.state)] += 1
        states["failing"] += eviction.state is EvictionState.RETRYING and eviction.outcome in FAILED
        states["observed"] += eviction.outcome is Outcome.OBSERVED
    ahead = sorted(minutes.items())
    return EvictionCounts(
        open=sum(states[name] for name in ("scheduled", "due", "issued", "retrying")),
        **{name: states[name] for name in ("scheduled", "due", "issued", "retrying", "failing", "observed")},
        held=0,
        deadlines=tuple(
            DeadlineBucket(before=instant_text(end_us), evictions=count) for end_us, count in ahead[:BUCKETS]
        ),
        later=sum(count for _, count in ahead[BUCKETS:]),
        held_by=(),
        oldest_due_at=instant_text(min(owed)) if owed else None,
        built_in_at=instant_text(min(timers)) if timers else None,
    )


def open_of(aggregates: Iterable[NodeAggregate]) -> Iterable[Eviction]:
    """Yield the open evictions."""
    for aggregate in aggregates:
        for pod in aggregate.pods.values():
            if pod.eviction is not None and pod.eviction.state is not EvictionState.DONE:
                yield pod.eviction


def differences(levels: ClusterLevels, aggregates: Iterable[NodeAggregate], now_us: int) -> str:
    """Say what the levels of a cluster, or of its zones, have wrong; empty if nothing."""
    known = list(aggregates)
    zones: dict[str, list[NodeAggregate]] = {}
    for aggregate in known:
        if aggregate.node is not None and aggregate.node.zone:
            zones.setdefault(aggregate.node.zone, []).append(aggregate)
    if levels.zones.keys() != zones.keys():
        return f"zones {set(levels.zones)} are counted, {set(zones)} are there"
    pairs: list[tuple[Levels, list[NodeAggregate]]] = [(levels, known)]
    pairs += [(levels.zones[zone], there) for zone, there in zones.items()]
    for part, there in pairs:
        counted, anew = (part.nodes(), part.evictions(now_us, 0)), (nodes_anew(there), evictions_anew(there, now_us))
        if counted != anew:
            return f"counted {counted}, anew {anew}"
    return ""


class Losses(NamedTuple):
    """What an owner's record has to say; instants are microseconds."""

    bound: int
    leaving: int
    held: int
    first_us: int
    last_us: int | None
    zones: tuple[str, ...]
    taints: tuple[str, ...]
    steps: tuple[tuple[int, int, int], ...]


def losses_of(record: FleetWorkload) -> Losses:
    """Read what an owner's record says."""
    return Losses(
        bound=record.pods.bound,
        leaving=record.pods.leaving,
        held=record.pods.held,
        first_us=instant_us(record.first_deadline),
        last_us=None if record.loses_all_at is None else instant_us(record.loses_all_at),
        zones=record.zones,
        taints=record.taints,
        steps=tuple((instant_us(step.at), instant_us(step.until or step.at), step.left) for step in record.steps),
    )


def workloads_anew(aggregates: Iterable[NodeAggregate], held: Collection[str]) -> dict[bytes, Losses]:
    """Count the pods of owners of which some leave, by the key of their records; `held` has UIDs of pods."""
    pods: dict[bytes, list[tuple[NodeAggregate, PodState]]] = {}
    for aggregate in aggregates:
        for pod in aggregate.pods.values():
            if pod.traits is not None and pod.traits.owner and not pod.exemptions:
                namespace = pod.address.partition("/")[0]
                key = f"{aggregate.cluster}/{namespace}/{pod.traits.owner}".encode()
                pods.setdefault(key, []).append((aggregate, pod))
    found = {}
    for key, bound in pods.items():
        leaving = [
            (one, pod)
            for one, pod in bound
            if pod.eviction is not None and pod.eviction.state is not EvictionState.DONE
        ]
        dues = [pod.eviction.due for _, pod in leaving if pod.eviction is not None]
        if not dues:
            continue
        found[key] = Losses(
            bound=len(bound),
            leaving=len(leaving),
            held=sum(pod.uid in held for _, pod in leaving),
            first_us=min(due.deadline_us for due in dues),
            last_us=max(due.deadline_us for due in dues) if len(leaving) == len(bound) else None,
            zones=tuple(sorted({one.node.zone for one, _ in leaving if one.node is not None and one.node.zone})),
            taints=tuple(sorted({due.taint.key for due in dues})),
            steps=steps_anew(
                len(bound), [pod.eviction.due.deadline_us for _, pod in leaving if pod.eviction and pod.uid not in held]
            ),
        )
    return found


def steps_anew(bound: int, deadlines: list[int]) -> tuple[tuple[int, int, int], ...]:
    """Say how many pods are left at each of the first 15 deadlines, and after the rest of them."""
    steps = [(at, at) for at in sorted(set(deadlines))]
    if len(steps) > STEPS:
        steps[STEPS - 1 :] = [(steps[STEPS - 1][0], steps[-1][1])]
    return tuple((at, until, bound - sum(each <= until for each in deadlines)) for at, until in steps)
