"""Mutations of the executor, and of what the whole loop holds: which pod, which command, which epoch."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

LOOP = "tests/faults/loop/test_sample.py"
LAST_LOOK = "tests/models/execution/test_last_look.py"
LOG = "tests/models/execution/test_command_log.py"
QUEUE = "tests/models/execution/test_work_queue.py"
EVICTION = "tests/streams/executor/test_eviction.py"
ANSWERS = "tests/models/execution/test_api_answers.py"
CREDENTIALS = "tests/streams/kubernetes/test_credentials_of_users.py"
TIME_LIMITS = "tests/streams/kubernetes/test_time_limits.py"
WHICH_CLUSTER = "tests/streams/kubernetes/test_which_cluster.py"
EXECUTION = "tests/streams/executor/test_execution.py"
STARTS = "tests/streams/executor/test_partition_starts.py"
OFFSETS = "tests/streams/executor/test_answered_offsets.py"

OF_ENDS = (
    Mutation(
        "be ready behind a transaction that is left open",
        (Change(product.EXECUTOR_HEALTH, "_blocked_seconds", "not life.is_served or life.reader is None", "True"),),
        ("tests/streams/executor/test_open_transaction.py::test_an_open_transaction_is_told_until_it_ends",),
    ),
    Mutation(
        "evict whatever has the pod's name",
        (Change(product.LAST_LOOK, "last_look", "pod.uid != command.pod_uid", "False"),),
        (f"{LAST_LOOK}::test_a_command_of_an_untolerated_pod",),
    ),
    Mutation(
        "evict although the taint is gone",
        (Change(product.LAST_LOOK, "last_look", "_of_taints(...)", "None"),),
        (f"{LAST_LOOK}::test_a_command_of_an_untolerated_pod",),
    ),
    Mutation(
        "take one health taint for the other that is there",
        (
            Change(
                product.LAST_LOOK,
                "_same_reason",
                "reason.key not in by_key and reason.key in HEALTH_KEYS",
                "reason.key in HEALTH_KEYS and other_health_key(reason.key) in by_key",
            ),
        ),
        (f"{LAST_LOOK}::test_the_other_health_taint_stands_for_no_present_one",),
    ),
    Mutation(
        "do a cancelled eviction",
        (Change(product.COMMAND_LOG, "CommandLog.read", "entry.is_cancelled", "False"),),
        (f"{LOG}::test_a_command_after_others",),
    ),
    Mutation(
        "do an eviction of any age",
        (
            Change(
                product.COMMAND_LOG,
                "CommandLog.read",
                "now_us - instant_us(command.issued_at) > self._oldest_us",
                "False",
            ),
        ),
        (f"{LOG}::test_a_command_beyond_the_age_limit_is_obsolete",),
    ),
    Mutation(
        "serve the largest namespace first",
        (
            Change(
                product.WORK_QUEUE,
                "WorkQueue._first",
                "self._turns.append(namespace)",
                "self._turns.appendleft(namespace)",
            ),
        ),
        (f"{QUEUE}::test_namespaces_take_turns",),
    ),
    Mutation(
        "take what was observed for an answer",
        (Change(product.LIFECYCLE, "report", "outcome is Outcome.OBSERVED", "False"),),
        ("tests/models/eviction/test_executing.py::test_an_observer_neither_ends_nor_moves_an_attempt",),
    ),
    Mutation(
        "take new commands for answered ones once Kafka was restored",
        (
            Change(product.PARTITION_STARTS, "PartitionStarts.begin", "committed.offset > end", "False"),
            Change(product.COMMAND_CONSUMER, "CommandConsumer._read", "record.offset < partition.position", "False"),
        ),
        (f"{STARTS}::test_a_topic_that_ends_early_is_read_by_time",),
    ),
    Mutation(
        "take new commands for answered ones once Kafka was cut",
        (Change(product.COMMAND_CONSUMER, "CommandConsumer._read", "record.offset < partition.position", "False"),),
        (f"{STARTS}::test_a_topic_that_goes_back_is_read_by_time",),
    ),
    Mutation(
        "overrule a budget early where the clock is ahead",
        (
            Change(
                product.EVICTION,
                "PodEvictor._patience_seconds",
                "seen_at + seconds - time.monotonic()",
                "-math.inf",
            ),
        ),
        (f"{EVICTION}::test_after_the_latest_time_a_budget_is_overruled",),
    ),
    Mutation(
        "wait for other clusters' records behind an open command",
        (
            Change(
                product.ANSWERED_OFFSETS,
                "AnsweredOffsets.is_far",
                "len(self._answered)",
                "sum(end - begin for begin, end in self._passed)",
            ),
        ),
        (f"{OFFSETS}::test_other_clusters_records_hold_up_no_reading",),
    ),
    Mutation(
        "carry out commands of another cluster",
        (
            Change(product.CLUSTER_IDENTITY, "IdentifiedEvictor.evict", "self._identity.objection(command)", "None"),
            Change(product.CLUSTER_IDENTITY, "ClusterIdentity.__init__", "connection.expect_cluster(uid)", "None"),
        ),
        ("tests/streams/executor/test_cluster_identity.py::test_another_cluster_is_served_once_it_is_fed",),
    ),
    Mutation(
        "take a rebuilt cluster for a wrong one",
        (Change(product.CLUSTER_IDENTITY, "ClusterIdentity._look", "uid == self._fed_uid", "False"),),
        ("tests/streams/executor/test_cluster_identity.py::test_another_cluster_is_served_once_it_is_fed",),
    ),
    Mutation(
        "end with the first cluster that cannot be served",
        (
            Change(
                product.EXECUTION,
                "execute_commands",
                "all((life.refusal is not None for life in lives))",
                "any((life.refusal is not None for life in lives))",
            ),
        ),
        ("tests/streams/executor/test_clusters_apart.py::test_a_right_that_is_granted_later_is_enough",),
    ),
    Mutation(
        "let one namespace have all that may run",
        (Change(product.WORK_QUEUE, "WorkQueue.take", "self._running_in[namespace] >= share", "False"),),
        (f"{QUEUE}::test_a_namespace_that_is_slow_leaves_room_for_others",),
    ),
    Mutation(
        "evict one pod twice at once",
        (
            Change(product.WORK_QUEUE, "WorkQueue._append", "behind is not None", "False"),
            Change(product.WORK_QUEUE, "WorkQueue._first", "first.command.pod_uid in self._behind", "False"),
        ),
        (f"{QUEUE}::test_a_further_attempt_waits_for_the_one_that_runs",),
    ),
    Mutation(
        "have evictions wait for workers that never come",
        (Change(product.CLUSTER_EXECUTOR, "ClusterExecutor.expire", "self._queue.remove_older(...)", "[]"),),
        ("tests/streams/executor/test_cluster_executor.py::test_what_no_worker_comes_to_is_given_back",),
    ),
    Mutation(
        "forget what was answered behind an open command",
        (Change(product.ANSWERED_OFFSETS, "AnsweredOffsets.metadata", "not self._answered", "True"),),
        (OFFSETS, f"{EXECUTION}::test_a_restart_repeats_what_had_no_outcome_and_nothing_else"),
    ),
    Mutation(
        "delete without the version that was looked at",
        (
            Change(
                product.POD_REQUESTS,
                "PodRequests.delete",
                "{'uid': command.pod_uid, 'resourceVersion': resource_version}",
                "{'uid': command.pod_uid}",
            ),
            Change(
                product.POD_REQUESTS,
                "PodRequests.mark",
                "{'uid': command.pod_uid, 'resourceVersion': seen.resource_version}",
                "{'uid': command.pod_uid}",
            ),
        ),
        (f"{EVICTION}::test_a_toleration_between_look_and_delete_saves_the_pod",),
    ),
    Mutation(
        "take a budget's refusal for the server's",
        (Change(product.API_ANSWERS, "_of_refusal", "cause.reason == _BUDGET_CAUSE", "False"),),
        (f"{ANSWERS}::test_an_answer_counts_by_who_gave_it",),
    ),
    Mutation(
        "take a budget's 403 for a right that is missing",
        (Change(product.API_ANSWERS, "_of_refusal", "code in _BUDGET_CODES", "code == 429"),),
        (f"{ANSWERS}::test_a_budget_that_is_unusable_now_only_delays",),
    ),
    Mutation(
        "take a proxy's 404 for the API server's",
        (
            Change(
                product.API_ANSWERS,
                "_of_refusal",
                "status.reason == 'NotFound' and is_of_object and details.kind == plural",
                "True",
            ),
        ),
        (f"{ANSWERS}::test_an_answer_counts_by_who_gave_it",),
    ),
    Mutation(
        "take a page with 200 for done",
        (
            Change(
                product.API_ANSWERS,
                "_of_success",
                "(answer.api_version, answer.kind) == _KINDS[plural] and has_name",
                "True",
            ),
        ),
        (f"{ANSWERS}::test_an_answer_counts_by_who_gave_it",),
    ),
    Mutation(
        "take a webhook's word for the server's",
        (Change(product.API_ANSWERS, "_of_refusal", "WEBHOOK.search(status.message or '')", "False"),),
        (f"{ANSWERS}::test_an_answer_counts_by_who_gave_it",),
    ),
    Mutation(
        "hold all up for one pod in doubt",
        (Change(product.API_ANSWERS, "OtherObjects.trouble", "other != uid and at > since", "False"),),
        (f"{EVICTION}::test_one_pod_with_doubtful_answers_holds_up_no_other",),
    ),
    Mutation(
        "write to whatever cluster answers",
        (Change(product.EXPECTED_CLUSTER, "ExpectedCluster.is_known", "not self._uid or ...", "True"),),
        (f"{WHICH_CLUSTER}::test_another_cluster_at_the_address_gets_no_request",),
    ),
    Mutation(
        "go where the kubeconfig leads now",
        (Change(product.ACCESS, "ClusterAccess.client", "now != target", "False"),),
        (f"{WHICH_CLUSTER}::test_credentials_that_belong_elsewhere_are_not_taken",),
    ),
    Mutation(
        "become anonymous when credentials vanish",
        (Change(product.RENEWED_CLIENT, "_Renewal._read", "client.credentials.are_none", "False"),),
        (f"{CREDENTIALS}::test_credentials_that_vanish_are_an_error",),
    ),
    Mutation(
        "wait for bytes without an end",
        (Change(product.TIME_LIMITS, "TimeLimit._shut_down", "self._socket is not None", "False"),),
        (f"{TIME_LIMITS}::test_an_answer_byte_by_byte_ends_with_its_time",),
    ),
    Mutation(
        "act before what was there has been read",
        (Change(product.COMMANDS_PARTITION, "CommandsPartition.is_caught_up", "self._position >= self._end", "True"),),
        (f"{EXECUTION}::test_a_cancel_that_was_there_before_the_start_comes_first",),
    ),
    Mutation(
        "write upon a look of before a freeze",
        (Change(product.TIME_LIMITS, "TimeLimit.before_sending", "time.monotonic() > self._send_until()", "False"),),
        (f"{EVICTION}::test_a_look_of_before_a_freeze_does_not_count",),
    ),
    Mutation(
        "keep a pending eviction that was cancelled",
        (Change(product.COMMAND_ANSWERS, "CommandAnswers.take", "partition.withdraw(command.eviction_id)", "None"),),
        ("tests/streams/executor/test_command_answers.py::test_a_cancel_ends_an_eviction_that_is_pending",),
    ),
    Mutation(
        "let a queued eviction go from any state to any other",
        (Change(product.WORK_QUEUE, "QueuedEviction.move", "state not in _MOVES[self.state]", "False"),),
        (f"{QUEUE}::test_a_state_that_cannot_follow_is_an_error",),
    ),
    Mutation(
        "leave a pod alone that etcd has brought back",
        (Change(product.POD_STEPS, "apply_pod", "is_of_later_epoch(version, pod.version)", "False"),),
        ("tests/models/eviction/test_lifecycle.py::test_done_is_undone_by_a_later_epoch_alone",),
    ),
    Mutation(
        "loop: keep what a listing does not hold",
        (
            Change(
                product.SIGNAL_STEPS,
                "SignalSteps._remove_unlisted",
                "listed.covers(aggregate.name)",
                "False",
            ),
        ),
        (LOOP,),
    ),
)
