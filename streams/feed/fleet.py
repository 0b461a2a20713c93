"""Runs the feeds of several clusters in one process, which share one producer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from evictstream.streams.broker.admin import check_topics, kept_seconds
from evictstream.streams.broker.missing_topics import wait_for_topics
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.feed.cluster_names import check_cluster_name
from evictstream.streams.feed.cluster_profile import FollowedProfile, ProfilePlace
from evictstream.streams.feed.feed_health import FeedHealth
from evictstream.streams.feed.profile_reader import ProfileReader
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.health.endpoint import Endpoint
from evictstream.streams.kafka_reach import REACH
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from evictstream.streams.start_line import log_start

log = structlog.get_logger(__name__)

_LONGEST_OUTAGE_SECONDS: Final = 86_400.0
"""How long a record may wait for Kafka. A day: the feed holds no more than the producer's buffer meanwhile, and lists
again afterwards."""

SECONDS_PER_HOUR: Final = 3_600.0

LISTED_WITHIN: Final = 0.5
"""Of the time that topics keep: the other half is for a listing that is slow, or begun again."""

_LOOK_SECONDS: Final = 0.2
_STOP_SECONDS: Final = 8.0
"""For all feeds to leave their groups."""


def feed_clusters(
    accesses: Mapping[str, ClusterAccess],
    *,
    settings: Settings,
    keep_whole: bool,
    new_epoch: bool,
    labels: Mapping[str, str] | None = None,
    profiles: Mapping[str, ProfilePlace] | None = None,
    hub: ClusterAccess | None = None,
    is_stopped: Callable[[], bool],
) -> None:
    """Feed clusters until stopped, then write what was read.

    Args:
        accesses: by the clusters' names.
        settings: which Kafka and topics.
        keep_whole: whether objects are not trimmed.
        new_epoch: whether a cluster may take over the name of another one.
        labels: of each of the clusters.
        profiles: the ClusterProfiles of some of them, by their names.
        hub: the cluster that has these; None for the kubeconfig's current context, as without a profile.
        is_stopped: asked several times a second.

    Raises:
        WrongUseError: a name cannot be that of a cluster.
        CredentialsError: of no cluster the configuration can be read.
        ClusterNameTakenError: no cluster can be fed, and the name of one belongs to another cluster.
        AddressTakenError: health cannot be served.
        BrokerError: Kafka is not as needed.
        TopicsDifferError: topics are missing or differ.
    """
    for name in accesses:
        check_cluster_name(name)
    names = [settings.nodes_topic, settings.pods_topic, settings.feeds_topic]
    specs = [spec for spec in topic_specs(settings) if spec.name in names]
    report = check_topics(settings, specs)
    log_start("feed starting", settings, report.kafka, clusters=list(accesses), whole_objects=keep_whole)
    if wait_for_topics(settings, specs, report, is_stopped=is_stopped, but="partitions") is None:
        log.info("feed stopping", records=0)
        return
    REACH.watch()
    relist_seconds = relist_interval(settings, kept_seconds(settings, [settings.nodes_topic, settings.pods_topic]))
    with open_publisher(settings, delivery_seconds=_LONGEST_OUTAGE_SECONDS, also=[settings.feeds_topic]) as publisher:
        followed = {name: FollowedProfile(name, place, labels or {}) for name, place in (profiles or {}).items()}
        reader = ProfileReader(hub or ClusterAccess(), list(followed.values()), settings.feed_profile_seconds)
        feeds = [
            ClusterFeed(
                name,
                access,
                settings=settings,
                publisher=publisher,
                keep_whole=keep_whole,
                new_epoch=new_epoch,
                relist_seconds=relist_seconds,
                labels=labels,
                profile=followed.get(name),
            )
            for name, access in accesses.items()
        ]
        health = FeedHealth(feeds, publisher, list(followed.values()))
        endpoint = Endpoint(settings.health_host, settings.health_port, health, health)
        endpoint.start()
        log.info("health endpoint started", host=settings.health_host, port=endpoint.port)
        reader.start()
        for feed in feeds:
            feed.start()
        try:
            while not is_stopped():
                _check(feeds)
                time.sleep(_LOOK_SECONDS)
        finally:
            reader.stop()
            for feed in feeds:
                feed.stop()
            end_at = time.monotonic() + _STOP_SECONDS
            for feed in feeds:
                feed.join(max(0.0, end_at - time.monotonic()))
        publisher.flush()
        log.info("feed stopping", records=sum(publisher.acknowledged.values()))


def relist_interval(settings: Settings, kept_seconds: float) -> float:
    """Return the most seconds between two listings of a cluster: as set, and at most half of what topics keep.

    So topics that forget sooner than the settings say hold a whole listing too.
    """
    chosen = settings.feed_relist_hours * SECONDS_PER_HOUR
    longest = kept_seconds * LISTED_WITHIN
    if longest < chosen:
        log.warning(
            "listing more often than EVICTSTREAM_FEED_RELIST_HOURS, because topics are retained for less",
            kept_hours=round(kept_seconds / SECONDS_PER_HOUR, 3),
            hours=round(longest / SECONDS_PER_HOUR, 3),
        )
    return min(chosen, longest)


def _check(feeds: Sequence[ClusterFeed]) -> None:
    """Raise what ends all feeds: Kafka cannot be used, or none of the clusters can be fed."""
    for feed in feeds:
        if feed.failure is not None:
            raise feed.failure
    if all(feed.refusal is not None and not feed.has_fed for feed in feeds):
        raise next(feed.refusal for feed in feeds if feed.refusal is not None)
