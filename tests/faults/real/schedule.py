"""One schedule on a real Kafka: declare topics, start workers, play the plan with its faults, judge, clean up."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.settings import Settings
from tests.faults.generate import generate
from tests.faults.moved_seconds import draw_built_in
from tests.faults.numbers import NUMBERS
from tests.faults.plan import SECOND_US, FaultKind, Plan, Shape
from tests.faults.real.arena import Arena, ArenaKind
from tests.faults.real.clock import SteppedClock
from tests.faults.real.crew import Crew
from tests.faults.real.means import Faults, Scene
from tests.faults.real.playing import Player
from tests.faults.real.verdict import Outcome, Trial

ACTIVE_SECONDS = 8.0
QUIET_SECONDS = 16.0
LARGEST_WINDOW_SECONDS = 6
DECLARE_SECONDS = 20.0

WORKER = (FaultKind.WORKER_KILL, FaultKind.WORKER_TERM, FaultKind.WORKER_STOP_CONT, FaultKind.WORKER_JOIN)
NETWORK = (FaultKind.NETWORK_SLOW, FaultKind.NETWORK_CUT)
BROKER = (FaultKind.BROKER_KILL_RESTART, FaultKind.BROKER_PAUSE)
FEED = (FaultKind.RECORD_TOO_LARGE, FaultKind.ABSURD_RECORDS)
PRESENT: Mapping[ArenaKind, tuple[FaultKind, ...]] = {
    # What is written twice is drawn twice as often: a broker of one's own is there to be hit.
    ArenaKind.SHARED: (*WORKER, *NETWORK, *FEED, FaultKind.PRODUCE_REFUSED, FaultKind.CLOCK_STEP),
    ArenaKind.OWN: (*BROKER, *BROKER, *WORKER, FaultKind.ABSURD_RECORDS),
    ArenaKind.CLUSTER: (FaultKind.LEADER_MOVE, FaultKind.LEADER_MOVE, *BROKER, *WORKER),
}

# The service's own limit: what costs most is as large as an object may be.
LARGE = dataclasses.replace(NUMBERS, max_object_bytes=1_572_864)

QUICK: Mapping[str, object] = {
    # Short sessions, for what waits for the end of one.
    "session_timeout_seconds": 4.0,
    "heartbeat_interval_seconds": 0.7,
    "lease_margin_seconds": 1.2,
    "position_interval_seconds": 1.0,
}


def arena_of(seed: int) -> ArenaKind:
    """Where a seed is run: three in five on the shared broker, one in five each on its own and on three nodes."""
    return (ArenaKind.SHARED, ArenaKind.OWN, ArenaKind.SHARED, ArenaKind.CLUSTER, ArenaKind.SHARED)[seed % 5]


def shape_of(arena: Arena) -> Shape:
    """What a plan for that arena may have in it, on this machine."""
    kinds = list(PRESENT[arena.kind])
    if arena.disk is not None and arena.disk.is_small:
        kinds += [FaultKind.DISK_FULL, FaultKind.DISK_FULL]
    return Shape(
        active_seconds=ACTIVE_SECONDS,
        quiet_seconds=QUIET_SECONDS,
        largest_window_seconds=LARGEST_WINDOW_SECONDS,
        nodes=(2, 4),
        pods=(2, 5),
        faults=(1, 3),
        kinds=tuple(kinds),
    )


def run_schedule(seed: int, arena: Arena, lane: int, folder: Path) -> Outcome:
    """Run one seed; its logs are in `folder`, which the caller may remove if all is well."""
    started_at = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    outcome = Outcome(seed, arena.kind, folder=folder)
    shape = shape_of(arena)
    settings = _settings(seed, arena, shape)
    _declare(settings)
    try:
        with Crew(folder) as crew:
            _run(arena, lane, settings, generate(seed, shape, numbers=LARGE), crew, outcome, folder)
    finally:
        arena.revive()
        _remove_topics(settings)
        outcome.seconds = time.monotonic() - started_at
    return outcome


def _run(arena: Arena, lane: int, settings: Settings, draft: Plan, crew: Crew, outcome: Outcome, folder: Path) -> None:
    """Play the plan as it is when it starts now; `draft` is the same at another time."""
    wire = arena.wires[lane]
    clocks = _man(crew, settings, wire.address, draft, folder)
    crew.wait_ready(settings.partitions)
    start_at_us = (time.time_ns() // 1_000_000_000 + 1) * SECOND_US
    plan = generate(draft.seed, draft.shape, start_at_us=start_at_us, numbers=draft.numbers)
    faults = Faults(Scene(settings, arena, crew, clocks, wire), plan.faults)
    player = Player(settings, plan, crew, faults)
    try:
        player.play(plan.end_at_us)
    finally:
        faults.end_all()
        wire.mend()
        arena.revive()
        outcome.faults = faults.done
    Trial(plan, settings, player, crew, outcome).hold(folder)
    player.close()


def _settings(seed: int, arena: Arena, shape: Shape) -> Settings:
    mine = f"s{seed}-{uuid.uuid4().hex[:6]}"
    values: dict[str, object] = {
        "bootstrap_servers": arena.broker.bootstrap_servers,
        "topic_prefix": f"{mine}.",
        "application_id": mine,
        "partitions": shape.partitions,
        "replication_factor": 3 if arena.nodes > 1 else 1,
        "min_insync_replicas": 2 if arena.nodes > 1 else 1,
        **QUICK,
        **LARGE.settings(),
        "built_in": draw_built_in(seed),
    }
    return Settings.model_validate(values)


def _man(crew: Crew, settings: Settings, wire_address: str, draft: Plan, folder: Path) -> dict[str, SteppedClock]:
    """Start two workers, sometimes one or three; the first, or all of them, by the wire and with a clock that steps."""
    chance = random.Random(f"crew/{draft.seed}")
    has_steps = any(fault.kind is FaultKind.CLOCK_STEP for fault in draft.faults)
    count, are_all_hit, are_static = chance.choice((1, 2, 2, 3)), chance.random() < 0.5, chance.random() < 0.3
    clocks: dict[str, SteppedClock] = {}
    for number in range(count):
        name = f"w{number}"
        changes: dict[str, object] = {"group_instance_id": name} if are_static else {}
        if number == 0 or are_all_hit:
            changes["bootstrap_servers"] = wire_address
            if has_steps:
                clocks[name] = SteppedClock(folder / f"{name}.clock")
        crew.add(name, settings.model_copy(update=changes), clocks.get(name))
    return clocks


def _declare(settings: Settings) -> None:
    """Declare the topics; of several nodes one may not have heard of a new topic's settings yet when it is asked."""
    until = time.monotonic() + DECLARE_SECONDS
    while (report := declare_topics(settings)).breaking and time.monotonic() < until:
        time.sleep(0.5)
    report.raise_if_breaking()


def _remove_topics(settings: Settings) -> None:
    """Give the broker its room back; what remains is only in the way."""
    with contextlib.suppress(KafkaError):
        admin = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
        try:
            admin.delete_topics([spec.name for spec in topic_specs(settings)])
        finally:
            admin.close()
