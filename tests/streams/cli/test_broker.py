from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evictstream.streams.broker.admin_client import probe
from evictstream.streams.broker.ports import free_ports
from tests.streams.cli.conftest import COMMAND, TIMEOUT_SECONDS

pytestmark = pytest.mark.kafka


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*COMMAND, "broker", *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGTERM, id="sigterm"), pytest.param(signal.SIGINT, id="sigint", marks=pytest.mark.kit)],
)
def test_prints_its_address_and_ends_cleanly(number: signal.Signals) -> None:
    (port,) = free_ports(1)
    with started("--port", str(port), "-o", "json") as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert line["bootstrapServers"] == f"127.0.0.1:{port}"
        assert "embedded Apache Kafka" in line["description"]
        assert probe(line["bootstrapServers"]) is not None
        process.send_signal(number)
        assert process.wait(TIMEOUT_SECONDS) == 0
    assert probe(line["bootstrapServers"]) is None


def test_a_stop_during_the_start_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, "broker"], env=environment) as process:
        while not list(tmp_path.glob("evictstream-kafka-*/node-1/server.properties")):
            assert process.poll() is None
        process.terminate()
        assert process.wait(TIMEOUT_SECONDS) == 0
    assert list(tmp_path.iterdir()) == []


def test_text_says_what_to_export(tmp_path: Path) -> None:
    with started("--data", str(tmp_path / "kafka")) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        assert str(tmp_path / "kafka") in first
        assert second.startswith("export EVICTSTREAM_BOOTSTRAP_SERVERS=127.0.0.1:")
        process.terminate()
        assert process.wait(TIMEOUT_SECONDS) == 0
    assert (tmp_path / "kafka" / "node-1" / "data" / "meta.properties").exists()
