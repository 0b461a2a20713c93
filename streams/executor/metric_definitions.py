"""The metrics of an executor. docs/executor.md lists them; a test compares the page with this file."""

from __future__ import annotations

from evictstream.streams.health.definitions import CounterMetric, GaugeMetric, HistogramMetric


class ExecutorMetric:
    """All of them."""

    SERVED = GaugeMetric(
        "evictstream_executor_served",
        "1 once rights and identity of the cluster are checked and its commands are read, otherwise 0.",
        ("cluster",),
    )
    HINDERED = GaugeMetric(
        "evictstream_executor_hindered",
        "1 while this executor can evict nothing in the cluster; its /readyz says why.",
        ("cluster",),
    )
    BRAKES = GaugeMetric(
        "evictstream_executor_brakes",
        "Brakes that may hold evictions of the cluster now, and those that spread them after their end.",
        ("cluster",),
    )
    ACTIVE = GaugeMetric(
        "evictstream_executor_active",
        "1 if this executor reads the commands of the cluster, 0 if it stands by.",
        ("cluster", "mode"),
    )
    HELD_SECONDS = GaugeMetric(
        "evictstream_executor_held_seconds",
        "How long an open transaction in Kafka has kept commands of the cluster from being read.",
        ("cluster",),
    )
    COMMANDS = CounterMetric("evictstream_executor_commands_total", "Commands read.", ("cluster", "action"))
    PASSED_OVER = CounterMetric(
        "evictstream_executor_passed_over_total",
        "Records of other clusters in the same partition, skipped.",
        ("cluster",),
    )
    UNREADABLE = CounterMetric(
        "evictstream_executor_unreadable_total",
        "Records that are not commands, and those that are too large.",
        ("cluster",),
    )
    RESETS = CounterMetric(
        "evictstream_executor_resets_total",
        "How often the commands topic ended before what was read of it, so that its last hour was read again.",
        ("cluster",),
    )
    WAITING = GaugeMetric("evictstream_executor_waiting", "Evictions that are queued or running.", ("cluster",))
    WAITING_OLDEST = GaugeMetric(
        "evictstream_executor_waiting_oldest_seconds",
        "How long the oldest eviction without an open EvictionRequest has been queued or running; 0 if there is none.",
        ("cluster",),
    )
    REQUESTS = GaugeMetric(
        "evictstream_executor_requests",
        "EvictionRequests of the cluster in the mode request, those that are being withdrawn included; otherwise 0.",
        ("cluster",),
    )
    REQUESTS_IGNORED = GaugeMetric(
        "evictstream_executor_requests_ignored",
        "1 once no controller has seen an EvictionRequest within 60 s, until one sees another, otherwise 0.",
        ("cluster",),
    )
    RESULTS = CounterMetric(
        "evictstream_executor_results_total",
        "Answers to Evict, also of what was not carried out.",
        ("cluster", "mode", "outcome"),
    )
    ANSWER_SECONDS = HistogramMetric(
        "evictstream_executor_answer_seconds", "Time from reading a command to its answer.", ("cluster",)
    )
    EVENTS = CounterMetric(
        "evictstream_executor_events_total",
        "Kubernetes Events about evictions: written, dropped, or counted in the Event of their node.",
        ("cluster", "what"),
    )
