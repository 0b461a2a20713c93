"""Executor processes that are killed or frozen while evictions are due: who acts after them, and how soon."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import own_settings
from tests.harness.ends import executor_process, group_members
from tests.harness.executing import CommandWriter
from tests.harness.workers import WorkerProcess
from tests.streams.executor.conftest import TAINTED
from tests.streams.executor.pod_stream import PodStream

pytestmark = pytest.mark.kafka

NODES = 20
STANDBY_SECONDS = 3.0
START_SECONDS = 5.0
"""Three, and two for the start of a process on a busy machine. A session is 6 s, and what it holds off took 15 s."""

REMOVED = "silent member removed from its group"
MEANWHILE_SECONDS = 4.0
"""Longer than a silent member stays in its group, and shorter than its session."""


class Scene:
    """A cluster whose pods become due one after another, and its executors. Use as a context manager."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.group = f"{settings.application_id}-executor-c1"
        self._settings = settings
        self._folder = folder
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.api = self._stack.enter_context(FakeApi())
        for node in range(NODES):
            self.api.put("Node", f"m-{node}", uid=f"uid-m-{node}", spec=TAINTED)
        writer = CommandWriter(self._settings)
        self._stack.callback(writer.close)
        self.stream = self._stack.enter_context(PodStream(self.api, writer, NODES))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start(self, *options: str, members: int = 1) -> WorkerProcess:
        """Start one, and wait until so many are in the group and one of them has acted since."""
        found = self._stack.enter_context(executor_process(self._settings, self.api, self._folder, *options))
        since = time.time()
        found.wait_for(lambda: self.idle(since) is not None and len(self.members()) == members, "in its group")
        return found

    def members(self) -> set[str]:
        return {one["member_id"] for one in group_members(self._settings, self.group)}

    def idle(self, since: float) -> float | None:
        """Seconds until the first delete after that moment."""
        return next((at - since for _, at in self.stream.deletes() if at > since), None)

    def wait_idle(self, since: float, process: WorkerProcess) -> float:
        process.wait_for(lambda: self.idle(since) is not None, "deletes")
        idle = self.idle(since)
        assert idle is not None
        return idle

    def longest_pause(self, since: float) -> float:
        """Seconds without a delete between that moment and now."""
        times = [since, *(at for _, at in self.stream.deletes() if at > since), time.time()]
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    def deleted_twice(self) -> list[str]:
        names = [name for name, _ in self.stream.deletes()]
        return sorted(name for name in set(names) if names.count(name) > 1)


@pytest.fixture
def scene(declared: Settings, tmp_path: Path) -> Iterator[Scene]:
    with Scene(declared, tmp_path) as found:
        yield found


@pytest.mark.alone
def test_a_stand_by_acts_soon_after_a_kill_or_freeze(scene: Scene) -> None:
    """A frozen one takes nothing back when it goes on, and deletes nothing twice."""
    first = scene.start()
    second = scene.start(members=2)
    killed_at = time.time()
    first.kill()
    assert scene.wait_idle(killed_at, second) < STANDBY_SECONDS
    third = scene.start(members=2)
    frozen_at = time.time()
    second.freeze()
    assert scene.wait_idle(frozen_at + 0.1, third) < STANDBY_SECONDS
    second.thaw()
    second.wait_for(lambda: len(scene.members()) == 2, "it in its group again")
    assert len(second.events(REMOVED)) == 1
    assert scene.deleted_twice() == []


@pytest.mark.alone
def test_a_restart_waits_for_no_session(scene: Scene) -> None:
    """Neither does one whose other members have all died."""
    scene.start().kill()
    killed_at = time.time()
    second = scene.start("--instance", "one")
    assert scene.wait_idle(killed_at, second) < START_SECONDS
    third = scene.start(members=2)
    for dead in (third, second):
        dead.kill()
    killed_at = time.time()
    fourth = scene.start("--instance", "two")
    assert scene.wait_idle(killed_at, fourth) < START_SECONDS + STANDBY_SECONDS
    fourth.kill()
    killed_at = time.time()
    assert scene.wait_idle(killed_at, scene.start("--instance", "two")) < START_SECONDS


@pytest.mark.kit
@pytest.mark.alone
def test_members_that_come_and_go_leave_no_second_idle(scene: Scene) -> None:
    """A dead one that stands by holds up the group for a session. Meanwhile the one that acts commits, and stays."""
    first = scene.start()
    begun_at, acting = time.time(), scene.members()
    scene.start(members=2).kill()
    dead = scene.members() - acting
    third = scene.start(members=3)
    first.wait_for(lambda: not dead & scene.members(), "end of the dead one's session")
    time.sleep(1.0)  # in which the group settles
    assert acting < scene.members()
    assert first.stop() == 0
    time.sleep(MEANWHILE_SECONDS)  # in which the last one acts
    assert third.events(REMOVED) == []
    assert scene.longest_pause(begun_at) < 1.0
    assert scene.deleted_twice() == []


@pytest.mark.kit
@pytest.mark.alone
@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_a_kafka_that_is_gone_removes_nobody(own_broker: EmbeddedBroker, tmp_path: Path, fault: str) -> None:
    with Scene(own_settings(own_broker.bootstrap_servers, health_port=0), tmp_path) as scene:
        both = scene.start(), scene.start(members=2)
        own_broker.kill() if fault == "killed" else own_broker.pause()
        time.sleep(MEANWHILE_SECONDS)  # the fault itself
        own_broker.start() if fault == "killed" else own_broker.resume()
        time.sleep(2 * MEANWHILE_SECONDS)  # in which a wrong removal would show
        assert [one.events(REMOVED) for one in both] == [[], []]
