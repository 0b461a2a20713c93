"""Kafka frozen or dead is away to worker, feed and executor alike: one line, probes that name it, one line."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import own_settings
from tests.harness.ends import executor_process, feed_process
from tests.harness.workers import WorkerProcess

PARTS = ("worker", "feed", "executor")
MOST_LINES = {"worker": 16, "feed": 6, "executor": 6}
"""Of an outage and of what follows from it. A worker's are of its two partitions and gates too."""


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        yield found


def start(part: str, settings: Settings, api: FakeApi, folder: Path) -> WorkerProcess:
    if part == "worker":
        return WorkerProcess(settings, folder)
    return (feed_process if part == "feed" else executor_process)(settings, api, folder)


def readyz(process: WorkerProcess) -> tuple[int, str]:
    (served, *_) = process.events("health endpoint started")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{served['port']}/readyz", timeout=5) as answer:
            return answer.status, json.dumps(json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.dumps(json.load(error))
    except OSError as error:
        return 0, str(error)


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["frozen", pytest.param("killed", marks=pytest.mark.kit)])
def test_each_part_says_that_kafka_is_away_and_back(
    failure: str, own_broker: EmbeddedBroker, api: FakeApi, tmp_path: Path
) -> None:
    settings = own_settings(own_broker.bootstrap_servers, health_port=0)
    go, come = {
        "frozen": (own_broker.pause, own_broker.resume),
        "killed": (own_broker.kill, own_broker.start),
    }[failure]
    with ExitStack() as stack:
        parts = {part: stack.enter_context(start(part, settings, api, tmp_path)) for part in PARTS}

        def wait_all(condition: Callable[[WorkerProcess], object], what: str) -> None:
            for part, process in parts.items():
                process.wait_for(lambda process=process: condition(process), f"{part}: {what}", seconds=60)

        wait_all(lambda process: process.events("health endpoint started"), "health")
        wait_all(lambda process: readyz(process)[0] == 200, "that it is ready")
        before = {part: len(process.log()) for part, process in parts.items()}
        go()
        wait_all(lambda process: process.events("Kafka unavailable"), "word that Kafka is away")
        for part, process in parts.items():
            status, body = readyz(process)
            assert status == 503, (part, body)
            assert "Kafka unavailable" in body, (part, body)
        come()
        wait_all(lambda process: process.events("Kafka available again"), "word that Kafka is back")
        wait_all(lambda process: readyz(process)[0] == 200, "that it is ready again")
        for part, process in parts.items():
            assert (len(process.events("Kafka unavailable")), len(process.events("Kafka available again"))) == (1, 1), (
                part
            )
            lines = process.log()[before[part] :]
            events = [line["message"] for line in lines]
            between = lines[events.index("Kafka unavailable") + 1 : events.index("Kafka available again")]
            of_libraries = [line for line in between if not str(line["logger"]).startswith("evictstream")]
            assert not of_libraries, (part, of_libraries)
            assert len(events) <= MOST_LINES[part], (part, events)
