"""What probes and Prometheus are told of a feed process."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.feed.cluster_profile import FollowedProfile
from evictstream.streams.feed.metric_definitions import FeedMetric
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.health.definitions import BUILD_INFO
from evictstream.streams.health.endpoint import OK, UNAVAILABLE, Report
from evictstream.streams.kafka_reach import REACH

_STILL_SECONDS: Final = 120.0
"""A thread that has not looked around for so long is stuck: it does so twice a second, and after each request."""

_READS: Final = ("listings", "watches", "unbound", "broken", "unread", "oversized")


class FeedHealth(Collector):
    """Answers probes, and makes metrics at each scrape from plain numbers."""

    def __init__(
        self, feeds: Sequence[ClusterFeed], publisher: Publisher, profiles: Sequence[FollowedProfile] = ()
    ) -> None:
        self._feeds = feeds
        self._publisher = publisher
        self._profiles = profiles

    def live(self, now: float) -> Report:
        """Say whether every cluster's thread looks around. While Kafka takes nothing all wait, and none is stuck."""
        still = () if self._publisher.is_full else self._feeds
        stuck = [feed.cluster for feed in self._feeds if not feed.is_alive()]
        stuck += [feed.cluster for feed in still if now - feed.looked_at > _STILL_SECONDS]
        return Report(UNAVAILABLE if stuck else OK, {"status": "stuck" if stuck else "ok", "clusters": stuck})

    def ready(self, now: float) -> Report:
        """Say whether each cluster is proven to be followed, or stands by for the feed that follows it.

        While Kafka is away none is ready: a feed that stands by cannot know whether another one writes. A
        ClusterProfile that is not read makes none unready.
        """
        del now
        waiting = {feed.cluster: feed.why_not_proven for feed in self._feeds if feed.is_leader and not feed.is_proven}
        kafka = REACH.problem()
        is_ready = not waiting and kafka is None
        body: dict[str, object] = {
            "status": "ready" if is_ready else "not ready",
            **({} if kafka is None else {"kafka": kafka}),
            "notProven": list(waiting),
            "reasons": waiting,
            "standBy": [feed.cluster for feed in self._feeds if not feed.is_leader],
            **(
                {"profiles": {one.cluster: one.problem for one in self._profiles if one.problem}}
                if self._profiles
                else {}
            ),
        }
        return Report(OK if is_ready else UNAVAILABLE, body)

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the numbers of this moment."""
        yield BUILD_INFO.of({("feed", importlib.metadata.version("evictstream")): 1})
        feeds = self._feeds
        yield FeedMetric.PROVEN.of({feed.cluster: feed.is_proven for feed in feeds})
        yield FeedMetric.LEADER.of({feed.cluster: feed.is_leader for feed in feeds})
        yield FeedMetric.EPOCH.of({feed.cluster: feed.epoch for feed in feeds})
        yield FeedMetric.REFUSED.of({feed.cluster: feed.refusal is not None for feed in feeds})
        yield FeedMetric.FAILURES.of({feed.cluster: feed.failures for feed in feeds})
        yield FeedMetric.HEARTBEATS.of({feed.cluster: feed.heartbeats for feed in feeds})
        yield FeedMetric.PROFILE_READ.of({one.cluster: not one.trouble for one in self._profiles})
        kinds = {(feed.cluster, kind): counts for feed in feeds for kind, counts in feed.counts.items()}
        yield FeedMetric.EVENTS.of(
            {(*of, type_): n for of, counts in kinds.items() for type_, n in counts.events.items()}
        )
        yield FeedMetric.READS.of(
            {(*of, what): getattr(counts, what) for of, counts in kinds.items() for what in _READS}
        )
        yield FeedMetric.OBJECTS.of({of: counts.objects for of, counts in kinds.items()})
        yield FeedMetric.IN_FLIGHT.of({(): self._publisher.in_flight})
