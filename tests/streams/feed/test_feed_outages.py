"""Feed processes whose Kafka goes away, and that are stopped and frozen: `make faults` runs what takes long."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from kafka.errors import KafkaTimeoutError

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.feed_states import FeedState, read_state
from evictstream.streams.broker.producers import CLOSE_SECONDS
from evictstream.streams.errors import BrokerError, BrokerUnreachableError
from evictstream.streams.feed import cluster_feed
from evictstream.streams.feed.cluster_feed import RELEASE_SECONDS
from evictstream.streams.feed.feed_lease import LEASE_SECONDS, LEASE_SESSION_SECONDS
from evictstream.streams.feed.metric_definitions import FeedMetric
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.guarantees.conftest import own_settings
from tests.harness.endpoint import Probe
from tests.harness.ends import feed_process, group_members
from tests.harness.known_cluster import KnownCluster
from tests.harness.reading import TopicReader
from tests.harness.workers import WorkerProcess
from tests.streams.feed.feeding import assert_told, feeding, listed, wait_for

pytestmark = pytest.mark.kafka

STANDBY_SECONDS = 3.0
START_SECONDS = 5.0
"""Three, and two for the start of a process on a busy machine."""


@pytest.fixture
def outside(make_settings: MakeSettings, declared: Settings) -> Settings:
    """Settings for processes, on the topics of `declared`."""
    return make_settings(health_port=0)


def group(settings: Settings) -> str:
    return f"{settings.application_id}-feed-lab"


def wait_listed(feed: WorkerProcess, times: int = 1) -> None:
    feed.wait_for(lambda: len(feed.events("listed")) >= 2 * times, "listings", seconds=60)


@pytest.mark.alone
def test_a_killed_feed_is_followed_in_seconds(
    declared: Settings, outside: Settings, api: FakeApi, tmp_path: Path
) -> None:
    """By one that stands by, and by one that starts; the session of the dead one lasts 10 s."""
    with feed_process(outside, api, tmp_path) as first:
        wait_listed(first)
        with feed_process(outside, api, tmp_path) as second:
            second.wait_for(lambda: len(group_members(declared, group(declared))) == 2, "one that stands by")
            first.kill()
            killed_at = time.monotonic()
            wait_listed(second)
            assert time.monotonic() - killed_at < STANDBY_SECONDS
            second.kill()
            killed_at = time.monotonic()
            with feed_process(outside, api, tmp_path) as third:
                wait_listed(third)
                assert time.monotonic() - killed_at < START_SECONDS
    assert_told(declared, api)


@pytest.mark.kit
def test_sigterm_writes_what_was_read_and_leaves(
    declared: Settings, outside: Settings, api: FakeApi, tmp_path: Path
) -> None:
    """Changes of pods gather at the API server: those that have not been read are in the next feed's listing."""
    with feed_process(outside, api, tmp_path) as feed:
        wait_listed(feed)
        for number in range(300):
            api.put("Pod", f"more-{number}", spec={"nodeName": "n-1"})
        reader = TopicReader(declared, declared.pods_topic)
        reader.wait_for(lambda seen: "more-0" in str(seen), "the first of them")
        reader.close()
        assert feed.stop() == 0
        assert not group_members(declared, group(declared))
        assert feed.events("feed stopping")
    written = {uid for uid, (kind, *_) in KnownCluster(declared, "lab").objects.items() if kind == "Pod"}
    in_order = [one["metadata"]["uid"] for one in api.objects.values() if "nodeName" in one["spec"]]
    assert written == set(in_order[: len(written)])  # no hole
    with feed_process(outside, api, tmp_path) as successor:
        wait_listed(successor)
        assert successor.stop() == 0
    assert len(assert_told(declared, api).objects) == 306


@pytest.mark.kit
def test_sigterm_while_kafka_is_gone_loses_nothing_read(
    own_broker: EmbeddedBroker, api: FakeApi, tmp_path: Path
) -> None:
    settings = own_settings(own_broker.bootstrap_servers, health_port=0)
    with feed_process(settings, api, tmp_path) as feed:
        wait_listed(feed)
        probe = Probe(feed)
        for number in range(300):
            api.put("Pod", f"more-{number}", spec={"nodeName": "n-1"})
        own_broker.kill()
        wait_for(lambda: probe.metrics()[(FeedMetric.IN_FLIGHT.name,)] > 0)
        read = int(probe.metrics()[(FeedMetric.EVENTS.name, "lab", "Pod", "ADDED")])
        feed.process.terminate()
        time.sleep(RELEASE_SECONDS + CLOSE_SECONDS)  # the fault itself: longer than the feed waits for its group
        own_broker.start()
        assert feed.wait_exit() == 0
    assert len(KnownCluster(settings, "lab").objects) >= read + 2  # the nodes


def test_a_kafka_that_fails_when_a_feed_begins(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[BrokerError] = [BrokerUnreachableError("kafka:9092", waited_seconds=1.0)]

    def read(settings: Settings, cluster: str) -> FeedState | None:
        if left:
            raise left.pop() from KafkaTimeoutError()
        return read_state(settings, cluster)

    monkeypatch.setattr(cluster_feed, "read_state", read)
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    assert feed.failure is None
    assert not left


@pytest.mark.kit
def test_a_feed_that_its_group_does_not_confirm_writes_nothing(
    own_broker: EmbeddedBroker, api: FakeApi, tmp_path: Path
) -> None:
    settings = own_settings(own_broker.bootstrap_servers)
    with feeding(settings, api, tmp_path) as feed:
        listed(feed)
        threads = threading.active_count()
        own_broker.pause()
        try:
            wait_for(lambda: not feed.is_leader and not feed.is_proven, LEASE_SECONDS + 6)
        finally:
            own_broker.resume()
        listed(feed, 2)
        assert threading.active_count() < threads + 10  # some, of connections that end
    assert_told(settings, api)


@pytest.mark.kit
@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_a_kafka_that_is_gone_beyond_a_session(
    own_broker: EmbeddedBroker, api: FakeApi, tmp_path: Path, fault: str
) -> None:
    """What changed meanwhile is told afterwards, though the API server has forgotten its history."""
    settings = own_settings(own_broker.bootstrap_servers, health_port=0)
    with feed_process(settings, api, tmp_path) as feed:
        wait_listed(feed)
        own_broker.kill() if fault == "killed" else own_broker.pause()
        for number in range(50):
            api.put("Pod", f"short-{number}", spec={"nodeName": "n-1"})
        time.sleep(LEASE_SESSION_SECONDS + 6)  # the fault itself
        for number in range(50):
            api.remove("Pod", f"short-{number}")
        api.remove("Pod", "n-1-a")
        api.put("Pod", "long", spec={"nodeName": "n-2"})
        api.forget_history()
        own_broker.start() if fault == "killed" else own_broker.resume()
        wait_listed(feed, 2)
        api.put("Pod", "later", spec={"nodeName": "n-2"})
        reader = TopicReader(settings, settings.pods_topic)
        reader.wait_for(lambda seen: '"later"' in str([one.raw for one in seen]), "what came later", seconds=60)
        reader.close()
        assert feed.stop() == 0
    assert_told(settings, api)
    assert not group_members(settings, group(settings))


@pytest.mark.kit
def test_a_frozen_feed_does_no_harm_afterwards(
    declared: Settings, outside: Settings, api: FakeApi, tmp_path: Path
) -> None:
    """The one that stood by begins an epoch meanwhile; the late one stands by, and then goes on in that epoch."""
    with feed_process(outside, api, tmp_path) as late:
        wait_listed(late)
        with feed_process(outside, api, tmp_path) as other:
            other.wait_for(lambda: len(group_members(declared, group(declared))) == 2, "a feed that stands by")
            late.freeze()
            reached = api.version
            api.put("Pod", "n-1-a", spec={"nodeName": "n-1"}, status={"phase": "Running"})  # waits in its socket
            api.rebuild()
            api.put("Node", "n-1", spec={})
            wait_listed(other)
            for number in range(reached):
                api.put("Pod", f"new-{number % 9}", spec={"nodeName": "n-1"})
            late.thaw()
            late.wait_for(lambda: len(group_members(declared, group(declared))) == 2, "the late one in its group")
            time.sleep(3.0)  # in which nothing may happen
            assert other.process.poll() is None
            assert len(late.events("feed started")) == 1
            known = assert_told(declared, api)
            assert other.stop() == 0
        api.put("Pod", "last", spec={"nodeName": "n-1"})
        wait_listed(late, 2)
        assert late.stop() == 0
    assert known.epochs == {0, 1}
    assert assert_told(declared, api).epochs == {0, 1}
    kept = read_state(declared, "lab")
    assert kept is not None
    assert (kept.epoch, kept.cluster_uid) == (1, api.uid)
