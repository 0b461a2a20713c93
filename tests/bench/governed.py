"""What policies cost: lateness that they add, evictions that they let through, and memory of what they hold.

`tests/bench/policies/matching.yaml` has a policy of each clause. Each of them matches all evictions here and holds none
for longer than a moment, so each is asked at every deadline. Workers without and with them do what `timers` measures.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from evictstream.streams.settings import Settings
from tests.bench import memory, timers
from tests.bench.figures import Bound, Figure, Goal, percentile, require
from tests.bench.fleet import UNTOLERATED, Fleet
from tests.bench.lab import Lab, say
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter
from tests.harness.cluster_names import clusters_apart
from tests.streams.cli.running import run

POLICIES: Final = Path(__file__).parent / "policies"
MATCHING: Final = POLICIES / "matching.yaml"
RATE: Final = POLICIES / "rate.yaml"
RATE_PER_SECOND: Final = 2_500  # as in that file, and the burst
BURST: Final = 100
WAITING: Final = POLICIES / "waiting.yaml"
STAMP_SECONDS: Final = 0.002  # instants of commands are whole milliseconds
NODES: Final = 500
PODS_PER_NODE: Final = 40
TIMEOUT_SECONDS: Final = 90.0


async def measure(lab: Lab) -> list[Figure]:
    """Measure all three; each has workers and topics of its own."""
    return [await _added_lateness(lab), await _admissions(lab), await _memory(lab)]


async def _added_lateness(lab: Lab) -> Figure:
    """Compare medians of lateness without and with policies, the same deadlines after one another."""
    plain = await timers.latenesses_ms(lab, lab.settings("ungoverned"))
    settings = lab.settings("governed")
    await _apply(settings, MATCHING)
    governed = await timers.latenesses_ms(lab, settings)
    medians = [[percentile(stretch, 0.5) for stretch in found] for found in (plain, governed)]
    say(f"governed: p50 without policies {medians[0]}, with them {medians[1]} ms")
    return Figure(
        "governed",
        "lateness that policies of all clauses add to 1,000 deadlines a second, p50, until read",
        "ms",
        tuple(after - before for before, after in zip(*medians, strict=True)),
        Goal(Bound.BELOW, 10.0),
        {
            "without_p99_ms": max(percentile(stretch, 0.99) for stretch in plain),
            "with_p99_ms": max(percentile(stretch, 0.99) for stretch in governed),
        },
    )


async def _admissions(lab: Lab) -> Figure:
    """Let 20,000 pods of one cluster become due at once, under a rate."""
    rounds = []
    for _ in range(1 if lab.is_quick else 3):
        settings = lab.settings("admissions")
        await _apply(settings, RATE)
        fleet = Fleet(
            nodes=NODES, pods_per_node=PODS_PER_NODE, partitions=settings.partitions, clusters=clusters_apart(1)
        )
        pods = [pod.name for pod in fleet.pods]
        with CommandWatch(settings) as watch:
            async with BulkWriter(settings) as writer, lab.worker(settings):
                await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
                await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED"))
                watch.expect(len(pods), seconds=TIMEOUT_SECONDS)
                taints = fleet.node_events(fleet.nodes, tainted=True, taint=UNTOLERATED)
                await writer.write(settings.nodes_topic, taints)
                seen = await watch.seen(action="Evict", pods=pods)
        instants = [one.seen_us for one in seen]
        seconds = (max(instants) - min(instants)) / 1e6
        stamped = sorted(one.stamped_us for one in seen)
        issued_seconds = (stamped[-1] - stamped[0]) / 1e6
        require(
            len(pods) <= RATE_PER_SECOND * (issued_seconds + STAMP_SECONDS) + BURST,
            "more were issued than the rate allows",
        )
        rounds.append(len(pods) / seconds)
        say(f"admissions: {len(pods):,} in {seconds:.2f} s")
    return Figure(
        "admissions",
        f"evictions a second that one cluster issues under a rate of {RATE_PER_SECOND:,}/s",
        "1/s",
        tuple(rounds),
        Goal(Bound.AT_LEAST, 2_000.0),
    )


async def _memory(lab: Lab) -> Figure:
    """Let 100,000 pods become due under a rate that lets none of them go."""
    pods = memory.NODES * memory.PODS_PER_NODE
    rounds = []
    for _ in range(1 if lab.is_quick else memory.ROUNDS):
        settings = lab.settings("held")
        await _apply(settings, WAITING)
        fleet = Fleet(nodes=memory.NODES, pods_per_node=memory.PODS_PER_NODE, partitions=settings.partitions)
        with CommandWatch(settings) as watch:
            async with BulkWriter(settings) as writer, lab.worker(settings) as worker:
                found = await memory.grow(settings, fleet, worker, writer, watch, are_due=True)
        rounds.append((found.full_bytes - found.empty_bytes) / pods)
        say(f"held: {found.empty_bytes / 1e6:.0f} MB, then {found.full_bytes / 1e6:.0f} MB")
    return Figure(
        "held",
        f"resident memory for each of {pods:,} pods whose overdue eviction waits for a limit",
        "B",
        tuple(rounds),
    )


async def _apply(settings: Settings, file: Path) -> None:
    """Apply policies before a worker starts: it reads them before it issues anything."""
    done = await asyncio.to_thread(run, settings, "policy", "apply", str(file))
    require(done.returncode == 0, f"policies are not applied: {done.stderr.decode()}")
