"""Failures in docs/guarantees.md: brokers that answer: slow, with new leaders, forbidding.

The means are those of the torture (tests/faults/real): a proxy that delays, an election, an ACL.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka.admin import ACLOperation, KafkaAdminClient

from tests.faults.plan import Fault, FaultKind
from tests.faults.real.arena import Arena, ArenaKind
from tests.faults.real.crew import Crew
from tests.faults.real.means import Faults, Scene, forbid, permit
from tests.faults.real.wire import WireLoop
from tests.guarantees.conftest import own_settings
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.fleet_feed import FleetFeed
from tests.harness.reading import TopicReader, commands, instant
from tests.harness.workers import WorkerProcess

pytestmark = pytest.mark.kafka

NODES, PODS = 4, 40
SLOW_SECONDS = 0.3  # each way: a transaction takes seconds instead of milliseconds
MOVE_SECONDS = 10.0  # in which leaders have to be others once that was asked for
COMMANDS = 0.0  # the first of the topics that an ACL may forbid


class Stage:
    """Brokers of one kind, topics of ours, and a worker's way to them that can be hindered."""

    def __init__(self, kind: ArenaKind, folder: Path, stack: ExitStack) -> None:
        self.arena = stack.enter_context(Arena(kind, stack.enter_context(WireLoop()), folder, 1))
        replicas = len(self.arena.broker.nodes)
        self.settings = own_settings(
            self.arena.broker.bootstrap_servers, replication_factor=replicas, min_insync_replicas=min(replicas, 2)
        )
        self.hindered = self.settings.model_copy(update={"bootstrap_servers": self.arena.wires[0].address})
        self._scene = Scene(self.settings, self.arena, Crew(folder), {}, self.arena.wires[0])

    def leaders(self) -> dict[tuple[str, int], int]:
        """Which broker leads each partition of ours, by topic and number."""
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=self.settings.bootstrap_servers)) as admin:
            ours = [name for name in admin.list_topics() if name.startswith(self.settings.topic_prefix)]
            return {
                (topic["name"], partition["partition_index"]): partition["leader_id"]
                for topic in admin.describe_topics(ours)
                for partition in topic["partitions"]
            }

    def begin(self, kind: FaultKind, amount: float) -> Faults:
        """Begin a fault; it ends with `end_all`."""
        faults = Faults(self._scene, (Fault(kind, 0.0, 1.0, amount),))
        while not faults.done:
            faults.tick(0.5)
        return faults


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.parametrize(
    ("arena", "kind", "amount"),
    [
        pytest.param(ArenaKind.SHARED, FaultKind.NETWORK_SLOW, SLOW_SECONDS, id="slow"),
        pytest.param(ArenaKind.CLUSTER, FaultKind.LEADER_MOVE, 0.0, id="leader-moves"),
    ],
)
@pytest.mark.kit
def test_slow_brokers_and_moving_leaders_repeat_no_eviction(
    arena: ArenaKind, kind: FaultKind, amount: float, tmp_path: Path, stack: ExitStack
) -> None:
    """Everything due is issued once, nothing early; what recovered meanwhile is cancelled; the worker stays."""
    stage = Stage(arena, tmp_path, stack)
    service = stage.settings
    with WorkerProcess(stage.hindered, tmp_path) as worker, FleetFeed(service) as fleet:
        worker.wait_ready()
        reader = TopicReader(service, service.commands_topic)
        for n in range(NODES):
            fleet.of(n).node(f"n{n}")
            for p in range(PODS):
                fleet.of(n).pod(f"n{n}", f"p{n}-{p}", tolerates((60 if n == 0 else 6) + p % 12))
        for n in range(NODES):
            fleet.of(n).node(f"n{n}", taint())
        fleet.flush()
        seen = reader.wait_for(lambda seen: len(commands(seen, "Schedule")) == NODES * PODS, "all schedules")
        deadlines = {pod: instant(found[0].value["deadline"]) for pod, found in commands(seen, "Schedule").items()}
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) > NODES, "first evictions")
        leaders = stage.leaders()
        faults = stage.begin(kind, amount)
        until = time.monotonic() + MOVE_SECONDS
        while kind is FaultKind.LEADER_MOVE and stage.leaders() == leaders:
            assert time.monotonic() < until, "no leader has moved"
        fleet.of(0).node("n0")  # a recovery that comes while it is so
        fleet.flush()
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) == (NODES - 1) * PODS, "evictions", seconds=90)
        reader.wait_for(lambda seen: len(commands(seen, "Cancel")) == PODS, "cancels", seconds=60)
        faults.end_all()
        for pod, found in commands(reader.quiet(2.0), "Evict").items():
            assert len(found) == 1, f"{pod} was issued {len(found)} times"
            assert found[0].appended_at >= deadlines[pod] - 0.001
        reader.close()
        assert worker.stop() == 0


def test_forbidden_writing_stops_the_worker_and_loses_nothing(tmp_path: Path, stack: ExitStack) -> None:
    """The process stops with a clear error and nothing is passed over: with the right given, all comes out."""
    stage = Stage(ArenaKind.SHARED, tmp_path, stack)
    service = stage.settings
    with Feed(service) as feed:
        reader = TopicReader(service, service.commands_topic)
        with WorkerProcess(service, tmp_path) as worker:
            worker.wait_ready()
            feed.node("n0")
            feed.pod("n0", "a", tolerates(2))
            feed.flush()
            faults = stage.begin(FaultKind.PRODUCE_REFUSED, COMMANDS)
            feed.node("n0", taint())
            feed.flush()
            assert worker.wait_exit() == 1
            last_line = worker.log_file.read_text().strip().splitlines()[-1]
            assert "refuses" in last_line
            assert "ACL" in last_line
        assert not reader.quiet(1.0), "a command became visible although writing is forbidden"
        faults.end_all()
        with WorkerProcess(service, tmp_path) as again:
            again.wait_ready()
            reader.wait_for(lambda seen: len(commands(seen, "Evict").get("a", ())) == 1, "the eviction")
            assert again.stop() == 0
        reader.close()


@pytest.mark.kit  # as forbidden writing: another right, the same end
def test_forbidden_reading_stops_the_worker_and_loses_nothing(tmp_path: Path, stack: ExitStack) -> None:
    service = Stage(ArenaKind.SHARED, tmp_path, stack).settings
    with Feed(service) as feed:
        with WorkerProcess(service, tmp_path) as worker:
            worker.wait_ready()
            forbid(service, service.pods_topic, ACLOperation.READ)
            feed.node("n0", taint())
            feed.pod("n0", "a")
            feed.flush()
            assert worker.wait_exit() == 1
            last_line = worker.log_file.read_text().strip().splitlines()[-1]
            assert service.pods_topic in last_line
            assert "ACL" in last_line
        permit(service, service.pods_topic)
        with WorkerProcess(service, tmp_path) as again:
            again.wait_ready()
            reader = TopicReader(service, service.commands_topic)
            reader.wait_for(lambda seen: len(commands(seen, "Evict").get("a", ())) == 1, "the eviction")
            reader.close()
            assert again.stop() == 0
