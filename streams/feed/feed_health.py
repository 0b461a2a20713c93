"""What probes and Prometheus are told of a feed process."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.health.endpoint import OK, UNAVAILABLE, Report
from evictstream.streams.kafka_reach import REACH

_STILL_SECONDS: Final = 120.0
"""A thread that has not looked around for so long is stuck: it does so twice a second, and after each request."""


class FeedHealth(Collector):
    """Answers probes, and makes metrics at each scrape from plain numbers."""

    def __init__(self, feeds: Sequence[ClusterFeed], publisher: Publisher) -> None:
        self._feeds = feeds
        self._publisher = publisher

    def live(self, now: float) -> Report:
        """Say whether every cluster's thread looks around. While Kafka takes nothing all wait, and none is stuck."""
        still = () if self._publisher.is_full else self._feeds
        stuck = [feed.cluster for feed in self._feeds if not feed.is_alive()]
        stuck += [feed.cluster for feed in still if now - feed.looked_at > _STILL_SECONDS]
        return Report(UNAVAILABLE if stuck else OK, {"status": "stuck" if stuck else "ok", "clusters": stuck})

    def ready(self, now: float) -> Report:
        """Say whether each cluster is proven to be followed, or stands by for the feed that follows it.

        While Kafka is away none is ready: a feed that stands by cannot know whether another one writes.
        """
        del now
        waiting = [feed.cluster for feed in self._feeds if feed.is_leader and not feed.is_proven]
        kafka = REACH.problem()
        is_ready = not waiting and kafka is None
        body: dict[str, object] = {
            "status": "ready" if is_ready else "not ready",
            **({} if kafka is None else {"kafka": kafka}),
            "notProven": waiting,
            "standBy": [feed.cluster for feed in self._feeds if not feed.is_leader],
        }
        return Report(OK if is_ready else UNAVAILABLE, body)

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the numbers of this moment."""
        version = importlib.metadata.version("evictstream")
        yield _family(
            GaugeMetricFamily, "evictstream_build_info", "Version; always 1.", ("version",), [((version,), 1)]
        )
        yield from self._of_clusters()
        yield from self._of_kinds()
        in_flight = [((), self._publisher.in_flight)]
        yield _family(
            GaugeMetricFamily, "evictstream_feed_in_flight", "Records that Kafka has not taken.", (), in_flight
        )

    def _of_clusters(self) -> Iterator[Metric]:
        def gauge(name: str, help_: str, number: Callable[[ClusterFeed], float]) -> Metric:
            values = [((feed.cluster,), number(feed)) for feed in self._feeds]
            return _family(GaugeMetricFamily, name, help_, ("cluster",), values)

        yield gauge("evictstream_feed_proven", "Nothing can have been missed.", lambda feed: feed.is_proven)
        yield gauge("evictstream_feed_leader", "It writes; others stand by.", lambda feed: feed.is_leader)
        yield gauge("evictstream_feed_epoch", "Epoch of resource versions.", lambda feed: feed.epoch)
        yield gauge(
            "evictstream_feed_refused",
            "It is not fed until something is changed.",
            lambda feed: feed.refusal is not None,
        )
        failures = [((feed.cluster,), feed.failures) for feed in self._feeds]
        yield _family(CounterMetricFamily, "evictstream_feed_failures", "Sessions that failed.", ("cluster",), failures)
        beats = [((feed.cluster,), feed.heartbeats) for feed in self._feeds]
        yield _family(CounterMetricFamily, "evictstream_feed_heartbeats", "Heartbeats.", ("cluster",), beats)

    def _of_kinds(self) -> Iterator[Metric]:
        events, others, objects = [], [], []
        for feed in self._feeds:
            for kind, counts in feed.counts.items():
                events += [((feed.cluster, kind, type_), number) for type_, number in counts.events.items()]
                others += [
                    ((feed.cluster, kind, what), getattr(counts, what))
                    for what in ("listings", "watches", "unbound", "broken", "unread", "oversized")
                ]
                objects.append(((feed.cluster, kind), counts.objects))
        labels = ("cluster", "kind")
        yield _family(CounterMetricFamily, "evictstream_feed_events", "Changes written.", (*labels, "type"), events)
        yield _family(CounterMetricFamily, "evictstream_feed_reads", "What else was read.", (*labels, "what"), others)
        yield _family(GaugeMetricFamily, "evictstream_feed_objects", "In the newest listing.", labels, objects)


def _family(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    help_: str,
    labels: Sequence[str],
    values: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    metric = family(name, help_, labels=labels)
    for key, number in values:
        metric.add_metric(list(key), number)
    return metric
