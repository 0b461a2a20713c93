"""A storm in one cluster delays the others of its partition only within bounds: their timers, and their records.

`lab` is listed anew while nodes of it fall ill. Another cluster lives in the same partition; its pods come due
meanwhile, and its own nodes are tainted between the records of the storm.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest

from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.settings import Settings
from tests.bench.figures import percentile
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.cluster_names import clusters_beside
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import Seen, TopicReader, commands, instant

PODS_PER_NODE = 50
TIMERS_LATE_SECONDS = 0.5
"""From the deadlines of the other cluster to `issuedAt`, of 99 in 100."""

RECORDS_LATE_SECONDS = 5.0
"""From the other cluster's record of a taint to the `Evict` that follows from it, of all."""

FIRST_AFTER_SECONDS = 5
"""Until all that will be due is scheduled; then the storm begins."""

DUE_A_SECOND = 100
TAINTS = 20
FEWEST_DUE = 20
"""So many deadlines have to fall into the storm, or it was none: a fifth of a second of `DUE_A_SECOND`."""


class Storm(NamedTuple):
    """What happens to a cluster at once.

    Attributes:
        pods: so many are listed.
        evictions: so many of them are on nodes that are tainted in the middle of it, and tolerate nothing.
        seconds: it lasts no longer.
    """

    pods: int
    evictions: int
    seconds: int

    def records(self, feed: Feed) -> Iterator[None]:
        """Tell of it, a pod or a tainted node at each turn."""
        names: dict[str, list[str]] = {f"n{n}": [] for n in range(self.pods // PODS_PER_NODE)}
        ill = list(names)[: self.evictions // PODS_PER_NODE]
        for number, node in enumerate(itertools.islice(itertools.cycle(names), self.pods)):
            if number == self.pods // 2:
                for one in ill:
                    feed.node(one, taint())
                    yield
            feed.pod(node, f"storm-{number}")
            names[node].append(f"pod-storm-{number}")
            yield
        told = FeedRecords(cluster=feed.cluster, uid="", epoch=0)
        for value in told.listed(time.time_ns() // 1_000, str(feed.version), names):
            feed.raw(feed.settings.pods_topic, told.key, value)
        feed.flush()


class Beside:
    """Another cluster of the partition: pods that come due evenly, and nodes that are still well, with a pod each."""

    def __init__(self, feed: Feed, reader: TopicReader, *, seconds: int) -> None:
        self.feed = feed
        self._reader = reader
        self._well = iter([f"well-{number}" for number in range(TAINTS)])
        for number in range(TAINTS):
            feed.pod(f"well-{number}", f"hit-{number}")
        self._due = [f"due-{number}-{second}" for number in range(DUE_A_SECOND) for second in range(seconds)]
        for name in self._due:
            _, node, second = name.split("-")
            feed.pod(f"due-{node}", name, tolerates(FIRST_AFTER_SECONDS + int(second)))
        feed.flush()

    def schedule(self) -> None:
        """Taint the nodes whose pods come due, spread over a second; returns when the first one is."""
        began_at = time.time()
        for number in range(DUE_A_SECOND):
            self.feed.node(f"due-{number}", taint())
            self.feed.flush()
            time.sleep(1 / DUE_A_SECOND)
        self._reader.wait_for(lambda seen: commands(seen, "Schedule").keys() >= set(self._due), "all schedules")
        time.sleep(max(0.0, began_at + FIRST_AFTER_SECONDS - time.time()))

    def taint_next(self) -> None:
        """Taint one more node: its pod has to leave at once."""
        node = next(self._well, None)
        if node is not None:
            self.feed.node(node, taint())

    def timers_late(self, seen: list[Seen], began_at: float, ended_at: float) -> list[float]:
        """How late those were issued that came due in this time, seconds."""
        evicts = commands(seen, "Evict")
        issued = [evicts[name][0].value for name in self._due if name in evicts]
        late = [(instant(one["deadline"]), instant(one["issuedAt"])) for one in issued]
        return [issued_at - due_at for due_at, issued_at in late if began_at <= due_at <= ended_at]

    def records_late(self, seen: list[Seen], told: Iterable[Seen]) -> list[float]:
        """How long after the record of a taint each `Evict` was there, seconds."""
        tainted = {
            record.value["object"]["metadata"]["name"]: record.appended_at
            for record in told
            if record.value["cluster"] == self.feed.cluster and "object" in record.value
        }
        evicts = commands(seen, "Evict")
        return [evicts[f"hit-{n}"][0].appended_at - tainted[f"well-{n}"] for n in range(TAINTS)]


@pytest.mark.alone
@pytest.mark.parametrize(
    "storm",
    [
        pytest.param(Storm(pods=20_000, evictions=2_000, seconds=20), id="a large cluster"),
        pytest.param(
            Storm(pods=150_000, evictions=9_000, seconds=150), id="the largest cluster", marks=pytest.mark.kit
        ),
    ],
)
def test_a_storm_delays_the_cluster_beside_it_within_bounds(
    storm: Storm, service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    worker = start_worker(service).wait_ready()
    read, told = reader(service.commands_topic), reader(service.nodes_topic)
    (name,) = clusters_beside(feed.cluster, 1, service.partitions)
    with Feed(service, name) as other:
        beside = Beside(other, read, seconds=storm.seconds)
        beside.schedule()
        began_at = time.time()
        for number, _ in enumerate(storm.records(feed)):
            if number % (storm.pods // TAINTS) == 0:
                beside.taint_next()
        other.flush()
        seen = read.wait_for(
            lambda seen: (
                sum(one.startswith(("storm-", "hit-")) for one in commands(seen, "Evict")) == storm.evictions + TAINTS
            ),
            "the evictions of the storm, and of those beside it",
            seconds=storm.seconds,
        )
        ended_at = max(found[0].appended_at for pod, found in commands(seen, "Evict").items() if pod[:6] == "storm-")
        timers = beside.timers_late(read.quiet(1.0), began_at, ended_at)
        assert len(timers) >= FEWEST_DUE, "the storm was over too soon"
        assert min(timers) >= 0
        assert percentile(timers, 0.99) < TIMERS_LATE_SECONDS
        assert max(beside.records_late(read.seen, told.to_end())) < RECORDS_LATE_SECONDS
    assert worker.stop() == 0
