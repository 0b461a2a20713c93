"""The metrics of a worker. docs/operations.md says more of each; a test compares the page with this file."""

from __future__ import annotations

from evictstream.streams.health.definitions import CounterMetric, GaugeMetric, HistogramMetric


class WorkerMetric:
    """All of them."""

    # Input and decisions.

    EVENTS = CounterMetric(
        "evictstream_events_total", "Records read from the input topics, by what became of them.", ("input", "outcome")
    )
    UNLISTED = CounterMetric(
        "evictstream_unlisted_total",
        "Known objects that a complete listing did not contain: removed, or newer than the listing.",
        ("outcome",),
    )
    DEAD_LETTERS = CounterMetric(
        "evictstream_dead_letters_total",
        "Records that could not be read or decided and were written to the dead letters topic.",
        ("reason",),
    )
    UNREADABLE_ANNOTATIONS = CounterMetric(
        "evictstream_unreadable_annotations_total",
        "Events of pods whose annotation of tolerations cannot be read, so that their spec counts.",
    )
    COMMANDS = CounterMetric("evictstream_commands_total", "Commands written for executors.", ("action",))
    DECISIONS = CounterMetric("evictstream_decisions_total", "Decisions about pods.", ("decision", "verdict"))
    RESULTS = CounterMetric(
        "evictstream_results_total", "Results of executors that belonged to an open attempt.", ("outcome",)
    )

    # Time.

    LATENESS = HistogramMetric(
        "evictstream_eviction_lateness_seconds",
        "Time from when a pod has to leave to the decision to issue its eviction, for first attempts.",
    )
    TRANSACTION_SECONDS = HistogramMetric(
        "evictstream_transaction_duration_seconds", "Time from the beginning to the commit of a transaction in Kafka."
    )
    LOOP_PAUSES = HistogramMetric(
        "evictstream_loop_pause_seconds",
        "Time in which the worker's event loop did not run; timers that fire then are late.",
    )
    POD_DELETIONS = CounterMetric(
        "taint_eviction_controller_pod_deletions_total", "Evicted pods that were seen terminating, gone or replaced."
    )
    POD_DELETION_SECONDS = HistogramMetric(
        "taint_eviction_controller_pod_deletion_duration_seconds",
        "Time from when a pod had to leave until it was seen terminating, gone or replaced.",
    )

    # Evictions.

    PENDING = GaugeMetric(
        "evictstream_evictions_pending", "Evictions that have not ended: scheduled, issued or repeating.", ("cluster",)
    )
    OWED_OLDEST = GaugeMetric(
        "evictstream_evictions_owed_oldest_seconds",
        "How long ago the oldest eviction that has not ended became due, whatever it waits for; 0 if none is due.",
        ("cluster",),
    )
    WAITING = GaugeMetric(
        "evictstream_evictions_waiting",
        "Evictions that are due and that a closed gate holds back.",
        ("gate", "cluster"),
    )
    WAITING_OLDEST = GaugeMetric(
        "evictstream_evictions_waiting_oldest_seconds",
        "How long a closed gate has held back the oldest eviction that is due.",
        ("gate", "cluster"),
    )
    HELD = GaugeMetric(
        "evictstream_evictions_held",
        "Evictions that are due and that a brake holds, or a policy, whose name begins with `policy/`.",
        ("brake", "cluster"),
    )
    HELD_OLDEST = GaugeMetric(
        "evictstream_evictions_held_oldest_seconds",
        "How long ago the eviction became due that a brake or policy has held first.",
        ("brake", "cluster"),
    )
    INCIDENT_SECONDS = GaugeMetric(
        "evictstream_incident_waiting_seconds",
        "How long the oldest incident has waited for a person that a policy's guard holds.",
        ("policy", "cluster"),
    )
    BRAKES = GaugeMetric("evictstream_brakes", "Brakes that have not ended.")
    BRAKE_SECONDS = GaugeMetric(
        "evictstream_brake_seconds", "Time since the record of a brake that has not ended was written.", ("brake",)
    )
    BRAKES_UNREADABLE = GaugeMetric(
        "evictstream_brakes_unreadable",
        "Records of brakes that cannot be read; while there is one, nothing is evicted.",
    )
    BRAKES_AGE = GaugeMetric(
        "evictstream_brakes_age_seconds",
        "Time since all brakes were last known to be read; above 3, nothing is evicted.",
    )
    POLICIES = GaugeMetric("evictstream_policies", "Policies that are not deleted.")
    POLICIES_UNREADABLE = GaugeMetric(
        "evictstream_policies_unreadable",
        "Records of policies that cannot be read; while there is one, nothing is evicted.",
    )
    POLICIES_AGE = GaugeMetric(
        "evictstream_policies_age_seconds",
        "Time since all policies were last known to be read; above 3, nothing is evicted.",
    )
    UNANSWERED = GaugeMetric(
        "evictstream_evictions_unanswered",
        "Evictions that were issued and that no executor has answered.",
        ("cluster",),
    )
    UNANSWERED_OLDEST = GaugeMetric(
        "evictstream_evictions_unanswered_oldest_seconds",
        "How long ago the oldest eviction without an answer of an executor was issued; 0 if all are answered.",
        ("cluster",),
    )
    FEED_SILENT = GaugeMetric(
        "evictstream_cluster_feed_silent_seconds",
        "Age of the newest heartbeat of a feed that has been silent for too long; 0 while heartbeats come.",
        ("cluster",),
    )

    # Partitions.

    PARTITIONS = GaugeMetric("evictstream_partitions", "Partitions that all workers of the service share.")
    OWNED = GaugeMetric("evictstream_partitions_owned", "Partitions that this worker has taken over.")
    CAUGHT_UP = GaugeMetric(
        "evictstream_partition_caught_up",
        "1 if all input that existed when the worker took the partition over is applied, otherwise 0.",
        ("partition",),
    )
    GATE_CLOSED = GaugeMetric(
        "evictstream_partition_gate_closed",
        "1 for the gate that evictions of the partition would wait for now, 0 for the others.",
        ("partition", "gate"),
    )
    LAG_SECONDS = GaugeMetric(
        "evictstream_lag_seconds",
        "Time between the newest record of an input and the newest one that is applied; 0 if all are applied.",
        ("input", "partition"),
    )
    LAG_RECORDS = GaugeMetric(
        "evictstream_lag_records", "Offsets of an input that are not applied yet.", ("input", "partition")
    )
    VIEW_AGE = GaugeMetric(
        "evictstream_view_age_seconds",
        "Time since everything in the log of the partition was last known to be applied.",
        ("partition",),
    )
    TAKEOVERS = CounterMetric("evictstream_takeovers_total", "Partitions that this worker has taken over.")
    PARTITIONS_LOST = CounterMetric(
        "evictstream_partitions_lost_total",
        "Partitions that failed in this worker, without those that a rebalance moved.",
    )

    # The process.

    WAIT_SECONDS = GaugeMetric(
        "evictstream_worker_wait_seconds",
        "How long the worker has waited for the thing that the label names.",
        ("wait",),
    )
    WAIT_LIMIT_SECONDS = GaugeMetric(
        "evictstream_worker_wait_limit_seconds", "The longest such wait; beyond it the worker ends.", ("wait",)
    )
