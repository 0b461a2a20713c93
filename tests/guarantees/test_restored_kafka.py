"""Kafka is destroyed and restored from a backup, by the steps of docs/kafka-failures.md.

The backup is the data folder as it stood at one moment, like a snapshot of a volume; transactions may be open in it.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import own_settings
from tests.harness.endpoint import Probe
from tests.harness.ends import MAIN
from tests.harness.workers import STOP_SECONDS, WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.kit]

TAINT = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}
WINDOW_SECONDS = 60
"""Long enough to be open from before the backup until after the restore."""

PATIENCE_SECONDS = 120.0


class Cluster:
    """Nodes and pods of the API server, and when taints came."""

    def __init__(self, api: FakeApi) -> None:
        self.tainted_at: dict[str, float] = {}
        self._api = api

    def put_node(self, name: str, *, is_tainted: bool = False) -> None:
        if is_tainted:
            self.tainted_at[name] = time.time()
        self._api.put("Node", name, uid=f"uid-{name}", spec=TAINT if is_tainted else {"taints": []})

    def put_pod(self, name: str, node: str, seconds: int | None = None) -> None:
        toleration = {"key": "maintenance", "operator": "Exists", "tolerationSeconds": seconds}
        spec = {"nodeName": node, "tolerations": [] if seconds is None else [toleration]}
        self._api.put("Pod", name, uid=f"uid-{name}", spec=spec, status={"phase": "Running"})

    def removed_at(self, name: str) -> list[float]:
        return [write.at for write in self._api.removals(name)]


def copied(source: Path, target: Path) -> None:
    """Copy a folder; Kafka's indexes are large and empty."""
    subprocess.run(["/bin/cp", "-a", "--sparse=always", str(source), str(target)], check=True)


def wait_for(condition: Callable[[], object], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.1)


class Service:
    """Feed, worker and executor of one cluster, started and stopped as the page says."""

    def __init__(self, settings: Settings, api: FakeApi, folder: Path) -> None:
        (folder / "kubeconfig").write_text(api.kubeconfig())
        self._settings = settings
        self._folder = folder
        self._of_cluster = ("--cluster", "prod", "--kubeconfig", str(folder / "kubeconfig"))
        self._running: list[WorkerProcess] = []

    def start_worker(self) -> None:
        self._start("worker", "worker").wait_ready()

    def start_feed(self) -> None:
        feed = self._start("feed", "feed", *self._of_cluster)
        probe = Probe(feed)
        proven = ("evictstream_feed_proven", "prod")
        feed.wait_for(lambda: probe.metrics().get(proven) == 1, "proof", PATIENCE_SECONDS)

    def start_executor(self) -> None:
        executor = self._start("executor", "execute", *self._of_cluster, "--mode", "delete")
        executor.wait_for(lambda: executor.events("executor started"), "cluster")

    def stop(self) -> None:
        for process in self._running:
            process.process.send_signal(signal.SIGTERM)
        assert [process.process.wait(STOP_SECONDS) for process in self._running] == [0] * len(self._running)
        self._running.clear()

    def kill(self) -> None:
        for process in self._running:
            process.kill()

    def _start(self, name: str, *arguments: str) -> WorkerProcess:
        process = WorkerProcess(self._settings, self._folder, name, (MAIN, *arguments)).start()
        self._running.append(process)
        return process


def test_restored_topics_evict_each_pod_once_and_none_early(tmp_path: Path) -> None:
    data, backup = tmp_path / "kafka" / "node-1", tmp_path / "backup"
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(data=tmp_path / "kafka"))
        api = stack.enter_context(FakeApi())
        service, cluster = Service(own_settings(broker.bootstrap_servers), api, tmp_path), Cluster(api)
        stack.callback(service.kill)
        for node in ("n-1", "n-2", "n-3"):
            cluster.put_node(node)
        service.start_worker()
        service.start_feed()
        service.start_executor()

        cluster.put_pod("gone", "n-1")
        cluster.put_pod("long", "n-1", WINDOW_SECONDS)
        cluster.put_pod("spared", "n-2", WINDOW_SECONDS)
        cluster.put_node("n-1", is_tainted=True)
        cluster.put_node("n-2", is_tainted=True)
        wait_for(lambda: cluster.removed_at("gone"), "an eviction before the backup")
        broker.pause()
        copied(data, backup)
        broker.resume()
        cluster.put_pod("late", "n-3")
        cluster.put_pod("new", "n-3", WINDOW_SECONDS // 3)
        cluster.put_node("n-3", is_tainted=True)
        wait_for(lambda: cluster.removed_at("late"), "an eviction behind the backup")
        cluster.put_node("n-2")

        service.stop()
        broker.kill()
        shutil.rmtree(data)
        copied(backup, data)
        broker.start()
        service.start_worker()
        service.start_feed()
        service.start_executor()
        wait_for(lambda: cluster.removed_at("long") and cluster.removed_at("new"), "evictions after the restore")
        service.stop()

        times = {name: cluster.removed_at(name) for name in ("gone", "late", "long", "new", "spared")}
        assert {name: len(at) for name, at in times.items()} == {"gone": 1, "late": 1, "long": 1, "new": 1, "spared": 0}
        assert times["long"][0] >= cluster.tainted_at["n-1"] + WINDOW_SECONDS
        assert times["new"][0] >= cluster.tainted_at["n-3"] + WINDOW_SECONDS // 3
