"""The alerts: when each fires, and what it says. docs/runbooks.md says what to do then."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from evictstream.streams.executor.metric_definitions import ExecutorMetric
from evictstream.streams.feed.metric_definitions import FeedMetric
from evictstream.streams.health.definitions import BUILD_INFO
from evictstream.streams.worker.metric_definitions import WorkerMetric
from tests.deploy.monitoring.selectors import increase, series, total, worst

START_TIME: Final = "process_start_time_seconds"
"""Of the Prometheus client for Python."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert.

    Attributes:
        name: also the heading of its runbook.
        severity: `critical` if pods that have to leave stay; `warning` if they may soon, or some do.
        expression: PromQL.
        hold: for how long the expression has to hold, such as `2m`.
        summary: the symptom in one line, with the labels of the series and `$value`.
        description: what it means; no template.
    """

    name: str
    severity: Literal["critical", "warning"]
    expression: str
    hold: str
    summary: str
    description: str


EVICTIONS: Final = (
    Alert(
        name="EvictstreamEvictionOwed",
        severity="warning",
        # Longer than what an executor needs for an eviction that an API server or a webhook puts off for a while.
        expression=worst("namespace, cluster", series(WorkerMetric.OWED_OLDEST)) + " > 300",
        hold="1m",
        summary="{{ $labels.cluster }}: a pod had to leave {{ $value | humanizeDuration }} ago and is still there",
        description="Something holds it up: a gate, a brake, an executor, the API server or a disruption budget.",
    ),
    Alert(
        name="EvictstreamEvictionsHeldBack",
        severity="critical",
        # A takeover or a rebalance takes seconds.
        expression=worst("namespace, cluster, gate", series(WorkerMetric.WAITING_OLDEST)) + " > 60",
        hold="0m",
        summary=(
            "{{ $labels.cluster }}: gate {{ $labels.gate }} has held back evictions that are due "
            "for {{ $value | humanizeDuration }}"
        ),
        description="No Evict is issued for these pods until the gate opens. Then all of them are.",
    ),
    Alert(
        name="EvictstreamEvictionsHeld",
        severity="warning",
        # Whoever sets a brake has an hour to look before anybody else is told.
        expression=worst("namespace, cluster, brake", series(WorkerMetric.HELD_OLDEST)) + " > 3600",
        hold="0m",
        summary=(
            "{{ $labels.cluster }}: {{ $labels.brake }} has held evictions that are due "
            "for {{ $value | humanizeDuration }}"
        ),
        description="Somebody holds these pods where they are. No Evict is issued for them until brake or policy ends.",
    ),
    Alert(
        name="EvictstreamIncidentWaits",
        severity="critical",
        # Whoever is called has ten minutes to look; a shorter fault is over by then.
        expression=worst("namespace, cluster, policy", series(WorkerMetric.INCIDENT_SECONDS)) + " > 600",
        hold="0m",
        summary=(
            "{{ $labels.cluster }}: an incident of policy {{ $labels.policy }} has waited for a person "
            "for {{ $value | humanizeDuration }}"
        ),
        description=(
            "More nodes have a taint, or more pods leave for it, than a guard allows. "
            "They stay until somebody approves."
        ),
    ),
    Alert(
        name="EvictstreamBrakeStands",
        severity="warning",
        # A working day or a night shift is shorter; it may hold nothing yet, and would hold the next incident.
        expression=worst("namespace, brake", series(WorkerMetric.BRAKE_SECONDS)) + " > 28800",
        hold="0m",
        summary="brake {{ $labels.brake }} was set {{ $value | humanizeDuration }} ago and still stands",
        description="It may be forgotten. What it holds is not evicted, also in the next outage.",
    ),
    Alert(
        name="EvictstreamBrakesUnreadable",
        severity="critical",
        expression=worst("namespace", series(WorkerMetric.BRAKES_UNREADABLE)) + " > 0",
        hold="1m",
        summary="{{ $value }} records of brakes cannot be read",
        description="Workers cannot tell what these records hold, so nothing is evicted in any cluster.",
    ),
    Alert(
        name="EvictstreamPoliciesUnreadable",
        severity="critical",
        expression=worst("namespace", series(WorkerMetric.POLICIES_UNREADABLE)) + " > 0",
        hold="1m",
        summary="{{ $value }} records of policies cannot be read",
        description="Workers cannot tell what these records hold, so nothing is evicted in any cluster.",
    ),
    Alert(
        name="EvictstreamEvictUnanswered",
        severity="critical",
        # By then several attempts have no answer: the first is repeated after 30 s.
        expression=worst("namespace, cluster", series(WorkerMetric.UNANSWERED_OLDEST)) + " > 120",
        hold="0m",
        summary=("{{ $labels.cluster }}: no executor has answered an Evict of {{ $value | humanizeDuration }} ago"),
        description=(
            "Pods that have to leave stay. None runs for the cluster, it ends at each start, or it only observes."
        ),
    ),
    Alert(
        name="EvictstreamEvictionsFail",
        severity="warning",
        expression=total(
            "namespace, cluster, outcome", increase(ExecutorMetric.RESULTS, 'outcome=~"Failed|Refused"', over="15m")
        )
        + " > 0",
        hold="0m",
        summary="{{ $labels.cluster }}: the executor has answered {{ $labels.outcome }} in the last 15m",
        description="The API server or a webhook does not let these pods be evicted. The service tries again.",
    ),
)

WORKERS: Final = (
    Alert(
        name="EvictstreamPartitionsWithoutWorker",
        severity="critical",
        expression=(
            total("namespace, job", series(WorkerMetric.OWNED))
            + "\n  != "
            + worst("namespace, job", series(WorkerMetric.PARTITIONS))
        ),
        hold="2m",
        summary="{{ $labels.job }}: the workers have {{ $value }} partitions, which are too few or too many",
        description="Nothing is decided about clusters in a partition without worker.",
    ),
    Alert(
        name="EvictstreamGateClosed",
        severity="warning",
        expression=worst("namespace, partition, gate", series(WorkerMetric.GATE_CLOSED, 'gate!="gap"')) + " == 1",
        hold="5m",
        summary="partition {{ $labels.partition }}: gate {{ $labels.gate }} is closed",
        description="Evictions of all clusters in the partition would wait. Whether some do is another alert.",
    ),
    Alert(
        name="EvictstreamInputLost",
        severity="critical",
        expression=worst("namespace, partition", series(WorkerMetric.GATE_CLOSED, 'gate="gap"')) + " == 1",
        hold="1m",
        summary="partition {{ $labels.partition }}: input expired before a worker read it",
        description="No Evict is issued in the partition until its clusters are listed again, or you accept the gap.",
    ),
    Alert(
        name="EvictstreamLag",
        severity="warning",
        # The gate for a fresh view closes after 10 s.
        expression=worst("namespace, partition, input", series(WorkerMetric.LAG_SECONDS)) + " > 30",
        hold="5m",
        summary="partition {{ $labels.partition }}: {{ $labels.input }} are {{ $value | humanizeDuration }} behind",
        description="A worker cannot keep up, or cannot read. Evictions wait at the gate fresh-view.",
    ),
    Alert(
        name="EvictstreamDeadLetters",
        severity="warning",
        expression=total("namespace, reason", increase(WorkerMetric.DEAD_LETTERS, over="15m")) + " > 0",
        hold="0m",
        summary="records became dead letters in the last 15m, reason {{ $labels.reason }}",
        description="A program writes records that a worker cannot read or decide. Their changes are missing.",
    ),
    Alert(
        name="EvictstreamWorkerNearlyStuck",
        severity="warning",
        expression=worst(
            "namespace, job, instance, wait",
            f"{series(WorkerMetric.WAIT_SECONDS)} / {series(WorkerMetric.WAIT_LIMIT_SECONDS)}",
        )
        + " > 0.5",
        hold="0m",
        summary="{{ $labels.instance }}: {{ $labels.wait }} has been awaited for half of the time that is allowed",
        description="At the limit the worker writes its stacks to the log, and exits with code 1.",
    ),
)

EXECUTORS: Final = (
    Alert(
        name="EvictstreamExecutorRefused",
        severity="critical",
        expression=worst("namespace, cluster", series(ExecutorMetric.HINDERED)) + " == 1",
        hold="2m",
        summary="{{ $labels.cluster }}: an executor runs but can evict nothing",
        description="The API server refuses it or does not answer, a right is missing, or another cluster answers.",
    ),
    Alert(
        name="EvictstreamEvictionRequestsIgnored",
        severity="critical",
        expression=worst("namespace, cluster", series(ExecutorMetric.REQUESTS_IGNORED)) + " == 1",
        hold="2m",
        summary="{{ $labels.cluster }}: no controller acts on EvictionRequests",
        description="Evictions end with Failed there, or the pods are deleted after the patience.",
    ),
    Alert(
        name="EvictstreamExecutorsActing",
        severity="warning",
        expression=total("namespace, cluster", series(ExecutorMetric.ACTIVE, 'mode!="observe"')) + " != 1",
        hold="2m",
        summary="{{ $labels.cluster }}: {{ $value }} executors read its commands, instead of one",
        description="None is active, or executors of two groups act at once.",
    ),
    Alert(
        name="EvictstreamCommandsBlocked",
        severity="critical",
        expression=worst("namespace, cluster", series(ExecutorMetric.HELD_SECONDS)) + " > 30",
        hold="1m",
        summary=(
            "{{ $labels.cluster }}: an open transaction has kept commands from its executor"
            " for {{ $value | humanizeDuration }}"
        ),
        description="The executor reads no command after that transaction until it ends.",
    ),
)

FEEDS: Final = (
    Alert(
        name="EvictstreamFeedSilent",
        severity="critical",
        expression=worst("namespace, cluster", series(WorkerMetric.FEED_SILENT)) + " > 0",
        hold="2m",
        summary="{{ $labels.cluster }}: its feed has sent no heartbeat for {{ $value | humanizeDuration }}",
        description="No Evict is issued for the cluster while its feed is silent.",
    ),
    Alert(
        name="EvictstreamFeedUnproven",
        severity="warning",
        expression=worst("namespace, cluster", series(FeedMetric.PROVEN)) + " == 0",
        hold="2m",
        summary="{{ $labels.cluster }}: no feed is sure to have seen every change",
        description="The feed sends no heartbeats meanwhile, so evictions of the cluster wait.",
    ),
    Alert(
        name="EvictstreamFeedRefused",
        severity="warning",
        expression=worst("namespace, cluster", series(FeedMetric.REFUSED)) + " == 1",
        hold="1m",
        summary="{{ $labels.cluster }}: it is not fed until somebody changes something",
        description="Credentials, rights or a name are wrong, or another cluster answers at the address.",
    ),
    Alert(
        name="EvictstreamFeedProfile",
        severity="warning",
        expression=worst("namespace, cluster", series(FeedMetric.PROFILE_READ)) + " == 0",
        hold="1h",
        summary="{{ $labels.cluster }}: no feed can read its ClusterProfile",
        description="The labels that were read last stay. Nothing is decided by them, and evictions go on.",
    ),
    Alert(
        name="EvictstreamFeedLeaders",
        severity="warning",
        expression=total("namespace, cluster", series(FeedMetric.LEADER)) + " != 1",
        hold="2m",
        summary="{{ $labels.cluster }}: {{ $value }} feeds write it, instead of one",
        description="Feeds of one cluster form a group, in which Kafka lets one write.",
    ),
    Alert(
        name="EvictstreamFeedUnreadObjects",
        severity="warning",
        expression=total("namespace, cluster, kind", increase(FeedMetric.READS, 'what="unread"', over="1h")) + " > 0",
        hold="0m",
        summary="{{ $labels.cluster }}: objects of kind {{ $labels.kind }} were skipped in the last hour",
        description="The feed cannot read these objects, so their changes are missing.",
    ),
)

PROCESSES: Final = (
    Alert(
        name="EvictstreamRestarts",
        severity="warning",
        expression=(
            f"changes({START_TIME}[15m]) >= 2\n"
            f"  and on (namespace, job, instance) last_over_time({series(BUILD_INFO)}[15m])"
        ),
        hold="0m",
        summary="{{ $labels.instance }} ({{ $labels.job }}) has started again {{ $value }} times in 15m",
        description="The last line of the log before each start says why.",
    ),
    Alert(
        name="EvictstreamProgramGone",
        severity="critical",
        # A day: where nothing else evicts, whoever is called must not read after an hour that it is over.
        expression=(
            f"group by (namespace, job, program) (last_over_time({series(BUILD_INFO)}[1d]))\n"
            f"  unless group by (namespace, job, program) ({series(BUILD_INFO)})"
        ),
        hold="3m",
        summary="{{ $labels.job }}: no {{ $labels.program }} answers any more",
        description="All of them ended, or Prometheus cannot reach them. A day later the alert ends by itself.",
    ),
)

GROUPS: Final = {
    "evictstream-evictions": EVICTIONS,
    "evictstream-workers": WORKERS,
    "evictstream-executors": EXECUTORS,
    "evictstream-feeds": FEEDS,
    "evictstream-processes": PROCESSES,
}

ALERTS: Final = tuple(alert for group in GROUPS.values() for alert in group)
