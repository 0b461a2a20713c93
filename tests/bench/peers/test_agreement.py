from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evictstream.streams.broker.jars import kafka_version, read_lock
from evictstream.streams.broker.locate import Broker
from tests.bench.lab import Lab
from tests.bench.peers.agreement import require_right
from tests.bench.peers.building import SOURCES
from tests.bench.peers.programs import OURS


@pytest.mark.kit
def test_evictstream_does_the_job_that_peers_are_held_to(kafka: Broker, tmp_path: Path) -> None:
    """`make bench` asks the same of each peer before it times one: nothing of the product rests on them."""
    asyncio.run(require_right(Lab(kafka.bootstrap_servers, tmp_path, is_quick=True), OURS))


def test_the_streams_peer_has_the_version_of_the_broker() -> None:
    jars = read_lock((SOURCES / "run-jars.lock").read_text(encoding="utf-8"))
    assert {jar.version for jar in jars if jar.group == "org.apache.kafka"} == {kafka_version()}
