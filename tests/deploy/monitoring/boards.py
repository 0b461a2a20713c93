"""What the dashboards show."""

from __future__ import annotations

from typing import Final

from evictstream.streams.executor.metric_definitions import ExecutorMetric
from evictstream.streams.feed.metric_definitions import FeedMetric
from evictstream.streams.health.definitions import BUILD_INFO, HistogramMetric
from evictstream.streams.worker.metric_definitions import WorkerMetric
from tests.deploy.monitoring.grafana import Board, Panel, Variable
from tests.deploy.monitoring.selectors import buckets, rate, series, total, worst

_CLUSTER: Final = 'cluster=~"$cluster"'
_INSTANCE: Final = 'instance=~"$instance"'

_SELECTED_CPU: Final = "rate(process_cpu_seconds_total{" + _INSTANCE + "}[$__rate_interval])"
"""Names of the Prometheus client for Python."""

_WAITS: Final = series(WorkerMetric.WAIT_SECONDS, _INSTANCE)


def _quantiles(metric: HistogramMetric, *matchers: str) -> dict[str, str]:
    per_second = f"sum by (le) (rate({buckets(metric, *matchers)}[$__rate_interval]))"
    return {name: f"histogram_quantile({part}, {per_second})" for name, part in (("median", 0.5), ("99 %", 0.99))}


def _process() -> tuple[Panel, ...]:
    of = "{" + _INSTANCE + "}"
    return (
        Panel("CPU", "percentunit", {"{{instance}}": _SELECTED_CPU}),
        Panel("Memory", "bytes", {"{{instance}}": f"process_resident_memory_bytes{of}"}),
        Panel(
            "Open files",
            "short",
            {"{{instance}}": f"process_open_fds{of}", "{{instance}}, limit": f"process_max_fds{of}"},
        ),
        Panel("Running for", "s", {"{{instance}}": f"time() - process_start_time_seconds{of}"}),
        Panel(
            "Garbage collections",
            "ops",
            {
                "generation {{generation}}": total(
                    "generation", f"rate(python_gc_collections_total{of}[$__rate_interval])"
                )
            },
        ),
    )


FLEET: Final = Board(
    "Fleet",
    None,
    {
        "Evictions": (
            Panel("Open", "short", {"{{cluster}}": total("cluster", series(WorkerMetric.PENDING))}),
            Panel("Oldest that is due", "s", {"{{cluster}}": worst("cluster", series(WorkerMetric.OWED_OLDEST))}),
            Panel("Lateness", "s", _quantiles(WorkerMetric.LATENESS)),
            Panel("Unanswered", "short", {"{{cluster}}": total("cluster", series(WorkerMetric.UNANSWERED))}),
            Panel("Held back", "short", {"{{gate}}": total("gate", series(WorkerMetric.WAITING))}),
            Panel("Held by brakes and policies", "short", {"{{brake}}": total("brake", series(WorkerMetric.HELD))}),
            Panel("Commands", "ops", {"{{action}}": total("action", rate(WorkerMetric.COMMANDS))}),
            Panel("Results", "ops", {"{{outcome}}": total("outcome", rate(WorkerMetric.RESULTS))}),
            Panel("Evicted pods seen leaving", "ops", {"pods": f"sum({rate(WorkerMetric.POD_DELETIONS)})"}),
            Panel("Time until they were seen leaving", "s", _quantiles(WorkerMetric.POD_DELETION_SECONDS)),
        ),
        "Programs": (
            Panel(
                "Processes",
                "short",
                {"{{program}} {{version}}": f"count by (program, version) ({series(BUILD_INFO)})"},
            ),
            Panel(
                "Partitions",
                "short",
                {
                    "all": f"max({series(WorkerMetric.PARTITIONS)})",
                    "with a worker": f"sum({series(WorkerMetric.OWNED)})",
                },
            ),
            Panel("Brakes", "short", {"in force": f"max({series(WorkerMetric.BRAKES)})"}),
            Panel("Policies", "short", {"not deleted": f"max({series(WorkerMetric.POLICIES)})"}),
            Panel("Dead letters", "ops", {"{{reason}}": total("reason", rate(WorkerMetric.DEAD_LETTERS))}),
            Panel("Silent feeds", "s", {"{{cluster}}": worst("cluster", series(WorkerMetric.FEED_SILENT))}),
            Panel("Feeds that are proven", "short", {"{{cluster}}": worst("cluster", series(FeedMetric.PROVEN))}),
            Panel(
                "Executors that evict nothing",
                "short",
                {"{{cluster}}": worst("cluster", series(ExecutorMetric.HINDERED))},
            ),
        ),
    },
)

CLUSTER: Final = Board(
    "Cluster",
    Variable("cluster", series(WorkerMetric.PENDING)),
    {
        "Evictions": (
            Panel("Open", "short", {"{{cluster}}": total("cluster", series(WorkerMetric.PENDING, _CLUSTER))}),
            Panel(
                "Oldest that is due", "s", {"{{cluster}}": worst("cluster", series(WorkerMetric.OWED_OLDEST, _CLUSTER))}
            ),
            Panel(
                "Oldest without an answer",
                "s",
                {"{{cluster}}": worst("cluster", series(WorkerMetric.UNANSWERED_OLDEST, _CLUSTER))},
            ),
            Panel("Unanswered", "short", {"{{cluster}}": total("cluster", series(WorkerMetric.UNANSWERED, _CLUSTER))}),
            Panel(
                "Held back",
                "short",
                {"{{cluster}}: {{gate}}": total("cluster, gate", series(WorkerMetric.WAITING, _CLUSTER))},
            ),
            Panel(
                "Held by brakes and policies",
                "short",
                {"{{cluster}}: {{brake}}": total("cluster, brake", series(WorkerMetric.HELD, _CLUSTER))},
            ),
            Panel(
                "Incidents that wait for a person",
                "s",
                {"{{cluster}}: {{policy}}": worst("cluster, policy", series(WorkerMetric.INCIDENT_SECONDS, _CLUSTER))},
            ),
            Panel(
                "Oldest held back",
                "s",
                {"{{cluster}}: {{gate}}": worst("cluster, gate", series(WorkerMetric.WAITING_OLDEST, _CLUSTER))},
            ),
        ),
        "Feed": (
            Panel("Silent for", "s", {"{{cluster}}": worst("cluster", series(WorkerMetric.FEED_SILENT, _CLUSTER))}),
            Panel("Proven", "short", {"{{cluster}}": worst("cluster", series(FeedMetric.PROVEN, _CLUSTER))}),
            Panel("Heartbeats", "ops", {"{{cluster}}": total("cluster", rate(FeedMetric.HEARTBEATS, _CLUSTER))}),
            Panel("Changes", "ops", {"{{kind}} {{type}}": total("kind, type", rate(FeedMetric.EVENTS, _CLUSTER))}),
            Panel(
                "Objects",
                "short",
                {"{{cluster}} {{kind}}": worst("cluster, kind", series(FeedMetric.OBJECTS, _CLUSTER))},
            ),
            Panel("Epoch", "short", {"{{cluster}}": worst("cluster", series(FeedMetric.EPOCH, _CLUSTER))}),
        ),
        "Executor": (
            Panel("Active", "short", {"{{instance}} {{mode}}": series(ExecutorMetric.ACTIVE, _CLUSTER)}),
            Panel(
                "Answers",
                "ops",
                {"{{mode}} {{outcome}}": total("mode, outcome", rate(ExecutorMetric.RESULTS, _CLUSTER))},
            ),
            Panel("Time to answer", "s", _quantiles(ExecutorMetric.ANSWER_SECONDS, _CLUSTER)),
            Panel(
                "Queued or running",
                "short",
                {"{{cluster}}": total("cluster", series(ExecutorMetric.WAITING, _CLUSTER))},
            ),
            Panel(
                "Oldest queued or running",
                "s",
                {"{{cluster}}": worst("cluster", series(ExecutorMetric.WAITING_OLDEST, _CLUSTER))},
            ),
            Panel(
                "Evicts nothing", "short", {"{{cluster}}": worst("cluster", series(ExecutorMetric.HINDERED, _CLUSTER))}
            ),
        ),
    },
)

WORKER: Final = Board(
    "Worker",
    Variable("instance", series(WorkerMetric.OWNED)),
    {
        "Partitions": (
            Panel("Taken over", "short", {"{{instance}}": series(WorkerMetric.OWNED, _INSTANCE)}),
            Panel(
                "Partitions with a closed gate",
                "short",
                {"{{gate}}": total("gate", series(WorkerMetric.GATE_CLOSED, _INSTANCE))},
            ),
            Panel("Caught up", "short", {"{{partition}}": series(WorkerMetric.CAUGHT_UP, _INSTANCE)}),
            Panel("Lag in time", "s", {"{{input}} {{partition}}": series(WorkerMetric.LAG_SECONDS, _INSTANCE)}),
            Panel("Lag in offsets", "short", {"{{input}} {{partition}}": series(WorkerMetric.LAG_RECORDS, _INSTANCE)}),
            Panel("Age of the view", "s", {"{{partition}}": series(WorkerMetric.VIEW_AGE, _INSTANCE)}),
            Panel("Age of the brakes", "s", {"{{instance}}": series(WorkerMetric.BRAKES_AGE, _INSTANCE)}),
            Panel("Age of the policies", "s", {"{{instance}}": series(WorkerMetric.POLICIES_AGE, _INSTANCE)}),
            Panel(
                "Takeovers and losses",
                "ops",
                {
                    "taken over": f"sum({rate(WorkerMetric.TAKEOVERS, _INSTANCE)})",
                    "lost": f"sum({rate(WorkerMetric.PARTITIONS_LOST, _INSTANCE)})",
                },
            ),
        ),
        "Work": (
            Panel(
                "Records",
                "ops",
                {"{{input}} {{outcome}}": total("input, outcome", rate(WorkerMetric.EVENTS, _INSTANCE))},
            ),
            Panel(
                "Decisions",
                "ops",
                {"{{decision}} {{verdict}}": total("decision, verdict", rate(WorkerMetric.DECISIONS, _INSTANCE))},
            ),
            Panel(
                "Missing in listings", "ops", {"{{outcome}}": total("outcome", rate(WorkerMetric.UNLISTED, _INSTANCE))}
            ),
            Panel(
                "Annotations that count as absent",
                "ops",
                {"events": f"sum({rate(WorkerMetric.UNREADABLE_ANNOTATIONS, _INSTANCE)})"},
            ),
            Panel("Transactions", "s", _quantiles(WorkerMetric.TRANSACTION_SECONDS, _INSTANCE)),
            Panel("Pauses of the event loop", "s", _quantiles(WorkerMetric.LOOP_PAUSES, _INSTANCE)),
            Panel(
                "Waits, as a part of their limit",
                "percentunit",
                {"{{wait}}": worst("wait", f"{_WAITS} / {series(WorkerMetric.WAIT_LIMIT_SECONDS, _INSTANCE)}")},
            ),
        ),
        "Process": _process(),
    },
)

EXECUTOR: Final = Board(
    "Executor",
    Variable("instance", series(ExecutorMetric.SERVED)),
    {
        "Commands": (
            Panel("Active", "short", {"{{cluster}} {{mode}}": series(ExecutorMetric.ACTIVE, _INSTANCE)}),
            Panel("Served", "short", {"{{cluster}}": series(ExecutorMetric.SERVED, _INSTANCE)}),
            Panel("Evicts nothing", "short", {"{{cluster}}": series(ExecutorMetric.HINDERED, _INSTANCE)}),
            Panel("Read", "ops", {"{{action}}": total("action", rate(ExecutorMetric.COMMANDS, _INSTANCE))}),
            Panel(
                "Of others, and unreadable",
                "ops",
                {
                    "of other clusters": f"sum({rate(ExecutorMetric.PASSED_OVER, _INSTANCE)})",
                    "unreadable": f"sum({rate(ExecutorMetric.UNREADABLE, _INSTANCE)})",
                },
            ),
            Panel("Blocked by a transaction", "s", {"{{cluster}}": series(ExecutorMetric.HELD_SECONDS, _INSTANCE)}),
            Panel("Reads again from an earlier time", "ops", {"{{cluster}}": rate(ExecutorMetric.RESETS, _INSTANCE)}),
        ),
        "Evictions": (
            Panel("Queued or running", "short", {"{{cluster}}": series(ExecutorMetric.WAITING, _INSTANCE)}),
            Panel("Oldest queued or running", "s", {"{{cluster}}": series(ExecutorMetric.WAITING_OLDEST, _INSTANCE)}),
            Panel("Brakes", "short", {"{{cluster}}": series(ExecutorMetric.BRAKES, _INSTANCE)}),
            Panel(
                "EvictionRequests",
                "short",
                {
                    "{{cluster}}": series(ExecutorMetric.REQUESTS, _INSTANCE),
                    "{{cluster}}: ignored": series(ExecutorMetric.REQUESTS_IGNORED, _INSTANCE),
                },
            ),
            Panel(
                "Answers",
                "ops",
                {"{{mode}} {{outcome}}": total("mode, outcome", rate(ExecutorMetric.RESULTS, _INSTANCE))},
            ),
            Panel("Time to answer", "s", _quantiles(ExecutorMetric.ANSWER_SECONDS, _INSTANCE)),
            Panel("Kubernetes Events", "ops", {"{{what}}": total("what", rate(ExecutorMetric.EVENTS, _INSTANCE))}),
        ),
        "Process": _process(),
    },
)

FEED: Final = Board(
    "Feed",
    Variable("instance", series(FeedMetric.LEADER)),
    {
        "Clusters": (
            Panel("Writes", "short", {"{{cluster}}": series(FeedMetric.LEADER, _INSTANCE)}),
            Panel("Proven", "short", {"{{cluster}}": series(FeedMetric.PROVEN, _INSTANCE)}),
            Panel("Needs a change", "short", {"{{cluster}}": series(FeedMetric.REFUSED, _INSTANCE)}),
            Panel("Heartbeats", "ops", {"{{cluster}}": rate(FeedMetric.HEARTBEATS, _INSTANCE)}),
            Panel("Internal errors", "ops", {"{{cluster}}": rate(FeedMetric.FAILURES, _INSTANCE)}),
            Panel("Epoch", "short", {"{{cluster}}": series(FeedMetric.EPOCH, _INSTANCE)}),
        ),
        "Objects": (
            Panel("Changes", "ops", {"{{kind}} {{type}}": total("kind, type", rate(FeedMetric.EVENTS, _INSTANCE))}),
            Panel("Other reads", "ops", {"{{kind}} {{what}}": total("kind, what", rate(FeedMetric.READS, _INSTANCE))}),
            Panel("In the newest listing", "short", {"{{cluster}} {{kind}}": series(FeedMetric.OBJECTS, _INSTANCE)}),
            Panel("Not accepted by Kafka yet", "short", {"{{instance}}": series(FeedMetric.IN_FLIGHT, _INSTANCE)}),
        ),
        "Process": _process(),
    },
)

BOARDS: Final = {board.title.lower(): board for board in (FLEET, CLUSTER, WORKER, EXECUTOR, FEED)}
