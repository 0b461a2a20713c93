"""From a seed to a plan."""

from __future__ import annotations

import random
from dataclasses import replace

from evictstream.kit.oracle.records import InputTopic
from tests.faults.absurd import absurd_records
from tests.faults.braking import draw_brakes
from tests.faults.garbage import draw_garbage, misplaced, too_large
from tests.faults.moved_seconds import draw_built_in, moved
from tests.faults.numbers import NUMBERS, Numbers
from tests.faults.objects import NOT_READY, UNREACHABLE, Node, Pod, watch_event
from tests.faults.plan import Change, Fault, FaultKind, Plan, Shape
from tests.faults.scribe import Scribe
from tests.faults.stories import NodeLife, PodLife, draw_tolerations
from tests.faults.storms import draw_storms

SECOND_US = 1_000_000
MILLISECOND_US = 1000
VIRTUAL_START_US = 1_760_000_000 * SECOND_US  # some day of 2025; simulated runs start then
FEEDS: tuple[InputTopic, ...] = ("nodes", "pods")
BEAT_SECONDS = 1.0
BEFORE_SECONDS = 1.0  # the fleet is there; then it begins to change


def generate(
    seed: int, shape: Shape | None = None, *, start_at_us: int = VIRTUAL_START_US, numbers: Numbers = NUMBERS
) -> Plan:
    """Make the plan of a seed.

    Args:
        seed: any number; the same one gives the same plan, moved to `start_at_us`.
        shape: how large.
        start_at_us: when it starts, whole seconds in microseconds since 1970.
        numbers: the settings of the service.
    """
    shape = shape or Shape()
    chance = random.Random(seed)
    last_at_us = start_at_us + int((shape.active_seconds + 3) * SECOND_US)
    scribe = Scribe(chance, start_at_us, last_at_us)
    nodes: list[Node] = []
    clusters = [f"c{number}" for number in range(chance.randint(*shape.clusters))]
    numbers = replace(numbers, built_in=draw_built_in(seed))
    for cluster in clusters:
        nodes += live(chance, scribe, cluster, shape, start_at_us)
        if chance.random() < 0.5:
            _beat(chance, scribe, cluster, shape, start_at_us, numbers)
    faults = _faults(chance, shape)
    _spoil(chance, scribe, nodes, shape, start_at_us)
    for fault in faults:
        if fault.kind is FaultKind.RECORD_TOO_LARGE:
            at_us = start_at_us + int(fault.at_seconds * SECOND_US)
            scribe.raw(too_large(chance.choice(nodes), at_us, numbers.max_object_bytes + int(fault.amount)))
        elif fault.kind is FaultKind.ABSURD_RECORDS:
            for change in absurd_records(start_at_us + int(fault.at_seconds * SECOND_US)):
                scribe.raw(change)
    stormy, policies = draw_storms(seed, shape, start_at_us)
    changes = tuple(sorted((*scribe.changes, *stormy), key=lambda change: change.at_us))
    return Plan(
        seed=seed,
        shape=shape,
        start_at_us=start_at_us,
        changes=changes,
        faults=faults,
        numbers=numbers,
        brakes=draw_brakes(seed, shape, start_at_us),
        policies=policies,
    )


def live(chance: random.Random, scribe: Scribe, cluster: str, shape: Shape, start_at_us: int) -> list[Node]:
    """Let a cluster live; returns its nodes."""
    begin_us = start_at_us + int(BEFORE_SECONDS * SECOND_US)
    end_us = start_at_us + int(shape.active_seconds * SECOND_US)
    nodes: list[NodeLife] = []
    lives: list[NodeLife | PodLife] = []
    largest = shape.largest_window_seconds
    names = [f"n{number}" for number in range(chance.randint(*shape.nodes))]
    is_struck = chance.random() < 0.3
    last_us = chance.randrange((begin_us + end_us) // 2, end_us) if is_struck else end_us
    for number, name in enumerate(names):
        node = Node(cluster, name, f"{cluster}-node-{number}")
        born_us = start_at_us + chance.randrange(int(BEFORE_SECONDS * SECOND_US))
        nodes.append(NodeLife(chance, scribe, node, born_us))
        for pod_number in range(chance.randint(*shape.pods)):
            uid = f"{cluster}-{number}-pod-{pod_number}"
            tolerations = draw_tolerations(chance, largest)
            pod = Pod(cluster, "ns", f"p{number}-{pod_number}", uid, node.name, tolerations, moved_by=moved)
            pod.is_mirror = chance.random() < 0.04
            late_us = chance.randrange(end_us - start_at_us) if chance.random() < 0.2 else 0
            created_us = max(start_at_us, born_us + chance.randrange(-200, 800) * MILLISECOND_US) + late_us
            lives.append(PodLife(chance, scribe, pod, created_us, largest, names))
    lives += [node for node in nodes for _ in range(2)]
    turns = chance.randint(len(lives), 3 * len(lives))
    # One after the other in time, so that versions and lives agree; two at the same instant now and then.
    times = sorted(chance.randrange(begin_us + 900 * MILLISECOND_US, last_us) for _ in range(turns))
    free_us: dict[int, int] = {}
    for at_us in times:
        life = chance.choice(lives)
        at_us = max(at_us, free_us.get(id(life), 0))  # noqa: PLW2901 - moved behind a flap that is still going on
        if at_us < last_us:
            life.turn(at_us)
            free_us[id(life)] = at_us + (5 * SECOND_US if isinstance(life, NodeLife) and chance.random() < 0.1 else 0)
    if is_struck:
        _zone_outage(chance, nodes, last_us)
    return [node.node for node in nodes]


def _zone_outage(chance: random.Random, nodes: list[NodeLife], at_us: int) -> None:
    """All nodes of a cluster at once, each a little later than the one before; they come back together.

    Nothing else is done to them from then on, but faults go on.
    """
    key = chance.choice([NOT_READY, UNREACHABLE])
    back_us = at_us + chance.randrange(500, 4000) * MILLISECOND_US
    for number, life in enumerate(nodes):
        life.strike(key, at_us + number * 20 * MILLISECOND_US, back_us)


def _beat(
    chance: random.Random, scribe: Scribe, cluster: str, shape: Shape, start_at_us: int, numbers: Numbers
) -> None:
    """Let a feed send heartbeats on both topics until the end; some are silent for a while."""
    total_us = int((shape.active_seconds + shape.quiet_seconds) * SECOND_US)
    silent_from_us = silent_to_us = 0
    if chance.random() < 0.4:
        silent_from_us = chance.randrange(int(shape.active_seconds * SECOND_US))
        silent_to_us = silent_from_us + int(numbers.feed_silence_limit_seconds * chance.uniform(1.2, 2.0) * SECOND_US)
    topics = chance.choice([("nodes", "pods"), ("pods",), ("nodes",)]) if silent_to_us else ("nodes", "pods")
    beat_us = int(BEAT_SECONDS * SECOND_US)
    value = watch_event(cluster, "HEARTBEAT", None, None)
    for at_us in range(0, total_us, beat_us):
        for topic in FEEDS:
            if topic in topics and silent_from_us <= at_us < silent_to_us:
                continue
            scribe.raw(Change(start_at_us + at_us, topic, cluster.encode(), value))


def _spoil(chance: random.Random, scribe: Scribe, nodes: list[Node], shape: Shape, start_at_us: int) -> None:
    """Put records in between that cannot be read."""
    for _ in range(chance.choice([0, 0, 1, 3])):
        at_us = start_at_us + chance.randrange(int(shape.active_seconds * SECOND_US))
        scribe.raw(draw_garbage(chance, chance.choice(nodes), at_us))
    if chance.random() < 0.1:
        at_us = start_at_us + chance.randrange(int(shape.active_seconds * SECOND_US))
        nowhere = Node("c0", f"nowhere-{chance.randrange(1000)}", f"misplaced-{at_us}")
        scribe.raw(misplaced(nowhere, at_us, chance.randrange(shape.partitions)))


def _faults(chance: random.Random, shape: Shape) -> tuple[Fault, ...]:
    found = []
    for _ in range(chance.randint(*shape.faults)):
        kind = chance.choice(shape.kinds)
        at_seconds = round(chance.uniform(0.5, shape.active_seconds), 3)
        duration_seconds = round(chance.choice([0.3, 1.5, 3.0, 6.0]) * chance.uniform(0.7, 1.3), 3)
        found.append(Fault(kind, at_seconds, duration_seconds, _amount(chance, kind)))
    return tuple(sorted(found, key=lambda fault: fault.at_seconds))


def _amount(chance: random.Random, kind: FaultKind) -> float:
    if kind is FaultKind.NETWORK_SLOW:
        return round(chance.uniform(0.05, 0.6), 3)
    if kind is FaultKind.RECORD_TOO_LARGE:
        return float(chance.randint(5_000, 40_000))
    if kind is FaultKind.CLOCK_STEP:
        return round(chance.choice([-60, -3, 0.5, 2.0, 5.0, 400.0]) * chance.uniform(0.9, 1.1), 3)
    return round(chance.random(), 3)
