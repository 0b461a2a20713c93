"""The whole loop on a real Kafka: feed, workers and executors as processes that are killed and stopped.

`python -m tests.faults.loop.real` runs 100 seeds, some at once. A seed says what happens in the cluster, to requests
and to processes; when exactly the processes notice is theirs, so no two runs are quite the same.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import structlog

from evictstream.kit.demo.judgement import oracle_limits
from evictstream.kit.oracle import judge
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.faults.loop.deletes import wrong_delete
from tests.faults.loop.outside import CLUSTER, DEAD, TROUBLES, OutsideWorld, of_the_cluster
from tests.faults.loop.real_cluster import LivelyApi
from tests.faults.loop.run import LoopOutcome
from tests.faults.node_rows import check_nodes
from tests.faults.real.kept import keep
from tests.faults.real.reading import Log, read_log
from tests.faults.real.state import Rows, read_rows
from tests.harness.other_version import version_of
from tests.harness.product_process import ProductProcess

ACTIVE_SECONDS = 25.0
PATIENCE_SECONDS = 180.0
"""In which everything owed is done once nothing happens any more; a feed that was killed costs 10 s of it."""

STOPPED_SECONDS = 2.0
STARTING_SECONDS = 8.0
"""So long after its first line each process has read its kubeconfig."""

LONGEST_SHOWN = 1_000  # characters of a violation; the end says what is wrong
NODE_UID = 1  # its place in a node's row
UNSEEN_SECONDS = 12.0
"""A feed is not killed so soon after etcd was restored: what it has not seen by then nobody can (docs/feed.md)."""

UNKEPT_SECONDS = 25.0
"""Etcd is not restored so soon after a feed was killed, until the next one has kept how far versions came: likewise."""

SETTINGS: dict[str, object] = {
    # Short, so that a run has several of each.
    "partitions": 2,
    "session_timeout_seconds": 6.0,
    "heartbeat_interval_seconds": 1.0,
    "lease_margin_seconds": 1.5,
    "position_interval_seconds": 1.0,
    "retry_base_seconds": 0.5,
    "retry_ceiling_seconds": 4.0,
    "result_silence_seconds": 15.0,
    "success_grace_seconds": 5.0,
    "feed_silence_limit_seconds": 25.0,
}


class RealLoop:
    """One run."""

    def __init__(
        self,
        seed: int,
        servers: str,
        folder: Path,
        *,
        troubles: Sequence[str] = TROUBLES,
        patience_seconds: float = PATIENCE_SECONDS,
        beside: Path | None = None,
    ) -> None:
        """Declare the topics; nothing runs yet.

        With `beside`, the folder of another version, each start of a process is of the other version than the one
        before: an upgrade, and then a way back.
        """
        self._versions = [None] if beside is None else [beside, None]
        self.seen: Counter[str] = Counter()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._draw = Random(seed)
        mine = f"l{seed}-{uuid.uuid4().hex[:6]}"
        names = {"bootstrap_servers": servers, "topic_prefix": f"{mine}.", "application_id": mine}
        self.settings = Settings.model_validate(SETTINGS | names)
        declare_topics(self.settings).raise_if_breaking()
        self.api = LivelyApi(self._draw)
        self.outside = OutsideWorld(self.api, self.settings, folder, self._draw, troubles=troubles)
        self._patience_seconds = patience_seconds
        self._restored_at = self._killed_at = -UNKEPT_SECONDS
        self._started_at = 0.0

    def run(self) -> Iterator[str]:
        """Run; gives what is wrong."""
        with self.api, self.outside, contextlib.ExitStack() as stack:
            self.outside.feed_the_dead_cluster()
            file = ("--kubeconfig", str(self.outside.kubeconfig))
            both = ("--cluster", f"{DEAD}={DEAD}", "--cluster", CLUSTER, *file)
            commands = {
                "feed": ("feed", *both),
                "worker": ("worker",),
                "executor": ("execute", *both, "--mode", "delete"),
                "observer": ("execute", "--cluster", CLUSTER, *file),
            }
            processes = {name: stack.enter_context(self._process(name, *how)) for name, how in commands.items()}
            self._live(processes)
            self._settle(processes)
            for name, process in processes.items():
                if process.exit_code is not None:
                    yield f"{name} has ended with exit code {process.exit_code}"
        yield from self._judge()

    def _process(self, name: str, *arguments: str) -> ProductProcess:
        self._versions.reverse()  # so that they are mixed from the beginning
        return ProductProcess(self.settings, *arguments, log=self.folder / f"{name}.log", sources=self._versions[:])

    def _live(self, processes: dict[str, ProductProcess]) -> None:
        begin_by = time.monotonic() + self._patience_seconds
        while time.monotonic() < begin_by and not self._have_begun(processes):
            time.sleep(0.2)  # the machine may be busy; what a start meets, those after a kill do
        draw, end_at = self._draw, time.monotonic() + ACTIVE_SECONDS
        self._started_at = time.monotonic()
        while time.monotonic() < end_at:
            often = 6 if len(self._versions) == 1 else 30  # only a kill lets the other version in
            what = draw.choices(("cluster", "request", "process", "outside", "etcd"), (60, 12, often, 6, 2))[0]
            if what == "cluster":
                self.seen[f"cluster: {self.api.act()}"] += 1
            elif what == "request":
                self.seen[f"request: {self.api.fail()}"] += 1
            elif what == "process":
                self._hit(draw.choice(tuple(processes)), processes)
            elif what == "outside":
                if not self._have_begun(processes):
                    self._started_at = time.monotonic()
                is_starting = time.monotonic() - self._started_at < STARTING_SECONDS
                self.seen[f"outside: {self.outside.act(is_starting=is_starting)}"] += 1
            elif time.monotonic() - self._killed_at < UNKEPT_SECONDS or self.api.stuck:
                continue  # what no feed has seen of etcd's future, none can miss
            elif self.api.restore():
                self._restored_at = time.monotonic()
                self.seen["etcd: restored"] += 1
            else:
                self.api.backup()
            time.sleep(draw.choice((0.02, 0.1, 0.3, 0.6)))

    def _hit(self, name: str, processes: dict[str, ProductProcess]) -> None:
        how = self._draw.choice(("kill", "stop"))
        if name == "feed" and time.monotonic() - self._restored_at < UNSEEN_SECONDS:
            return
        process = processes[name]
        if how == "kill" and not self.outside.is_calm:
            return  # a start refuses another cluster under the name, and ends
        if how == "kill":
            process.kill_and_start()
            self._started_at = time.monotonic()
            self._killed_at = time.monotonic() if name == "feed" else self._killed_at
        else:
            process.send_signal(signal.SIGSTOP)
            threading.Timer(STOPPED_SECONDS, process.send_signal, (signal.SIGCONT,)).start()
        self.seen[f"process: {how} {name}"] += 1

    def _settle(self, processes: dict[str, ProductProcess]) -> None:
        """Wait until everything owed is done and known, or for too long."""
        self.outside.end()
        self.api.trouble.clear()
        time.sleep(STARTING_SECONDS)
        end_at = time.monotonic() + self._patience_seconds
        while time.monotonic() < end_at and not (self._have_begun(processes) and self._is_settled()):
            time.sleep(2)

    @staticmethod
    def _have_begun(processes: dict[str, ProductProcess]) -> bool:
        return all(process.has_begun or process.exit_code is not None for process in processes.values())

    def _is_settled(self) -> bool:
        return not self.api.owed() and self._known() == self.api.uids()

    def _known(self) -> dict[str, set[str]]:
        """Return UIDs of nodes under an empty name, and of pods by their node, as the service knows them."""
        return _known(read_rows(self.settings))

    def _judge(self) -> Iterator[str]:
        self.seen["deletes"] = len(self.api.deleted)
        rows = read_rows(self.settings)
        if (owed := self.api.owed()) != []:
            yield f"still there: {owed}"
        if (known := _known(rows)) != (held := self.api.uids()):
            yield f"the service knows {known}, the cluster holds {held}"
        for deleted in self.api.deleted:
            yield from wrong_delete(deleted, self.api.together)
        for write in self.outside.staging.writes:
            yield f"a write in another cluster: {write}"
        log = read_log(self.settings)
        inputs, messages, of_strangers = of_the_cluster(log.inputs, log.messages)
        self.seen["dead letters of strangers"] = len(of_strangers)
        for place in sorted(self.outside.sent - of_strangers):
            yield f"no dead letter about a stranger's record: {place}"
        keep(self.folder, Log(inputs, messages), {"deleted": self.api.deleted, "seen": self.seen})
        limits = oracle_limits(self.settings)
        found = judge(
            inputs,
            messages,
            ended_at_us=time.time_ns() // 1_000,
            partitions=self.settings.partitions,
            limits=limits,
            may_forget=True,
        )
        yield from map(str, found)
        wrong = check_nodes(
            rows.table, inputs, positions=rows.positions, limits=limits, partitions=self.settings.partitions
        )
        yield from map(str, wrong)


def _known(rows: Rows) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"": set()}
    for key, row in rows.of("node").items():
        if key[0].startswith(f"{CLUSTER}/") and row[NODE_UID] is not None:
            found[""].add(row[NODE_UID])
    for node, uid in rows.of("pod"):
        cluster, _, name = node.partition("/")
        if cluster == CLUSTER:
            found.setdefault(name, set()).add(uid)
    return found


def run_real(seed: int, servers: str, folder: Path, **more: Any) -> LoopOutcome:
    """Run one seed; its logs are in `folder`. `more` is as `RealLoop` takes it."""
    loop = RealLoop(seed, servers, folder, **more)
    try:
        return LoopOutcome(seed, tuple(loop.run()), loop.seen)
    except Exception:  # noqa: BLE001 - the other seeds go on
        return LoopOutcome(seed, (traceback.format_exc(),), loop.seen)


def main() -> int:
    """Run seeds; exit code 1 if one has failed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--beside", metavar="COMMIT", help="mix its processes with those of today")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    folder = Path(tempfile.mkdtemp(prefix="evictstream-loop-"))
    seen, failed, began_at = Counter[str](), 0, time.monotonic()
    with EmbeddedBroker() as broker, ThreadPoolExecutor(asked.at_once) as pool:
        servers = broker.bootstrap_servers
        seeds = range(asked.seed, asked.seed + asked.runs)
        beside = None if asked.beside is None else version_of(asked.beside, folder / "beside")
        for outcome in pool.map(lambda seed: run_real(seed, servers, folder / str(seed), beside=beside), seeds):
            seen.update(outcome.seen)
            print(
                f"seed {outcome.seed}: {len(outcome.violations)} violations, {outcome.seen['deletes']} deletes",
                flush=True,
            )
            if not outcome.violations:
                shutil.rmtree(folder / str(outcome.seed))
                continue
            failed += 1
            print(f"seed {outcome.seed} failed; its logs: {folder / str(outcome.seed)}")
            for violation in outcome.violations[:5]:
                print(f"  {violation[-LONGEST_SHOWN:]}", flush=True)
    print(f"{asked.runs} runs, {failed} failed, {time.monotonic() - began_at:.0f} s")
    for what, count in sorted(seen.items()):
        print(f"  {what}: {count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
