"""For each alert, series at which it must fire, and when; and at which it must stay silent.

Values are in promtool's notation, one a minute: `0+60x20` is 0, 60, … 1200, and `1x3 stale` ends after four values.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class AlertCase(NamedTuple):
    """Series, and what becomes of one alert.

    Attributes:
        alert: its name.
        given: values by series.
        silent_at: minutes at which it does not fire.
        fires_at: the minute at which it fires, if it ever does.
        labels: of the alert that fires.
        summary: what it says then.
    """

    alert: str
    given: dict[str, str]
    silent_at: tuple[int, ...] = ()
    fires_at: int | None = None
    labels: dict[str, str] = {}  # noqa: RUF012 - it is never changed
    summary: str = ""


_LAB: Final = {"cluster": "lab"}

CASES: Final = (
    AlertCase(
        alert="EvictstreamEvictionOwed",
        given={'evictstream_evictions_owed_oldest_seconds{cluster="lab", instance="w1"}': "0+60x20"},
        silent_at=(5, 6),
        fires_at=7,
        labels=_LAB,
        summary="lab: a pod had to leave 7m 0s ago and is still there",
    ),
    AlertCase(
        alert="EvictstreamEvictionOwed",
        given={'evictstream_evictions_owed_oldest_seconds{cluster="lab"}': "0 300 0 300 310 0 300 310 0"},
        silent_at=(1, 4, 5, 7, 8),
    ),
    AlertCase(
        alert="EvictstreamEvictionsHeldBack",
        given={
            'evictstream_evictions_waiting_oldest_seconds{cluster="lab", gate="feed"}': "0+30x10",
            'evictstream_evictions_waiting_oldest_seconds{cluster="dev", gate="owner"}': "5 20 60 0x10",
        },
        silent_at=(2,),
        fires_at=3,
        labels={**_LAB, "gate": "feed"},
        summary="lab: gate feed has held back evictions that are due for 1m 30s",
    ),
    AlertCase(
        alert="EvictstreamEvictionsHeld",
        given={
            'evictstream_evictions_held_oldest_seconds{cluster="lab", brake="b-1", instance="w1"}': "0+60x90",
            'evictstream_evictions_held_oldest_seconds{cluster="dev", brake="b-1", instance="w1"}': "0+60x20 0x70",
        },
        silent_at=(60,),
        fires_at=61,
        labels={**_LAB, "brake": "b-1"},
        summary="lab: b-1 has held evictions that are due for 1h 1m 0s",
    ),
    AlertCase(
        alert="EvictstreamIncidentWaits",
        given={
            'evictstream_incident_waiting_seconds{cluster="lab", policy="large", instance="w1"}': "0+60x20",
            'evictstream_incident_waiting_seconds{cluster="dev", policy="large", instance="w1"}': "0+60x8",
        },
        silent_at=(10,),
        fires_at=11,
        labels={**_LAB, "policy": "large"},
        summary="lab: an incident of policy large has waited for a person for 11m 0s",
    ),
    AlertCase(
        alert="EvictstreamBrakeStands",
        given={
            'evictstream_brake_seconds{brake="b-1", instance="w1"}': "28740+60x9",
            'evictstream_brake_seconds{brake="b-1", instance="w2"}': "28740+60x9",
            'evictstream_brake_seconds{brake="b-2", instance="w1"}': "0+60x9",
        },
        silent_at=(1,),
        fires_at=2,
        labels={"brake": "b-1"},
        summary="brake b-1 was set 8h 1m 0s ago and still stands",
    ),
    AlertCase(
        alert="EvictstreamBrakesUnreadable",
        given={
            'evictstream_brakes_unreadable{namespace="x", instance="w1"}': "0 0 1x9",
            'evictstream_brakes_unreadable{namespace="x", instance="w2"}': "0 0 1x9",
        },
        silent_at=(1, 2),
        fires_at=3,
        labels={"namespace": "x"},
        summary="1 records of brakes cannot be read",
    ),
    AlertCase(
        alert="EvictstreamPoliciesUnreadable",
        given={'evictstream_policies_unreadable{namespace="x", instance="w1"}': "0 0 1x9"},
        silent_at=(1, 2),
        fires_at=3,
        labels={"namespace": "x"},
        summary="1 records of policies cannot be read",
    ),
    AlertCase(
        alert="EvictstreamEvictUnanswered",
        given={
            'evictstream_evictions_unanswered_oldest_seconds{cluster="lab", namespace="x", instance="w1"}': "0+60x10",
            'evictstream_evictions_unanswered_oldest_seconds{cluster="lab", namespace="x", instance="w2"}': "0x10",
            'evictstream_evictions_unanswered_oldest_seconds{cluster="dev", namespace="x"}': "30x10",
        },
        silent_at=(2,),
        fires_at=3,
        labels={**_LAB, "namespace": "x"},
        summary="lab: no executor has answered an Evict of 3m 0s ago",
    ),
    AlertCase(
        alert="EvictstreamEvictionsFail",
        given={
            'evictstream_executor_results_total{cluster="lab", mode="delete", outcome="Refused"}': "0x5 1x40",
            'evictstream_executor_results_total{cluster="lab", mode="delete", outcome="Succeeded"}': "0+9x45",
            'evictstream_executor_results_total{cluster="lab", mode="observe", outcome="Observed"}': "0+9x45",
        },
        silent_at=(5, 30),
        fires_at=8,
        labels={**_LAB, "outcome": "Refused"},
        summary="lab: the executor has answered Refused in the last 15m",
    ),
    AlertCase(
        alert="EvictstreamPartitionsWithoutWorker",
        given={
            'evictstream_partitions{job="workers", instance="w1"}': "8x20",
            'evictstream_partitions{job="workers", instance="w2"}': "8x3 stale",
            'evictstream_partitions_owned{job="workers", instance="w1"}': "4x20",
            'evictstream_partitions_owned{job="workers", instance="w2"}': "4x3 stale",
        },
        silent_at=(3, 5),
        fires_at=6,
        labels={"job": "workers"},
        summary="workers: the workers have 4 partitions, which are too few or too many",
    ),
    AlertCase(
        alert="EvictstreamPartitionsWithoutWorker",
        given={  # one rebalance, as it looks between two scrapes
            'evictstream_partitions{job="workers"}': "8x20",
            'evictstream_partitions_owned{job="workers"}': "8x3 0 8x10",
        },
        silent_at=(3, 4, 5, 6, 7),
    ),
    AlertCase(
        alert="EvictstreamGateClosed",
        given={
            'evictstream_partition_gate_closed{partition="3", gate="clock"}': "1x20",
            'evictstream_partition_gate_closed{partition="4", gate="owner"}': "1x3 0x20",
            'evictstream_partition_gate_closed{partition="5", gate="gap"}': "1x20",
        },
        silent_at=(4,),
        fires_at=5,
        labels={"partition": "3", "gate": "clock"},
        summary="partition 3: gate clock is closed",
    ),
    AlertCase(
        alert="EvictstreamInputLost",
        given={'evictstream_partition_gate_closed{partition="3", gate="gap"}': "0 1x20"},
        silent_at=(0, 1),
        fires_at=2,
        labels={"partition": "3"},
        summary="partition 3: input expired before a worker read it",
    ),
    AlertCase(
        alert="EvictstreamLag",
        given={
            'evictstream_lag_seconds{partition="3", input="pods"}': "90x20",
            'evictstream_lag_seconds{partition="4", input="pods"}': "30x20",
            'evictstream_lag_seconds{partition="5", input="pods"}': "Inf Inf Inf Inf 0x20",
        },
        silent_at=(4,),
        fires_at=5,
        labels={"partition": "3", "input": "pods"},
        summary="partition 3: pods are 1m 30s behind",
    ),
    AlertCase(
        alert="EvictstreamDeadLetters",
        given={
            'evictstream_dead_letters_total{reason="BadJson"}': "0x5 1x40",
            'evictstream_dead_letters_total{reason="BadKey"}': "7x45",
        },
        silent_at=(5, 30),
        fires_at=8,
        labels={"reason": "BadJson"},
        summary="records became dead letters in the last 15m, reason BadJson",
    ),
    AlertCase(
        alert="EvictstreamWorkerNearlyStuck",
        given={
            'evictstream_worker_wait_seconds{wait="loop", job="workers", instance="w1"}': "0+10x20",
            'evictstream_worker_wait_limit_seconds{wait="loop", job="workers", instance="w1"}': "60x20",
            'evictstream_worker_wait_seconds{wait="fetch", job="workers", instance="w1"}': "40x20",
            'evictstream_worker_wait_limit_seconds{wait="fetch", job="workers", instance="w1"}': "300x20",
        },
        silent_at=(3,),
        fires_at=4,
        labels={"wait": "loop", "job": "workers", "instance": "w1"},
        summary="w1: loop has been awaited for half of the time that is allowed",
    ),
    AlertCase(
        alert="EvictstreamEvictionRequestsIgnored",
        given={'evictstream_executor_requests_ignored{cluster="lab", instance="e1"}': "0x4 1x10"},
        silent_at=(4, 6),
        fires_at=7,
        labels=_LAB,
        summary="lab: no controller acts on EvictionRequests",
    ),
    AlertCase(
        alert="EvictstreamExecutorRefused",
        given={
            'evictstream_executor_hindered{cluster="lab"}': "0x3 1x20",
            'evictstream_executor_hindered{cluster="dev"}': "1 0x20",
        },
        silent_at=(3, 5),
        fires_at=6,
        labels=_LAB,
        summary="lab: an executor runs but can evict nothing",
    ),
    AlertCase(
        alert="EvictstreamExecutorsActing",
        given={
            'evictstream_executor_active{cluster="lab", mode="delete", instance="e1"}': "1x20",
            'evictstream_executor_active{cluster="lab", mode="delete", instance="e2"}': "0x3 1x20",
            'evictstream_executor_active{cluster="lab", mode="observe", instance="e3"}': "1x20",
            'evictstream_executor_active{cluster="dev", mode="observe", instance="e3"}': "0x20",
        },
        silent_at=(3, 5),
        fires_at=6,
        labels=_LAB,
        summary="lab: 2 executors read its commands, instead of one",
    ),
    AlertCase(
        alert="EvictstreamCommandsBlocked",
        given={'evictstream_executor_held_seconds{cluster="lab"}': "0 20 40 60 80"},
        silent_at=(1, 2),
        fires_at=3,
        labels=_LAB,
        summary="lab: an open transaction has kept commands from its executor for 1m 0s",
    ),
    AlertCase(
        alert="EvictstreamFeedSilent",
        given={
            'evictstream_cluster_feed_silent_seconds{cluster="lab", instance="w1"}': "0x3 60+60x10",
            'evictstream_cluster_feed_silent_seconds{cluster="dev", instance="w1"}': "0x20",
        },
        silent_at=(3, 5),
        fires_at=6,
        labels=_LAB,
        summary="lab: its feed has sent no heartbeat for 3m 0s",
    ),
    AlertCase(
        alert="EvictstreamFeedUnproven",
        given={
            'evictstream_feed_proven{cluster="lab", instance="f1"}': "1x3 0x20",
            'evictstream_feed_proven{cluster="lab", instance="f2"}': "0x20",
            'evictstream_feed_proven{cluster="dev", instance="f1"}': "1x20",
            'evictstream_feed_proven{cluster="dev", instance="f2"}': "0x20",
        },
        silent_at=(3, 5),
        fires_at=6,
        labels=_LAB,
        summary="lab: no feed is sure to have seen every change",
    ),
    AlertCase(
        alert="EvictstreamFeedRefused",
        given={'evictstream_feed_refused{cluster="lab"}': "0 1x10", 'evictstream_feed_refused{cluster="dev"}': "0x10"},
        silent_at=(0, 1),
        fires_at=2,
        labels=_LAB,
        summary="lab: it is not fed until somebody changes something",
    ),
    AlertCase(
        alert="EvictstreamFeedProfile",
        given={
            'evictstream_feed_profile_read{cluster="lab", instance="f1"}': "1 0x99",
            'evictstream_feed_profile_read{cluster="lab", instance="f2"}': "0x100",
            'evictstream_feed_profile_read{cluster="dev", instance="f1"}': "1x100",
            'evictstream_feed_profile_read{cluster="dev", instance="f2"}': "0x100",
        },
        silent_at=(0, 60),
        fires_at=61,
        labels=_LAB,
        summary="lab: no feed can read its ClusterProfile",
    ),
    AlertCase(
        alert="EvictstreamFeedLeaders",
        given={
            'evictstream_feed_leader{cluster="lab", instance="f1"}': "1x3 0x20",
            'evictstream_feed_leader{cluster="lab", instance="f2"}': "0x20",
            'evictstream_feed_leader{cluster="dev", instance="f1"}': "1x3 0x20",
            'evictstream_feed_leader{cluster="dev", instance="f2"}': "0x3 1x20",
        },
        silent_at=(3, 5),
        fires_at=6,
        labels=_LAB,
        summary="lab: 0 feeds write it, instead of one",
    ),
    AlertCase(
        alert="EvictstreamFeedUnreadObjects",
        given={
            'evictstream_feed_reads_total{cluster="lab", kind="Pod", what="unread"}': "0x5 1x90",
            'evictstream_feed_reads_total{cluster="lab", kind="Pod", what="watches"}': "0+1x95",
        },
        silent_at=(5, 80),
        fires_at=10,
        labels={**_LAB, "kind": "Pod"},
        summary="lab: objects of kind Pod were skipped in the last hour",
    ),
    AlertCase(
        alert="EvictstreamRestarts",
        given={
            'process_start_time_seconds{job="workers", instance="w1"}': "100x2 200x2 300x40",
            'evictstream_build_info{job="workers", instance="w1", program="worker", version="1"}': "1x20",
            'process_start_time_seconds{job="others", instance="o1"}': "100 200 300 400x40",
            'process_start_time_seconds{job="workers", instance="w2"}': "100x2 200x40",
            'evictstream_build_info{job="workers", instance="w2", program="worker", version="1"}': "1x2 stale",
            'evictstream_build_info{job="workers", instance="w2", program="worker", version="2"}': "_x2 1x20",
        },
        silent_at=(4, 30),
        fires_at=6,
        labels={"job": "workers", "instance": "w1"},
        summary="w1 (workers) has started again 2 times in 15m",
    ),
    AlertCase(
        alert="EvictstreamProgramGone",
        given={
            'evictstream_build_info{job="feeds", instance="f1", program="feed", version="1"}': "1x3 stale",
            'evictstream_build_info{job="workers", instance="w1", program="worker", version="1"}': "1x3 stale",
            'evictstream_build_info{job="workers", instance="w2", program="worker", version="1"}': "1x1600",
        },
        silent_at=(3, 6, 1500),
        fires_at=7,
        labels={"job": "feeds", "program": "feed"},
        summary="feeds: no feed answers any more",
    ),
    AlertCase(
        alert="EvictstreamProgramGone",
        given={
            'evictstream_build_info{job="workers", instance="w1", program="worker", version="1"}': "1x2 stale",
            'evictstream_build_info{job="workers", instance="w2", program="worker", version="1"}': "1x3 stale",
        },
        silent_at=(3, 6),
        fires_at=7,
        labels={"job": "workers", "program": "worker"},
        summary="workers: no worker answers any more",
    ),
    AlertCase(
        alert="EvictstreamProgramGone",
        given={'evictstream_build_info{job="executors", instance="e1", program="executor", version="1"}': "1x3 stale"},
        silent_at=(3, 6),
        fires_at=7,
        labels={"job": "executors", "program": "executor"},
        summary="executors: no executor answers any more",
    ),
    AlertCase(
        alert="EvictstreamProgramGone",  # as long as somebody is on call
        given={'evictstream_build_info{job="executors", instance="e1", program="executor", version="1"}': "1x3 stale"},
        silent_at=(6,),
        fires_at=1200,
        labels={"job": "executors", "program": "executor"},
        summary="executors: no executor answers any more",
    ),
)
