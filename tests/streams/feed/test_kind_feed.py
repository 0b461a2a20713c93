"""The thread of one kind beside a fake API server, without Kafka: what it must not do, and what refusals cost it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.streams.feed import kind_feed, list_reader, listing
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.feed.kind_feed import KindFeed
from evictstream.streams.feed.object_writer import KindCounts, ObjectWriter
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.backoff import FIRST_SECONDS
from evictstream.streams.kubernetes.connection import Connection

PATIENCE_SECONDS = 20.0
PAGE_OBJECTS = 2
RETRY_AFTER_SECONDS = 1
REFUSALS = (429, 500, 503, Fault(status=429, retry_after_seconds=RETRY_AFTER_SECONDS), Fault(cut="before"), "cut")
EACH = 10  # pages are served between two that are refused
PAGES = EACH * len(REFUSALS)


class WithoutKafka(Publisher):
    """Leaves what is written where it is; `KindCounts` says how much that was."""

    def __init__(self) -> None:
        self.partitions = (0,)

    def send(self, topic: str, key: bytes, value: bytes, partition: int | None = None) -> None:
        pass


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        yield found


@pytest.fixture
def connection(api: FakeApi, tmp_path: Path) -> Iterator[Connection]:
    file = tmp_path / "kubeconfig"
    file.write_text(api.kubeconfig())
    found = Connection(ClusterAccess(kubeconfig=str(file)))
    yield found
    found.close()


def follow(
    api: FakeApi,
    connection: Connection,
    counts: KindCounts,
    *,
    is_stopped: Callable[[], bool],
    before_listing: Callable[[], object],
    meanwhile: Callable[[], object] = int,
) -> KindFeed:
    writer = ObjectWriter(
        "Pod",
        publisher=WithoutKafka(),
        topic="pods",
        records=FeedRecords(cluster="lab", uid=api.uid, epoch=0),
        may_write=lambda: True,
        keep_whole=False,
        largest_bytes=1_000_000,
        counts=counts,
    )
    feed = KindFeed(
        "Pod",
        connection=connection,
        writer=writer,
        is_stopped=is_stopped,
        before_listing=before_listing,
        relist_seconds=86_400.0,
    )
    feed.start()
    meanwhile()
    feed.join(PATIENCE_SECONDS)
    assert not feed.is_alive()
    assert feed.failure is None
    return feed


def test_no_watch_is_opened_without_a_listing(api: FakeApi, connection: Connection) -> None:
    """A watch from no version would begin with what is there, and its end would pass for proof."""
    stopped = threading.Event()
    follow(api, connection, KindCounts(), is_stopped=stopped.is_set, before_listing=stopped.set)
    assert api.watches("pods") == 0


def test_a_watch_broken_after_the_stop_is_no_trouble(connection: Connection, api: FakeApi) -> None:
    """The thread of a stopped feed stays in its watch until the API server ends it, and warns of nothing then."""
    stopped = threading.Event()

    def stop_while_it_watches() -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not counts.watches:
            assert time.monotonic() < until
            time.sleep(0.01)
        stopped.set()
        api.end_watches()

    counts = KindCounts()
    feed = follow(
        api, connection, counts, is_stopped=stopped.is_set, before_listing=int, meanwhile=stop_while_it_watches
    )
    assert feed.trouble == ""


def test_pages_that_are_refused_cost_no_other_page(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a listing of which a tenth is refused takes a tenth more requests, and the shortest pause for each."""
    monkeypatch.setattr(list_reader, "PAGE_OBJECTS", PAGE_OBJECTS)
    pauses: list[float] = []
    for module in (kind_feed, listing):
        monkeypatch.setattr(module, "pause", lambda seconds, _: pauses.append(max(seconds, 0.0)))
    for number in range(PAGES * PAGE_OBJECTS):
        api.put("Pod", f"p-{number}", spec={"nodeName": "n-1"})
    for refusal in REFUSALS:
        api.trouble.setdefault("list pods", []).extend([refusal, *[Fault()] * EACH])
    api.trouble["watch pods"] = [503]  # it ends behind its listing
    counts = KindCounts()
    follow(api, connection, counts, is_stopped=lambda: counts.listings == 1, before_listing=int)

    assert counts.objects == PAGES * PAGE_OBJECTS
    assert api.requests.count("list pods") == PAGES + len(REFUSALS)
    assert counts.events["ADDED"] <= (PAGES + len(REFUSALS)) * PAGE_OBJECTS
    assert sum(pauses) <= len(REFUSALS) * max(FIRST_SECONDS, RETRY_AFTER_SECONDS)
