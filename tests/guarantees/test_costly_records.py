"""One absurd record must not stop a fleet: others go on beside what costs much, in the same partition too.

`lab` sends what costs most. Another cluster, which lives in the same partition, must not notice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest
from kafka import KafkaProducer

from evictstream.models.eviction import PodState, RowKind, row_key
from evictstream.models.eviction.pod_rows import pod_value
from evictstream.models.eviction.row_format import FORMAT
from evictstream.models.kubernetes import Toleration
from evictstream.models.messages.object_limits import LARGEST_LIST
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.cluster_names import clusters_beside
from tests.harness.endpoint import Probe
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import Seen, TopicReader, commands
from tests.harness.workers import WorkerProcess

TAINTS, TOLERATIONS = 27_000, 58_000  # 1.0 and 0.98 MB
EMPTY_TOLERATIONS = 350_000  # 1.4 MB, with a space behind each comma
FULL_PODS = 110  # as many as Kubernetes supports on a node
CALM_PODS = 64
LATE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 0.1
ATTEMPTS = 3
ATTACKED = "n0"


def taints(count: int) -> list[dict[str, object]]:
    return [taint(f"t{number}") for number in range(count)]


def in_reverse(count: int, seconds: int | None = None) -> list[dict[str, object]]:
    return [tolerates(seconds, f"t{number}") for number in reversed(range(count))]


def bare(count: int) -> list[dict[str, object]]:
    """As many tolerations as fit into an object."""
    return [{"key": f"t{number}"} for number in reversed(range(count))]


def beyond_all_limits(lab: Feed) -> None:
    lab.node(ATTACKED, *taints(TAINTS))
    for number in range(3):
        lab.pod(ATTACKED, f"absurd-{number}", *bare(TOLERATIONS))
    lab.node(ATTACKED, *taints(TAINTS)[::-1])
    lab.pod(ATTACKED, "absurd-0", *bare(TOLERATIONS)[::-1], event_type="MODIFIED")
    lab.pod(ATTACKED, "empty", *[{}] * EMPTY_TOLERATIONS)  # their row would be six times as large


BEYOND_RECORDS = 7


def as_much_as_may_be(lab: Feed) -> None:
    """What is still decided: as many taints as may be, and as many pods, each with a list of its own."""
    for number in range(FULL_PODS):
        lab.pod(ATTACKED, f"full-{number}", *in_reverse(LARGEST_LIST, 600 + number))
    lab.node(ATTACKED, *taints(LARGEST_LIST))
    lab.node(ATTACKED, *taints(LARGEST_LIST)[::-1])


class Calm:
    """A cluster with pods that tolerate nothing, each on a node of its own."""

    def __init__(self, feed: Feed, reader: TopicReader) -> None:
        self.feed = feed
        self.reader = reader
        self.nodes = [f"m{number}" for number in range(CALM_PODS)]
        for node in self.nodes:
            feed.pod(node, f"pod-{node}")
        feed.flush()

    def taint_all(self) -> None:
        """Taint each node: its pod has to leave at once."""
        for node in self.nodes:
            self.feed.node(node, taint())
        self.feed.flush()

    def latest_seconds(self) -> float:
        """The longest time from the record of a taint to the `Evict`, in seconds."""
        told = TopicReader(self.feed.settings, self.feed.settings.nodes_topic)
        taints = self._of_us(told.wait_for(lambda seen: len(self._of_us(seen)) >= CALM_PODS, "the taints"))
        told.close()
        tainted = {record.value["object"]["metadata"]["name"]: record.appended_at for record in taints}
        evicts = self.reader.wait_for(
            lambda seen: len(commands(self._of_us(seen), "Evict")) >= CALM_PODS, "all evictions"
        )
        evicted = commands(self._of_us(evicts), "Evict")
        return max(evicted[f"pod-{node}"][0].appended_at - tainted[node] for node in self.nodes)

    def _of_us(self, seen: list[Seen]) -> list[Seen]:
        return [record for record in seen if record.value.get("cluster") == self.feed.cluster]


def long_pauses(worker: WorkerProcess) -> float:
    """How often the event loop has stood still for longer than it may."""
    name = "evictstream_loop_pause_seconds_bucket"
    counts = {float(labels[0]): count for (found, *labels), count in Probe(worker).metrics().items() if found == name}
    return counts[math.inf] - counts[LONGEST_PAUSE_SECONDS]


@pytest.mark.alone
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(beyond_all_limits, id="beyond all limits"),
        pytest.param(as_much_as_may_be, id="as much as may be"),
    ],
)
def test_others_are_evicted_in_time_beside_what_costs_most(
    attack: Callable[[Feed], None], service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """What the work itself takes it takes each time; a pause of the machine comes once."""
    worker = start_worker(service).wait_ready()
    read = reader(service.commands_topic)
    for name in clusters_beside("lab", ATTEMPTS, service.partitions):
        paused_before = long_pauses(worker)
        with Feed(service, name) as other:
            calm = Calm(other, read)
            attack(feed)
            feed.flush()
            calm.taint_all()
            assert calm.latest_seconds() < LATE_SECONDS
        if long_pauses(worker) == paused_before:
            break
    else:
        pytest.fail("the event loop stood still for too long each time")
    assert worker.stop() == 0


def test_an_object_beyond_a_limit_is_a_dead_letter(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    worker = start_worker(service).wait_ready()
    feed.node(ATTACKED, taint())
    feed.pod(ATTACKED, "absurd-0", tolerates(300))
    feed.flush()
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: "absurd-0" in commands(seen, "Schedule"), "the pod as it was")
    beyond_all_limits(feed)
    feed.flush()
    letters = reader(service.dead_letters_topic).wait_for(lambda seen: len(seen) >= BEYOND_RECORDS, "dead letters")
    assert [letter.headers["reason"] for letter in letters] == [b"Undecidable"] * BEYOND_RECORDS
    (cancelled,) = commands(read.quiet(1.0), "Cancel")["absurd-0"]
    assert cancelled.value["reason"]["verdict"] == "Undecidable"
    assert not commands(read.seen, "Evict")
    feed.node(ATTACKED, taint())
    feed.pod(ATTACKED, "absurd-1", event_type="MODIFIED")
    feed.flush()
    read.wait_for(lambda seen: commands(seen, "Evict").keys() == {"absurd-1"}, "what is within the limits again")
    assert worker.stop() == 0


@pytest.mark.alone
def test_others_are_evicted_in_time_after_taking_costly_rows_over(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Those of today, and those that versions without limits have written."""
    worker = start_worker(service).wait_ready()
    read = reader(service.commands_topic)
    as_much_as_may_be(feed)
    feed.flush()
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) >= FULL_PODS, "the schedules of the attacked node")
    write_rows_of_before(service)
    for attempt, name in enumerate(clusters_beside("lab", ATTEMPTS, service.partitions)):
        with Feed(service, name) as other:
            calm = Calm(other, read)
            assert worker.stop() == 0
            worker = start_worker(service, f"heir-{attempt}").wait_ready()
            calm.taint_all()
            assert calm.latest_seconds() < LATE_SECONDS
        if not long_pauses(worker):
            break
    else:
        pytest.fail("the event loop stood still for too long each time")
    assert worker.stop() == 0


def write_rows_of_before(settings: Settings) -> None:
    """Put an absurd node with three absurd pods into the changelog, as a version without limits did."""
    node = "n-before"
    key = f"lab/{node}"
    taint_row = [["t", "", 1, 1, None] for _ in range(TAINTS)]
    tolerations = tuple(Toleration(f"t{number}") for number in reversed(range(TOLERATIONS)))
    rows = {row_key(RowKind.NODE, key): msgspec.msgpack.encode([FORMAT, "node", 1, taint_row, None, None, [], False])}
    for number in range(3):
        pod = PodState(
            uid=f"u{number}",
            address=f"lab/p{number}",
            version=1,
            tolerations=tolerations,
            since_us=1,
            tolerations_since_us=1,
        )
        rows[row_key(RowKind.POD, key, pod.uid)] = pod_value(pod)
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers, acks="all", max_request_size=4_000_000)
    partition = partition_of(b"lab", settings.partitions)
    for row, value in rows.items():
        producer.send(settings.changelog_topic, key=row, value=value, partition=partition).get(30)
    producer.close()
