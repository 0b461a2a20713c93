"""The metrics of a feed. docs/feed.md lists them; a test compares the page with this file."""

from __future__ import annotations

from evictstream.streams.health.definitions import CounterMetric, GaugeMetric


class FeedMetric:
    """All of them."""

    PROVEN = GaugeMetric(
        "evictstream_feed_proven",
        "1 while the feed is sure that it has missed no change of the cluster, otherwise 0.",
        ("cluster",),
    )
    LEADER = GaugeMetric(
        "evictstream_feed_leader", "1 for the feed that writes the cluster, 0 for standbys.", ("cluster",)
    )
    REFUSED = GaugeMetric(
        "evictstream_feed_refused",
        "1 while the cluster is not fed until somebody changes its configuration or what answers at its address.",
        ("cluster",),
    )
    PROFILE_READ = GaugeMetric(
        "evictstream_feed_profile_read",
        "1 if the cluster's ClusterProfile was read at the newest attempt, otherwise 0.",
        ("cluster",),
    )
    EPOCH = GaugeMetric(
        "evictstream_feed_epoch", "Grows each time the cluster is rebuilt or its etcd is restored.", ("cluster",)
    )
    FAILURES = CounterMetric(
        "evictstream_feed_failures_total",
        "Internal errors, after each of which the cluster was listed again.",
        ("cluster",),
    )
    HEARTBEATS = CounterMetric(
        "evictstream_feed_heartbeats_total",
        "Heartbeats, which say that no change of the cluster was missed.",
        ("cluster",),
    )
    EVENTS = CounterMetric(
        "evictstream_feed_events_total", "Changes of objects that were written.", ("cluster", "kind", "type")
    )
    READS = CounterMetric(
        "evictstream_feed_reads_total",
        "Listings and watches, pods without a node, and lines or objects that could not be read or written whole.",
        ("cluster", "kind", "what"),
    )
    OBJECTS = GaugeMetric("evictstream_feed_objects", "Objects in the newest listing.", ("cluster", "kind"))
    IN_FLIGHT = GaugeMetric("evictstream_feed_in_flight", "Records that Kafka has not accepted yet.")
