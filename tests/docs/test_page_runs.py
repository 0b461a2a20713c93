"""The blocks `sh run` of all pages, run as they stand against a real Kafka and a fake API server.

One service lives through all pages in their order. Addresses, names and numbers of copies are those of the test.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import KafkaProducer

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.docs.shell_blocks import Block, shell_blocks, through
from tests.harness.ends import MAIN
from tests.harness.workers import STOP_SECONDS, WorkerProcess
from tests.kit.demo.test_demo_command import QUICK
from tests.streams.cli.running import run

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LASTING = {"worker": "partitions taken over", "feed": "listed", "execute": "executor started", "commands": '"Evict"'}
"""What each command that runs until it is stopped says when it is at work."""

CONTEXTS = ("admin@eu", "admin@us", "a", "b")
OF_WORKERS = ("explain",)
"""Commands that show what a worker has read: a person types them later than a test does."""

BROKEN = "nodes/0/7"
"""The dead letter of runbooks.md."""


@pytest.fixture
def shown(make_settings: MakeSettings) -> Settings:
    """Settings of the service; its first input is a record that cannot be used, where the page has it."""
    settings = make_settings(partitions=8)
    declare_topics(settings)
    _, partition, offset = BROKEN.split("/")
    with contextlib.closing(KafkaProducer(bootstrap_servers=settings.bootstrap_servers)) as producer:
        for _ in range(int(offset) + 1):
            producer.send(settings.nodes_topic, b"{}", b"lab", partition=int(partition))
    return settings


class Clusters:
    """A tainted node in each; the one that a kubeconfig leads to at first gets more pods on it."""

    def __init__(self, stack: ExitStack) -> None:
        self._apis = [stack.enter_context(FakeApi()) for _ in CONTEXTS]
        self._pods = 0
        for api in self._apis:
            api.put("Node", "n-1", uid="uid-n-1", spec={"taints": [{"key": "maintenance", "effect": "NoExecute"}]})

    def kubeconfig(self) -> str:
        """Name each by its context."""
        configs = [json.loads(api.kubeconfig()) for api in self._apis]
        servers = [config["clusters"][0]["cluster"] for config in configs]
        merged = {
            "clusters": [{"name": name, "cluster": it} for name, it in zip(CONTEXTS, servers, strict=True)],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "somebody"}} for name in CONTEXTS],
            "current-context": CONTEXTS[0],
        }
        return json.dumps({**configs[0], **merged})

    def add_pod(self) -> None:
        """Add a pod that has to leave."""
        self._pods += 1
        name = f"p-{self._pods}"
        self._apis[0].put("Pod", name, uid=f"uid-{name}", spec={"nodeName": "n-1"}, status={"phase": "Running"})


class Shell:
    """Runs the lines of pages; what has run is not run again, but for the worker that other lines need."""

    def __init__(self, settings: Settings, clusters: Clusters, folder: Path) -> None:
        (folder / "kubeconfig").write_text(clusters.kubeconfig())
        self._settings = settings
        self._clusters = clusters
        self._folder = folder
        self._more = {**QUICK, "EVICTSTREAM_PARTITIONS": "8", "KUBECONFIG": str(folder / "kubeconfig")}
        self._ran = set[tuple[str, ...]]()

    def run(self, block: Block) -> None:
        """Run each line of a block; what lasts is stopped when it is at work, or with its block behind `&`."""
        with ExitStack() as background:
            for line in block.lines:
                if line.startswith("export "):
                    continue  # tests/docs/test_shell_blocks.py looks at the names
                words, rest = through(line)
                if tuple(words) in self._ran and words != ["worker"]:
                    continue
                self._ran.add(tuple(words))
                if words[0] not in LASTING:
                    self._to_its_end(words, rest)
                elif rest == ["&"]:
                    background.enter_context(self._at_work(words))
                else:
                    with self._at_work(words):
                        pass

    def _to_its_end(self, words: list[str], rest: list[str]) -> None:
        result = run(self._settings, *words, stdin=b"", **self._more)
        until = time.monotonic() + STOP_SECONDS
        while result.returncode and words[0] in OF_WORKERS and time.monotonic() < until:
            result = run(self._settings, *words, stdin=b"", **self._more)
        assert result.returncode == 0, result.stderr.decode()
        if rest:
            assert rest[0] == ">"
            (self._folder / rest[1]).write_bytes(result.stdout)

    @contextlib.contextmanager
    def _at_work(self, arguments: list[str]) -> Iterator[None]:
        with WorkerProcess(self._settings, self._folder, arguments[0], (MAIN, *arguments), self._more) as running:
            said = LASTING[arguments[0]]
            # A feed lists nodes and pods of each cluster; what it has begun, other commands would find cut off.
            times = 2 * arguments.count("--cluster") if arguments[0] == "feed" else 1

            def is_at_work() -> bool:
                self._clusters.add_pod()
                return running.log_file.read_text().count(said) >= times

            running.wait_for(is_at_work, said)
            yield
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(STOP_SECONDS) == 0, running.log_file.read_text()


def test_pages_run_as_they_stand(shown: Settings, tmp_path: Path) -> None:
    with ExitStack() as stack:
        shell = Shell(shown, Clusters(stack), tmp_path)
        for block in shell_blocks():
            if block.words == ("sh", "run"):
                shell.run(block)
