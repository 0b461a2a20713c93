"""Failures in docs/guarantees.md: what comes in: unreadable, repeated, late, or nothing."""

from __future__ import annotations

import json
import signal
import time

from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import commands

PODS = 20


def test_a_bad_record_becomes_a_dead_letter_with_its_reason(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Each becomes a dead letter with its reason and origin, and the stream goes on."""
    worker = start_worker(service).wait_ready()
    pods, nodes = service.pods_topic, service.nodes_topic
    good = feed.pod("n0", "a", tolerates(300))
    key = b"lab"
    without_uid = {**good, "object": {**good["object"], "metadata": {"name": "x", "namespace": "lab"}}}
    wrong_type = {**good, "object": {**good["object"], "spec": {"nodeName": "n0", "tolerations": "none"}}}
    bad_name = {**good, "object": {**good["object"], "spec": {"nodeName": "n/9", "tolerations": []}}}
    cases: list[tuple[str, str, bytes | None, bytes | None]] = [
        ("BadJson", pods, key, b"{not json"),
        ("NullValue", pods, key, None),
        ("BadKey", pods, b"lab/n0", json.dumps(good).encode()),
        ("MissingField", pods, key, json.dumps(without_uid).encode()),
        ("WrongType", pods, key, json.dumps(wrong_type).encode()),
        ("WrongKind", nodes, key, json.dumps(good).encode()),
        ("ForeignCluster", pods, b"other", json.dumps(good).encode()),
        ("BadName", pods, key, json.dumps(bad_name).encode()),
        ("UnknownEventType", pods, key, json.dumps({**good, "type": "EXPLODED"}).encode()),
        ("Oversized", pods, key, json.dumps({**good, "type": "BOOKMARK", "padding": "x" * 1_600_000}).encode()),
    ]
    for _, topic, record_key, value in cases:
        feed.raw(topic, record_key, value)
    # A good key in a partition where it does not belong.
    for number in range(service.partitions):
        feed.raw(pods, key, json.dumps(good).encode(), partition=number)
    feed.pod("n0", "b", tolerates(300))
    feed.node("n0", taint())
    feed.flush()
    letters = reader(service.dead_letters_topic).wait_for(
        lambda seen: len(seen) >= len(cases) + service.partitions - 1, "all dead letters"
    )
    reasons = [letter.headers["reason"].decode() for letter in letters]
    assert sorted(reasons) == sorted([name for name, *_ in cases] + ["WrongPartition"] * (service.partitions - 1))
    for letter in letters:
        described = DeadLetterHeaders.from_headers(letter.headers.items())
        assert described.origin_topic in {pods, nodes}
        assert not described.truncated
    original = {name: value for name, _, _, value in cases}
    by_reason = {letter.headers["reason"].decode(): letter for letter in letters}
    assert by_reason["BadJson"].raw == original["BadJson"]
    assert by_reason["Oversized"].raw == original["Oversized"]
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: commands(seen, "Schedule").keys() == {"a", "b"}, "the readable pods")
    assert worker.stop() == 0


def test_a_damaged_batch_stops_the_worker_and_loses_nothing(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """What was fetched with it is read again: positions are those of what was committed."""
    worker = start_worker(service, "damaged", ("tests.harness.damaged_worker",)).wait_ready()
    read = reader(service.commands_topic)
    feed.pod("n0", "before")
    feed.node("n0", taint())
    feed.flush()
    read.wait_for(lambda seen: commands(seen, "Evict").keys() == {"before"}, "an eviction")
    worker.process.send_signal(signal.SIGUSR1)
    for number in range(PODS):
        feed.pod("n0", f"p{number}")
        feed.flush()
    assert worker.wait_exit() == ExitCode.FOUND_PROBLEM
    last_line = worker.log_file.read_text().strip().splitlines()[-1]
    assert service.pods_topic in last_line
    assert "checksum" in last_line
    again = start_worker(service, "again").wait_ready()
    seen = read.wait_for(lambda seen: len(commands(seen, "Evict")) == PODS + 1, "all evictions")
    assert {len(found) for found in commands(seen, "Evict").values()} == {1}
    assert again.stop() == 0


def test_a_duplicate_or_outdated_event_changes_nothing(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """No change, nothing sent."""
    worker = start_worker(service).wait_ready()
    old_node = feed.node("n0", taint())
    old_pod = feed.pod("n0", "a", tolerates(300))
    feed.node("n0")  # the taint goes: a later replay of its arrival must not bring it back
    gone = feed.pod("n0", "b", tolerates(300))
    feed.pod("n0", "b", tolerates(300), event_type="DELETED")
    new_pod = feed.pod("n0", "a", tolerates(200), event_type="MODIFIED")
    feed.flush()
    read = reader(service.commands_topic)
    decisions = reader(service.decisions_topic)
    read.quiet(2.0)
    before = len(read.seen), len(decisions.quiet(1.0))
    for event in (old_node, old_node):
        feed.raw(service.nodes_topic, b"lab", json.dumps(event).encode())
    for event in (old_pod, new_pod, gone, old_pod, new_pod):
        feed.raw(service.pods_topic, b"lab", json.dumps(event).encode())
    feed.flush()
    read.quiet(2.0)
    assert (len(read.seen), len(decisions.quiet(1.0))) == before
    feed.node("n0", taint())
    feed.flush()
    seen = read.wait_for(lambda seen: len(seen) > before[0], "the taint that is really there")
    assert seen[-1].value["pod"] == "a"
    assert seen[-1].value["reason"]["toleration"]["tolerationSeconds"] == 200
    assert len(read.quiet(1.0)) == before[0] + 1
    assert worker.stop() == 0


def test_a_pod_replaced_on_another_node_ends_the_old_eviction(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """The first event of the new pod is enough: no event reports the end of the old one."""
    silence = 2.0
    impatient = service.model_copy(update={"result_silence_seconds": silence, "retry_base_seconds": 0.5})
    worker = start_worker(impatient).wait_ready()
    read = reader(service.commands_topic)
    decisions = reader(service.decisions_topic)
    old, new = "n0", "n1"
    feed.node(old, taint())
    feed.node(new)
    feed.pod(old, "web", tolerates(1), uid="web-1")
    feed.flush()
    read.wait_for(lambda seen: len(commands(seen, "Evict").get("web", ())) >= 2, "a repeat of what is owed")
    feed.pod(new, "web", tolerates(1), uid="web-2")
    feed.flush()
    told = decisions.wait_for(lambda seen: any(found.value["decision"] == "Completed" for found in seen), "its end")
    assert [
        (found.value["verdict"], found.value["podUid"]) for found in told if found.value["decision"] == "Completed"
    ] == [("PodReplaced", "web-1")]
    before = len(read.quiet(0.5))
    seen = read.quiet(3 * silence)
    assert len(seen) == before, "sent again although the pod is gone"
    assert {(found.value["node"], found.value["podUid"]) for found in seen} == {(old, "web-1")}
    assert worker.stop() == 0


def test_a_silent_feed_holds_back_only_its_own_evictions(
    service: Settings, start_worker: StartWorker, reader: OpenReader
) -> None:
    """The evictions of a cluster whose feed fell silent wait, those of others go on, and none is lost."""
    nervous = service.model_copy(update={"feed_silence_limit_seconds": 4.0})
    worker = start_worker(nervous).wait_ready()
    read = reader(service.commands_topic)
    with Feed(service, "silent") as silent, Feed(service, "lively") as lively, Feed(service, "mute") as mute:
        for feed in (silent, lively, mute):
            feed.node("n0", taint())
            feed.pod("n0", f"{feed.cluster}-pod", tolerates(8))
            feed.flush()
        silent.heartbeat()
        lively.heartbeat()
        started_at = time.time()
        while time.time() < started_at + 11:
            lively.heartbeat()
            time.sleep(1)
        issued = commands(read.quiet(0.5), "Evict").keys()
        assert issued == {"lively-pod", "mute-pod"}, "mute never sent a heartbeat, so its silence says nothing"
        silent.heartbeat()
        read.wait_for(lambda seen: "silent-pod" in commands(seen, "Evict"), "the eviction that waited", seconds=5)
    assert worker.stop() == 0


def test_a_forgotten_cluster_is_cancelled_and_gets_new_ids(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """What is open is cancelled, the rows go, and the same pods fed again get new evictions with new ids."""
    worker = start_worker(service).wait_ready()
    read = reader(service.commands_topic)
    for n in range(4):
        feed.node(f"n{n}", taint())
        feed.pod(f"n{n}", f"p{n}", tolerates(300))
    feed.flush()
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == 4, "schedules")
    feed.signal("FORGET", topics=(service.nodes_topic,))
    seen = read.wait_for(lambda seen: len(commands(seen, "Cancel")) == 4, "cancels")
    assert {found[0].value["reason"]["verdict"] for found in commands(seen, "Cancel").values()} == {"ClusterForgotten"}
    for n in range(4):
        feed.node(f"n{n}", taint())
        feed.pod(f"n{n}", f"p{n}", tolerates(300))
    feed.flush()
    seen = read.wait_for(lambda seen: all(len(f) == 2 for f in commands(seen, "Schedule").values()), "new schedules")
    for found in commands(seen, "Schedule").values():
        assert found[0].value["evictionId"] != found[1].value["evictionId"], "an id was used again after its cancel"
    assert worker.stop() == 0
