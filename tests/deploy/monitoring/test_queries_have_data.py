"""A real Prometheus scrapes feed, worker and executor while pods are evicted: each query of a dashboard has data."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.producers import open_producer
from tests.conftest import MakeSettings
from tests.deploy.monitoring.binaries import PROMETHEUS
from tests.deploy.monitoring.boards import BOARDS
from tests.deploy.monitoring.files import RULES
from tests.deploy.pages import ROOT
from tests.harness.free_port import free_port
from tests.harness.workers import WorkerProcess
from tests.models.steering.test_policies import policy_record

MAIN = "evictstream.streams.cli.main"
SILENCE_SECONDS = 12.0  # longer than the pause between two heartbeats
PATIENCE_SECONDS = 90.0
TAINTS = [{"key": "maintenance", "effect": "NoExecute"}]
BRIEFLY = [{"operator": "Exists", "tolerationSeconds": 25}]

QUERIES = {
    f"{board.title}: {panel.title}, {legend}": query
    for board in BOARDS.values()
    for row in board.rows.values()
    for panel in row
    for legend, query in panel.queries.items()
}


class PrometheusServer:
    """A Prometheus that scrapes each second; what a dashboard asks is asked over all of its time."""

    def __init__(self, folder: Path, ports: dict[str, int]) -> None:
        self.began = time.time()
        self._url = f"http://127.0.0.1:{free_port()}"
        jobs = [
            {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for name, port in ports.items()
        ]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ROOT / RULES)],
            "scrape_configs": jobs,
        }
        (folder / "prometheus.json").write_text(json.dumps(config), encoding="utf-8")
        with (folder / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    PROMETHEUS.folder() / "prometheus",
                    f"--config.file={folder / 'prometheus.json'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address={self._url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, path: str, **parameters: object) -> Any:
        """Return the data of an answer; nothing while it starts."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{query}", timeout=10) as answer:  # noqa: S310 - ours
                return json.load(answer)["data"]
        except OSError:
            return None

    def has_data(self, query: str) -> bool:
        """Whether a query has had a value that is a number, at any time."""
        for name, value in (("$__rate_interval", "5s"), ("$cluster", ".*"), ("$instance", ".*")):
            query = query.replace(name, value)
        data = self.ask("query_range", query=query, start=self.began, end=time.time(), step=1)
        return any(
            not math.isnan(float(value)) for one in (data or {"result": []})["result"] for _, value in one["values"]
        )


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        for node in ("n-1", "n-2"):
            found.put("Node", node, uid=f"uid-{node}", spec={})
        found.put("Pod", "a", uid="uid-a", spec={"nodeName": "n-1"}, status={"phase": "Running"})
        found.put(
            "Pod", "b", uid="uid-b", spec={"nodeName": "n-2", "tolerations": BRIEFLY}, status={"phase": "Running"}
        )
        yield found


@pytest.mark.kafka
@pytest.mark.kit
def test_each_query_of_a_dashboard_has_data(make_settings: MakeSettings, api: FakeApi, tmp_path: Path) -> None:
    if not PROMETHEUS.are_built():
        pytest.skip(PROMETHEUS.why_missing())
    settings = make_settings(feed_silence_limit_seconds=SILENCE_SECONDS)
    declare_topics(settings)
    (tmp_path / "kubeconfig").write_text(api.kubeconfig())
    of_lab = ("--kubeconfig", str(tmp_path / "kubeconfig"), "--cluster", "lab")
    commands = {"feed": ("feed", *of_lab), "worker": ("worker",), "executor": ("execute", *of_lab, "--mode", "delete")}
    ports = {name: free_port() for name in commands}
    processes = {
        name: WorkerProcess(
            settings, tmp_path, name, (MAIN, *command), more={"EVICTSTREAM_HEALTH_PORT": str(ports[name])}
        )
        for name, command in commands.items()
    }
    with contextlib.ExitStack() as stack:
        for process in processes.values():
            stack.enter_context(process)
        prometheus = PrometheusServer(tmp_path, ports)
        stack.callback(prometheus.process.wait)
        stack.callback(prometheus.process.terminate)
        missing = dict(QUERIES)

        def wait_for(*queries: str) -> None:
            until = time.monotonic() + PATIENCE_SECONDS
            while not all(map(prometheus.has_data, queries)):
                assert time.monotonic() < until, queries
                time.sleep(0.5)

        wait_for("evictstream_feed_proven == 1", "evictstream_executor_served == 1", "evictstream_partitions_owned > 0")
        brake: dict[str, object] = {
            "apiVersion": "evictstream.io/v1",
            "kind": "Brake",
            "id": "b-1",
            "why": "a test",
            "by": "anna",
        }
        brake["heldAt"] = "2026-11-21T02:24:00Z"
        producer = stack.enter_context(open_producer(settings, delivery_seconds=30.0))
        producer.send(settings.brakes_topic, key=b"b-1", value=json.dumps(brake).encode()).get(30)
        guard = policy_record("p-1", spec={"guard": {"count": 1, "withinSeconds": 3600}})
        producer.send(settings.policies_topic, key=b"p-1", value=guard).get(30)
        wait_for("evictstream_brakes == 1", "evictstream_policies == 1")
        for node in ("n-1", "n-2"):
            api.put("Node", node, uid=f"uid-{node}", spec={"taints": TAINTS})
        wait_for("evictstream_evictions_held == 1", "evictstream_incident_waiting_seconds >= 0")
        producer.send(settings.policies_topic, key=b"p-1", value=None).get(30)
        producer.send(settings.brakes_topic, key=b"b-1", value=None).get(30)
        wait_for("taint_eviction_controller_pod_deletions_total == 1")
        processes["feed"].freeze()  # the pod that tolerates the taint for a while is held back
        silent = 'ALERTS{alertname="EvictstreamFeedSilent", alertstate="pending", cluster="lab"}'
        wait_for("evictstream_evictions_waiting == 1", "evictstream_cluster_feed_silent_seconds > 0", silent)
        processes["feed"].thaw()
        wait_for("taint_eviction_controller_pod_deletions_total == 2")
        until = time.monotonic() + PATIENCE_SECONDS
        while missing := {where: query for where, query in missing.items() if not prometheus.has_data(query)}:
            assert time.monotonic() < until, missing
            time.sleep(1)
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert {rule["health"] for rule in rules} == {"ok"}
