"""Each command without a Kafka ends with 1, and all say why in the same words."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.ports import free_ports
from tests.harness import copies
from tests.kit.demo.test_demo_command import incident
from tests.streams.cli.running import COMMAND, PATIENCE_SECONDS, ROOT
from tests.streams.cli.test_secrets import EVENT, RUNS


@pytest.mark.slow
def test_each_command_says_the_same_of_a_refused_connection(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    with FakeApi() as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        places = {"folder": tmp_path, "incident": incident(tmp_path), "servers": address, "kubeconfig": kubeconfig}
        environment = os.environ | {
            "EVICTSTREAM_BOOTSTRAP_SERVERS": address,
            "EVICTSTREAM_ADMIN_TIMEOUT_SECONDS": "0.5",
            "EVICTSTREAM_HEALTH_PORT": "0",
        }
        started = {
            name: copies.start(
                [*COMMAND, *(argument.format(**places) for argument in arguments)],
                env=environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for name, arguments in RUNS.items()
        }
        ended = {name: process.communicate(EVENT, PATIENCE_SECONDS) for name, process in started.items()}
    assert {name: process.returncode for name, process in started.items()} == dict.fromkeys(RUNS, 1)
    lasts = [said.decode().splitlines()[-1] for _, said in ended.values()]
    said = {json.loads(one)["error"] if one.startswith("{") else one.removeprefix("evictstream: ") for one in lasts}
    (sentence,) = said
    assert address in sentence
