"""How fast a recording is replayed from its files, and how much memory that takes, however long it is.

A generated recording: nodes and pods of some clusters, then changes of pods that change no eviction, as most are, and
now and then a node that is tainted and well again a second later. `evictstream replay` runs on it as a user runs it, on
one core, and is measured from outside.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import RecordingWriter
from tests.bench.figures import Bound, Figure, Goal
from tests.bench.fleet import Entry, Fleet
from tests.bench.lab import Lab, say

EVENTS: Final = 5_000_000
QUICK_EVENTS: Final = 250_000
NODES: Final = 500
PODS_PER_NODE: Final = 30
PARTITIONS: Final = 8
EVENTS_A_SECOND: Final = 3_000
TAINTED_EACH: Final = 5_000
FIRST_US: Final = 1_790_000_000_000_000
COMMAND: Final = (sys.executable, "-m", "evictstream.streams.cli.main")


class ReplayRun(NamedTuple):
    """What a replay took."""

    records: int
    evictions: int
    seconds: float
    processor_seconds: float
    peak_bytes: int


def write_recording(folder: Path, events: int, *, nodes: int = NODES) -> None:
    """Write a recording of so many events."""
    fleet = Fleet(nodes=nodes, pods_per_node=PODS_PER_NODE, partitions=PARTITIONS)
    offsets: dict[tuple[Role, int], int] = {}
    with RecordingWriter(folder, partitions=PARTITIONS) as writer:

        def write(topic: Role, entry: Entry, at_us: int) -> None:
            place = topic, entry.partition
            offset = offsets[place] = offsets.get(place, -1) + 1
            writer.write(
                RecordedRecord(
                    topic=topic,
                    partition=entry.partition,
                    offset=offset,
                    timestamp=at_us // 1_000,
                    key=entry.key,
                    value=entry.value,
                )
            )

        for node in fleet.nodes:
            write("nodes", fleet.node_event(node, tainted=False, at_us=FIRST_US), FIRST_US)
        pods, tainted = itertools.cycle(fleet.pods), itertools.cycle(fleet.nodes)
        sick = None
        for number in range(events - len(fleet.nodes)):
            at_us = FIRST_US + number * 1_000_000 // EVENTS_A_SECOND
            if number % TAINTED_EACH == 0 and number > len(fleet.pods):
                sick = next(tainted)
                write("nodes", fleet.node_event(sick, tainted=True, at_us=at_us), at_us)
            elif number % TAINTED_EACH == EVENTS_A_SECOND and sick is not None:
                write("nodes", fleet.node_event(sick, tainted=False, at_us=at_us), at_us)
            else:
                write("pods", fleet.pod_event(next(pods), b"MODIFIED", seconds=300, at_us=at_us), at_us)


def replay_files(folder: Path) -> ReplayRun:
    """Replay as a user does: one process, one thread."""
    begun_at = time.monotonic()
    process = subprocess.Popen(
        [*COMMAND, "replay", str(folder), "--allow", "listing", "-o", "json"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    told = json.loads(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return ReplayRun(
        records=told["records"],
        evictions=told["evictions"],
        seconds=time.monotonic() - begun_at,
        processor_seconds=_processor_seconds(used),
        peak_bytes=used.ru_maxrss * 1024,
    )


def _processor_seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


async def measure(lab: Lab) -> list[Figure]:
    """Write a recording, then replay it once."""
    events = QUICK_EVENTS if lab.is_quick else EVENTS
    with tempfile.TemporaryDirectory(prefix="evictstream-recording-") as folder:
        recording = Path(folder) / "recording"
        await asyncio.to_thread(write_recording, recording, events)
        say(f"a recording of {events:,} events is written")
        run = await asyncio.to_thread(replay_files, recording)
    say(f"replayed in {run.seconds:.1f} s, {run.evictions:,} evictions")
    return [
        Figure(
            "replay",
            f"events a second, a recording of {run.records:,} trimmed events replayed from its files on one core",
            "1/s",
            (run.records / run.seconds,),
            Goal(Bound.AT_LEAST, 100_000.0),
            {"processor_us_each": run.processor_seconds / run.records * 1e6, "evictions": run.evictions},
        ),
        Figure(
            "replay_memory",
            f"peak resident memory of that replay, with {NODES * PODS_PER_NODE:,} pods",
            "MB",
            (run.peak_bytes / 1e6,),
            Goal(Bound.BELOW, 300.0),
        ),
    ]
