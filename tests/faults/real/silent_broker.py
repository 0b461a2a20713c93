"""One of three brokers goes silent: its machine is gone without a word, so nothing is refused and nothing answered.

Two minutes of waiting, so `make faults` runs it and `make test` does not: pytest takes it by its name alone.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import KafkaError

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import own_settings
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import TopicReader, commands, instant
from tests.harness.workers import WorkerProcess

SILENT_SECONDS = 45.0
LATEST_SECONDS = 33.0  # session of a broker 9 s, of a member 10 s, then a takeover; 23 s were seen
NODES = 12
PODS = 84  # one in each second


def group_coordinator(settings: Settings) -> int:
    async def look() -> int:
        client = AIOKafkaClient(bootstrap_servers=settings.bootstrap_servers)
        await client.bootstrap()
        try:
            while True:
                try:
                    return int(await client.coordinator_lookup(CoordinationType.GROUP, settings.group_id))
                except KafkaError:
                    await asyncio.sleep(0.2)
        finally:
            await client.close()

    return asyncio.run(asyncio.wait_for(look(), 20))


@pytest.mark.kafka
def test_one_of_three_brokers_goes_silent(tmp_path: Path) -> None:
    """Evictions go on within half a minute, also where it had led the group."""
    with EmbeddedBroker(nodes=3, heap_megabytes=256) as broker:
        patient = {"session_timeout_seconds": 10.0, "heartbeat_interval_seconds": 3.0, "lease_margin_seconds": 3.0}
        settings = own_settings(
            broker.bootstrap_servers, replication_factor=3, min_insync_replicas=2, partitions=6, **patient
        )
        with WorkerProcess(settings, tmp_path) as worker, Feed(settings) as feed:
            worker.wait_ready()
            for n in range(NODES):
                feed.node(f"n{n}")
            for p in range(PODS):
                feed.pod(f"n{p % NODES}", f"p{p}", tolerates(10 + p))
            for n in range(NODES):
                feed.node(f"n{n}", taint())
            feed.flush()
            reader = TopicReader(settings, settings.commands_topic)
            reader.wait_for(lambda seen: len(commands(seen, "Schedule")) == PODS, "all schedules")
            reader.wait_for(lambda seen: len(commands(seen, "Evict")) > 4, "first evictions")
            reader.close()  # it would wait for the silent one
            silent = broker.nodes[group_coordinator(settings) - 1]
            silent.pause()
            time.sleep(SILENT_SECONDS)  # the fault itself
            silent.resume()
            reader = TopicReader(settings, settings.commands_topic)
            seen = reader.wait_for(lambda seen: len(commands(seen, "Evict")) == PODS, "all evictions", seconds=90)
            seen = reader.quiet(3.0)
            reader.close()
            deadlines = {pod: instant(found[0].value["deadline"]) for pod, found in commands(seen, "Schedule").items()}
            late = {}
            for pod, found in commands(seen, "Evict").items():
                assert len(found) == 1, f"{pod} was issued {len(found)} times"
                late[pod] = found[0].appended_at - deadlines[pod]
            assert min(late.values()) >= -0.001
            assert max(late.values()) <= LATEST_SECONDS
            assert worker.stop() == 0
