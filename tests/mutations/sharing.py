"""Mutations of executors that share a group: who acts, after a stall, a loss of the partition, or a death."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

LOG = "tests/models/execution/test_command_log.py"
EXECUTION = "tests/streams/executor/test_execution.py"
JOINING = "tests/streams/broker/test_reading_while_joining.py"
ASSIGNOR = "tests/streams/executor/test_cluster_assignor.py"

OF_SHARING = (
    Mutation(
        "read on though another executor has this one's name",
        (Change(product.GROUP_MEMBERSHIP, "GroupConsumer._poll_once", "self._replaced is not None", "False"),),
        ("tests/streams/executor/test_unlike_executors.py::test_of_two_executors_with_one_instance_the_first_ends",),
    ),
    Mutation(
        "read nothing while the group joins",
        (
            Change(
                product.GROUP_MEMBERSHIP,
                "GroupConsumer._poll_once",
                "self._fetch(timer, max_records, update_offsets)",
                "{}",
            ),
        ),
        (f"{JOINING}::test_a_member_reads_on_while_another_holds_up_a_join",),
    ),
    Mutation(
        "go on after a stall as if nothing had happened",
        (
            Change(
                product.COMMAND_CONSUMER,
                "CommandConsumer._note_poll",
                "stalled > STALL_SECONDS",
                "False",
            ),
        ),
        (f"{EXECUTION}::test_a_reader_that_stood_still_reads_anew_first",),
    ),
    Mutation(
        "act after a stall although Kafka has refused the commit",
        (Change(product.GROUP_COMMITS, "GroupCommits.is_in_doubt", "self._is_refused", "False"),),
        ("tests/streams/broker/test_group_commits.py::test_a_refusal_keeps_the_doubt_and_silence_does_not",),
    ),
    Mutation(
        "watch no member that acts",
        (Change(product.GROUP_WATCH, "GroupWatch._look", "asked_at >= self._judges_from", "False"),),
        ("tests/streams/executor/test_successors.py::test_a_restart_waits_for_no_session",),
    ),
    Mutation(
        "take a member for dead that cannot commit",
        (Change(product.GROUP_WATCH, "GroupWatch._dead", "group.state != _TAKES_NO_COMMITS", "True"),),
        ("tests/streams/broker/test_group_watch.py::test_a_silent_member_of_the_group_is_dead",),
    ),
    Mutation(
        "wait from the start for a member that died on this machine",
        (Change(product.MEMBER_BEATS, "_heard_at", "clock and beat.clock == clock", "False"),),
        ("tests/streams/test_member_beats.py::test_one_that_starts_knows_who_died_on_its_machine",),
    ),
    Mutation(
        "count time in which nothing could be heard",
        (
            Change(
                product.MEMBER_BEATS,
                "SilenceWatch.look",
                "answered_at - self._answered_at > BEAT_GAP_SECONDS",
                "False",
            ),
        ),
        ("tests/streams/test_member_beats.py::test_a_watcher_that_was_away_finds_nobody_silent",),
    ),
    Mutation(
        "leave a partition paused that is read again",
        (Change(product.PARTITION_STARTS, "PartitionStarts.begin", "self._consumer.resume(partition)", "None"),),
        (f"{EXECUTION}::test_a_reader_that_stood_still_reads_anew_first",),
    ),
    Mutation(
        "begin evictions while the reader stands still",
        (Change(product.CLUSTER_EXECUTOR, "ClusterExecutor._turn", "now >= self._permitted_until", "False"),),
        (f"{EXECUTION}::test_a_reader_that_stood_still_reads_anew_first",),
    ),
    Mutation(
        "pass over what was abandoned before",
        (Change(product.COMMAND_LOG, "CommandLog.abandon", "entry.is_abandoned = True", "pass"),),
        (
            f"{LOG}::test_an_abandoned_command_is_done_when_read_again",
            f"{EXECUTION}::test_a_reader_that_stood_still_reads_anew_first",
        ),
    ),
    Mutation(
        "answer what is put off and abandoned",
        (Change(product.CLUSTER_EXECUTOR, "ClusterExecutor._end", "eviction.state is QueueState.ABANDONED", "False"),),
        (f"{EXECUTION}::test_what_is_put_off_at_a_stop_comes_again",),
    ),
    Mutation(
        "read commands of transactions that were aborted",
        (Change(product.CLUSTER_LIFE, "ClusterLife._consumer", "'read_committed'", "'read_uncommitted'"),),
        (f"{EXECUTION}::test_each_evict_is_answered_and_nothing_else",),
    ),
    Mutation(
        "let observers share the work with those that act",
        (Change(product.ORDERS, "group_of", "order.mode is ExecutorMode.OBSERVE", "False"),),
        ("tests/streams/executor/test_orders.py::test_no_observers_group_is_one_that_acts",),
    ),
    Mutation(
        "say as an observer what only one that acts may say",
        (Change(product.COMMAND_ANSWERS, "CommandAnswers._answer", "as_observed(answer)", "answer"),),
        ("tests/streams/executor/test_command_answers.py::test_an_observer_answers_nothing_but_observed",),
    ),
    Mutation(
        "let a member that joins have the partition",
        (Change(product.CLUSTER_ASSIGNOR, "ClusterAssignor._owner", "len(claims) == 1", "False"),),
        (f"{ASSIGNOR}::test_who_joins_takes_nothing_away",),
    ),
    Mutation(
        "claim a partition that another executor has by now",
        (Change(product.CLUSTER_ASSIGNOR, "ClusterAssignor.forget", "self.member_assignment = None", "pass"),),
        (f"{ASSIGNOR}::test_who_was_put_out_claims_it_no_more",),
    ),
    Mutation(
        "take an answer of before a loss for one to a later command",
        (
            Change(
                product.COMMAND_ANSWERS,
                "CommandAnswers._note_confirmed",
                "reading == self.partition.reading",
                "True",
            ),
        ),
        ("tests/streams/executor/test_command_answers.py::test_what_was_read_before_a_loss_counts_no_more",),
    ),
)
