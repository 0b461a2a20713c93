"""Mutations of what is believed of an executor's queue, of what it reports, and of what brakes hold in it."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

QUEUE = "tests/models/eviction/test_executor_queue.py"
REPORTS = "tests/streams/partition/test_reports.py"
ANSWERS = "tests/streams/executor/test_command_answers.py"
HELD = "tests/streams/executor/test_held_evictions.py"
EXECUTOR = "tests/streams/executor/test_cluster_executor.py"

OF_QUEUES = (
    Mutation(
        "believe a report however old it is",
        (
            Change(
                product.EXECUTOR_QUEUE,
                "held_until_us",
                "queue.reported_at_us + rules.report_silence_us",
                "issued_at_us + rules.accepted_limit_us",
            ),
        ),
        (QUEUE, REPORTS),
    ),
    Mutation(
        "believe that an executor has what it has not read",
        (Change(product.EXECUTOR_QUEUE, "ExecutorQueue.holds", "issued_at_us <= self.read_to_us", "True"),),
        (QUEUE, REPORTS),
    ),
    Mutation(
        "hold a repeat back for as long as reports come",
        (
            Change(
                product.EXECUTOR_QUEUE,
                "held_until_us",
                "min(..., ...)",
                "queue.reported_at_us + rules.report_silence_us",
            ),
        ),
        (QUEUE,),
    ),
    Mutation(
        "hold back what was answered",
        (Change(product.EXECUTOR_QUEUE, "held_until_us", "eviction.outcome not in _NOT_ANSWERED", "False"),),
        (QUEUE,),
    ),
    Mutation(
        "repeat what was only observed",
        (Change(product.EXECUTOR_QUEUE, "is_only_observed", "eviction.outcome is not _OBSERVED", "True"),),
        (QUEUE, REPORTS),
    ),
    Mutation(
        "never repeat what was observed",
        (Change(product.EXECUTOR_QUEUE, "is_only_observed", "queue is None or ...", "True"),),
        (QUEUE, REPORTS),
    ),
    Mutation(
        "let what was observed sleep when an executor reports",
        (
            Change(
                product.SIGNAL_STEPS,
                "SignalSteps.apply",
                "self._wake_observed(signal.cluster, appended_at_us)",
                "None",
            ),
        ),
        (f"{REPORTS}::test_what_was_only_observed_waits_for_a_report",),
    ),
    Mutation(
        "begin to act without a report",
        (Change(product.COMMAND_ANSWERS, "CommandAnswers._report", "self._reported != partition.reading", "False"),),
        (f"{ANSWERS}::test_each_reading_reports_once_it_has_caught_up",),
    ),
    Mutation(
        "report before the partition has been read",
        (Change(product.COMMAND_ANSWERS, "CommandAnswers._report", "partition.is_caught_up(now)", "True"),),
        (f"{ANSWERS}::test_each_reading_reports_once_it_has_caught_up",),
    ),
    Mutation(
        "let a report make a row for a cluster that is not known",
        (Change(product.PARTITION_CLUSTERS, "Clusters.report", "not cluster.nodes", "False"),),
        (f"{REPORTS}::test_reports_of_clusters_without_nodes_make_no_row",),
    ),
    Mutation(
        "report what has left the queue before it is answered",
        (Change(product.COMMAND_ANSWERS, "CommandAnswers._report", "self._take_outcomes()", "None"),),
        (f"{ANSWERS}::test_what_has_left_the_queue_is_answered_before_the_report",),
    ),
    Mutation(
        "let observers report",
        (
            Change(
                product.COMMAND_ANSWERS,
                "CommandAnswers.sweep",
                "self._cluster.mode is not ExecutorMode.OBSERVE",
                "True",
            ),
        ),
        (f"{ANSWERS}::test_no_observer_reports_what_waits",),
    ),
    Mutation(
        "carry out what a brake holds",
        (Change(product.EVICTION, "PodEvictor._held", "held is None", "True"),),
        (f"{HELD}::test_no_request_is_made_for_what_is_held",),
    ),
    Mutation(
        "look at the brakes before the first request alone",
        (Change(product.EVICTION, "PodEvictor._look_and_write", "self._held(command, zone) is None", "True"),),
        (f"{HELD}::test_a_brake_between_mark_and_delete_saves_the_pod",),
    ),
    Mutation(
        "take no brake of a zone for one",
        (Change(product.CLUSTER_BRAKES, "ClusterBrakes.held", "zone is not None", "False"),),
        (f"{HELD}::test_a_zone_is_that_of_the_node",),
    ),
    Mutation(
        "spread again what the service has spread",
        (Change(product.CLUSTER_BRAKES, "ClusterBrakes.held", "max(deadline_us, issued_us)", "deadline_us"),),
        (f"{HELD}::test_what_was_due_is_spread_after_the_end",),
    ),
    Mutation(
        "end a brake by the executor's own clock",
        (Change(product.CLUSTER_BRAKES, "ClusterBrakes.held", "self._known.kafka_time.earlier(now_us)", "now_us"),),
        (f"{HELD}::test_a_clock_ahead_ends_no_brake",),
    ),
    Mutation(
        "let results tell nothing of Kafka's clock",
        (Change(product.CLUSTER_LIFE, "ClusterLife._serve", "self.brakes.note_answer", "lambda appended_ms: None"),),
        ("tests/streams/executor/test_brakes_in_kafka.py::test_a_brake_holds_what_is_issued_until_its_release",),
    ),
    Mutation(
        "evict while brakes are unknown",
        (Change(product.CLUSTER_EXECUTOR, "ClusterExecutor._turn", "self.brakes.objection() is not None", "False"),),
        (f"{EXECUTOR}::test_nothing_begins_while_brakes_are_unknown",),
    ),
    Mutation(
        "leave what waits to its turn when a brake comes",
        (
            Change(
                product.COMMAND_ANSWERS,
                "CommandAnswers.answer_held",
                "self._looked_for is not self._cluster.brakes.all",
                "False",
            ),
        ),
        (f"{ANSWERS}::test_what_a_brake_holds_is_answered_when_it_comes",),
    ),
)
