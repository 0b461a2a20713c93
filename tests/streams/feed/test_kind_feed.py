"""The thread of one kind beside a fake API server, without Kafka: what it must not do."""

from __future__ import annotations

import threading
from pathlib import Path

from evictstream.streams.conformance.fake_api import FakeApi
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.feed.kind_feed import KindFeed
from evictstream.streams.feed.object_writer import KindCounts, ObjectWriter
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection

PATIENCE_SECONDS = 20.0


def test_no_watch_is_opened_without_a_listing(tmp_path: Path) -> None:
    """A watch from no version would begin with what is there, and its end would pass for proof."""
    stopped = threading.Event()
    with FakeApi() as api:
        file = tmp_path / "kubeconfig"
        file.write_text(api.kubeconfig())
        connection = Connection(ClusterAccess(kubeconfig=str(file)))
        feed = KindFeed(
            "Pod",
            connection=connection,
            writer=ObjectWriter(
                "Pod",
                publisher=None,  # type: ignore[arg-type]  # nothing is written
                topic="pods",
                records=FeedRecords(cluster="lab", uid=api.uid, epoch=0),
                keep_whole=False,
                largest_bytes=1_000_000,
                counts=KindCounts(),
            ),
            is_stopped=stopped.is_set,
            before_listing=stopped.set,
        )
        feed.start()
        feed.join(PATIENCE_SECONDS)
        connection.close()
    assert not feed.is_alive()
    assert api.watches("pods") == 0
