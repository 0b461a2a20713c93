"""A feed of a fake API server into a real Kafka: what the topics say at the end is what the cluster holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.errors import KafkaConnectionError

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.streams.broker.group_membership import finish_joining
from evictstream.streams.errors import ClusterNameTakenError
from evictstream.streams.feed import cluster_feed, feed_lease, progress
from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.settings import Settings
from tests.harness.reading import TopicReader
from tests.streams.feed.feeding import PATIENCE_SECONDS, assert_told, feeding, listed, wait_for

pytestmark = pytest.mark.usefixtures("_short_watches")


@pytest.fixture
def _quick_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_feed, "PROOF_SECONDS", 3.0)
    monkeypatch.setattr(progress, "PROOF_SECONDS", 3.0)
    monkeypatch.setattr(cluster_feed, "_HEARTBEAT_SECONDS", 0.2)


def test_what_is_there_and_what_changes(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.put("Node", "n-3", spec={"taints": [{"key": "k", "effect": "NoExecute"}]})
        api.put("Pod", "later", spec={"nodeName": "n-3"})
        api.put("Pod", "unbound", spec={"nodeName": ""})
        api.remove("Pod", "n-1-a")
        wait_for(lambda: feed.counts["Pod"].events["DELETED"] == 1 and feed.counts["Node"].events["ADDED"] == 3)
    known = assert_told(declared, api)
    assert known.heartbeats >= 2
    assert feed.failure is None


def test_the_labels_of_a_cluster_are_in_its_heartbeats(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path, labels={"tier": "gold"}) as feed:
        listed(feed)
    reader = TopicReader(declared, declared.nodes_topic)
    told = [one.value["clusterLabels"] for one in reader.to_end() if one.value["type"] == "HEARTBEAT"]
    reader.close()
    assert told
    assert all(labels == {"tier": "gold"} for labels in told)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({"list pods": [500, 503]}, id="lists-refused", marks=pytest.mark.kit),
        pytest.param({"list pods": ["cut"], "list nodes": [429]}, id="list-cut"),
        pytest.param({"watch pods": ["cut"]}, id="watch-cut-in-an-object"),
        pytest.param({"watch pods": ["half"]}, id="watch-ended-in-an-object", marks=pytest.mark.kit),
        pytest.param({"watch pods": ["error"]}, id="410-as-event"),
        pytest.param({"watch pods": [410], "watch nodes": [410]}, id="410-as-status", marks=pytest.mark.kit),
        pytest.param({"watch pods": ["garbage"]}, id="a-line-that-is-none", marks=pytest.mark.kit),
        pytest.param({"watch pods": [500, 401, 403]}, id="watches-refused", marks=pytest.mark.kit),
    ],
)
def test_trouble_of_the_api_server_loses_nothing(
    trouble: dict[str, list[int | str | Fault]], declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    lines_that_are_none = trouble.get("watch pods", []).count("garbage")
    api.trouble = trouble
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.put("Pod", "new", spec={"nodeName": "n-1"})
        api.remove("Pod", "n-2-b")
        wait_for(lambda: not any(trouble.values()))
        watches = api.watches("pods")
        api.put("Pod", "newer", spec={"nodeName": "n-2"})
        wait_for(lambda: api.watches("pods") >= watches + 2)
    assert_told(declared, api)
    assert feed.counts["Pod"].broken == lines_that_are_none


def test_what_vanished_while_the_feed_was_away(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.remove("Pod", "n-1-a")
    api.remove("Node", "n-2")
    api.remove("Pod", "n-2-a")
    moved = api.objects["Pod", "n-2-b"]["metadata"]["uid"]
    api.remove("Pod", "n-2-b")
    api.put("Pod", "n-2-b", spec={"nodeName": "n-1"})
    api.forget_history()
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    known = assert_told(declared, api)
    assert moved not in known.objects


@pytest.mark.usefixtures("_quick_proofs")
def test_a_quiet_watch_that_cannot_be_opened_again_stops_heartbeats(
    declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.trouble = {"watch pods": [500] * 1_000}
        api.end_watches()
        api.put("Pod", "missed", spec={"nodeName": "n-1"})
        wait_for(lambda: not feed.is_proven)
        assert "500" in feed.why_not_proven
        before = feed.heartbeats
        time.sleep(1.0)
        assert feed.heartbeats == before
        api.trouble.clear()
        wait_for(lambda: feed.heartbeats > before)


@pytest.mark.usefixtures("_quick_proofs")
def test_no_heartbeat_follows_a_probe_that_outlasts_its_proof(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        probes: list[int | str | Fault] = [Fault(hold_seconds=4.0)] * 10
        api.trouble = {"watch pods": [500] * 1_000, "get namespaces": probes}
        api.end_watches()
        api.put("Pod", "missed", spec={"nodeName": "n-1"})
        wait_for(lambda: len(probes) < 10)
        before = feed.heartbeats
        wait_for(lambda: not feed.is_proven)
        assert feed.heartbeats == before


@pytest.mark.parametrize("uid", [None, pytest.param("another-cluster", marks=pytest.mark.kit)])
def test_versions_that_go_back_begin_an_epoch(
    uid: str | None, declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    with feeding(declared, api, tmp_path, new_epoch=uid is not None) as feed:
        listed(feed)
        kept = api.objects["Pod", "n-1-a"]["metadata"]["uid"]
        api.rebuild(uid=uid)
        api.put("Node", "n-1", spec={})
        api.put("Pod", "n-1-a", uid=kept, spec={"nodeName": "n-1"})
        listed(feed, 2)
    assert assert_told(declared, api).epochs == {0, 1}
    assert feed.epochs == 1


def test_versions_that_went_back_but_not_behind_what_was_kept(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    """What counts is how far the watches came; it is kept with each heartbeat only."""
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        restored = api.version + 1
        for number in range(20):
            api.put("Pod", f"new-{number}", spec={"nodeName": "n-1"})
        wait_for(lambda: feed.counts["Pod"].events["ADDED"] == 24)
        assert feed.heartbeats == 1
        api.rebuild(version=restored)
        api.put("Node", "n-1", spec={})
        api.end_watches()
        listed(feed, 2)
    assert assert_told(declared, api).epochs == {0, 1}


def test_versions_that_went_back_while_the_feed_was_away(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.rebuild()
    api.put("Node", "n-1", spec={})
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    assert assert_told(declared, api).epochs == {0, 1}


def test_a_name_of_another_cluster_is_refused(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.uid = "another"
    with feeding(declared, api, tmp_path) as feed:
        wait_for(lambda: isinstance(feed.refusal, ClusterNameTakenError))
    assert not feed.has_fed
    with feeding(declared, api, tmp_path, new_epoch=True) as feed:
        listed(feed)
    assert assert_told(declared, api).epochs == {0, 1}


def test_a_second_feed_stands_by_until_the_first_one_ends(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as first:
        listed(first)
        with feeding(declared, api, tmp_path) as second:
            time.sleep(3.0)
            assert second.heartbeats == 0
            first.stop()
            first.join(PATIENCE_SECONDS)
            api.remove("Pod", "n-1-a")
            listed(second)
    assert_told(declared, api)


def test_what_is_too_large_for_kafka_is_undecidable(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    large = [{"key": f"key-{number}", "operator": "Exists"} for number in range(200)]
    api.put("Pod", "large", spec={"nodeName": "n-1", "tolerations": large})
    terms = [{"matchExpressions": [{"key": f"key-{number}", "operator": "Exists"}]} for number in range(200)]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    api.put("Pod", "far", spec={"nodeName": "n-1", "affinity": affinity, "tolerations": large[:2]})
    api.put("Node", "n-3", spec={}, metadata={"labels": {f"label-{number}": "x" * 60 for number in range(100)}})
    with feeding(declared.model_copy(update={"max_object_bytes": 4_096}), api, tmp_path) as feed:
        listed(feed)
        assert feed.counts["Pod"].oversized == 1
        assert feed.is_proven
        api.put("Pod", "large", spec={"nodeName": "n-1", "tolerations": large[:2]})
        wait_for(lambda: feed.counts["Pod"].events["MODIFIED"] == 1)
    assert_told(declared, api)


def test_a_feed_that_leads_again_keeps_the_newest_epoch(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_lease, "LEASE_SESSION_SECONDS", 6.5)  # and so is told sooner that the other one has left
    with feeding(declared, api, tmp_path) as first:
        listed(first)
        with feeding(declared, api, tmp_path) as second:
            fail_until(monkeypatch, first, lambda: any(counts.listings for counts in second.counts.values()))
            listed(second)
            reached = api.version
            api.rebuild()
            wait_for(lambda: second.epoch == 1)
            api.put("Node", "n-1", spec={})
            while api.version <= reached + 1:  # so that versions alone do not show the first one what has happened
                api.put("Pod", "n-1-a", spec={"nodeName": "n-1"})
        wait_for(lambda: first.is_proven)
        written = first.counts["Pod"].events["ADDED"]
        api.put("Pod", "newer", spec={"nodeName": "n-1"})
        wait_for(lambda: first.counts["Pod"].events["ADDED"] > written)
    assert first.epoch == 1
    assert first.epochs == 0
    assert_told(declared, api)


@pytest.mark.kit
def test_credentials_that_are_gone_when_it_leads_again(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_feed, "_CREDENTIALS_SECONDS", 0.2)
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        (tmp_path / "kubeconfig").write_text("")
        once = iter([False])
        fail_until(monkeypatch, feed, lambda: next(once, True))
        wait_for(lambda: not feed.is_proven)
        wait_for(lambda: feed.is_leader)
        time.sleep(1.0)  # in which it tries, and must not end
        assert feed.is_alive()
        (tmp_path / "kubeconfig").write_text(api.kubeconfig())
        listed(feed, 2)
    assert feed.failure is None


def fail_until(monkeypatch: pytest.MonkeyPatch, feed: ClusterFeed, is_over: Callable[[], bool]) -> None:
    """Let the feed's lease fail at Kafka, so that it leaves the group, which one that stands by may join late."""
    lease = feed._lease

    def fail(consumer: KafkaConsumer) -> None:
        if threading.current_thread() is lease and not is_over():
            raise KafkaConnectionError
        finish_joining(consumer)

    monkeypatch.setattr(feed_lease, "finish_joining", fail)
