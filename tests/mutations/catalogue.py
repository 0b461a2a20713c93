"""The mutations: what is broken, where, and which tests have to notice."""

from __future__ import annotations

from typing import NamedTuple

from tests.mutations import product
from tests.mutations.matching import Change

WORKERS = "tests/guarantees/test_worker_faults.py"
BROKER = "tests/guarantees/test_broker_faults.py"
REFUSALS = "tests/guarantees/test_refusals.py"
INPUT = "tests/guarantees/test_input_faults.py"
WRITER = "tests/streams/engine/test_writer.py"
CLOCK = "tests/streams/worker/test_clock_watch.py"
REPAIRS = "tests/streams/engine/test_repairs.py"
TRANSACTIONS = "tests/streams/engine/test_transactions.py"
REBALANCES = "tests/streams/engine/test_rebalances.py"
TRANSPORT = "tests/streams/engine/test_transport.py"
GATES = "tests/streams/worker/test_gates.py"
HEALTH = "tests/guarantees/test_health.py"
WATCHDOG = "tests/streams/worker/test_watchdog.py"


class Mutation(NamedTuple):
    """What is broken: all of `changes` together; each of `tests` has to fail then."""

    name: str
    changes: tuple[Change, ...]
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "take over without reading the changelog",
        (
            Change(
                product.TAKEOVER,
                "take_over",
                "await reader.read_rows(...)",
                "dict.fromkeys(map(int, [t.partition for t in takeovers]), 0)",
            ),
        ),
        (f"{WORKERS}::test_a_killed_worker_loses_and_repeats_no_eviction",),
    ),
    Mutation(
        "commit the positions of a writer that has failed",
        (Change(product.COMMITTER, "Committer._something_to_write", "return not self._is_stopped", "return True"),),
        (f"{WRITER}::test_nothing_is_committed_once_the_writer_has_failed",),
    ),
    Mutation(
        "lose a cancellation",
        (
            Change(
                product.WAITS,
                "set_within",
                "async with asyncio.timeout(seconds): await event.wait()",
                "await asyncio.wait_for(event.wait(), seconds)",
            ),
        ),
        ("tests/streams/engine/test_waits.py::test_a_cancellation_is_never_taken_away",),
    ),
    Mutation(
        "begin at the end of the inputs after a takeover",
        (Change(product.TAKEOVER, "_settle_positions", "max(position, start)", "end"),),
        (f"{WORKERS}::test_a_killed_worker_loses_and_repeats_no_eviction",),
    ),
    Mutation(
        "seek to group offsets",
        (
            Change(
                product.GROUP_MEMBER,
                "GroupMember.seek_to",
                "self.seek(TopicPartition(topic, number), offset)",
                "self.seek(place := TopicPartition(topic, number), await self.committed(place) or offset)",
            ),
        ),
        # No worker fault shows it: group offsets follow the positions, so more is read again, and ignored. It loses
        # records where somebody has set the group's offsets.
        (f"{TRANSPORT}::test_inputs_are_sought_to_positions_not_to_group_offsets",),
    ),
    Mutation(
        "empty the agents' queues when batches flow again",
        (Change(product.ENGINE_APP, "KeepingFlow.resume", "self._resume.set()", "$0\nself.clear()"),),
        (f"{REBALANCES}::test_batches_read_after_the_seek_survive_a_second_resume",),
    ),
    Mutation(
        "stop a member without leaving because its start has not returned",
        (Change(product.SERVICE, "EvictionService._run", "self.partitions.has_been_assigned", "False"),),
        (f"{WORKERS}::test_sigterm_right_after_the_first_take_over_leaves_the_group",),
    ),
    Mutation(
        "let a stop that fails keep a crashed worker",
        (Change(product.SERVICE, "EvictionService._stop_app", "Exception", "ZeroDivisionError"),),
        (f"{BROKER}::test_a_crash_ends_the_worker_though_stopping_fails",),
    ),
    Mutation(
        "write positions without their rows and messages",
        (
            Change(
                product.COMMITTER,
                "Committer._commit",
                "self.outbox.take()",
                "[$0, Outbox()][self.transactions % 3 == 2]",
            ),
        ),
        (f"{WORKERS}::test_a_killed_worker_loses_and_repeats_no_eviction",),
    ),
    Mutation(
        "skip the fence: a transactional id for each process",
        (
            Change(
                product.CONFIG,
                "EngineConfig.transactional_id",
                'return f"{self.application}-{partition}"',
                'import os\nreturn f"{self.application}-{partition}-{os.getpid()}"',
            ),
        ),
        ("tests/streams/engine/test_transactions.py::test_an_owner_killed_in_mid_transaction_leaves_nothing_behind",),
    ),
    Mutation(
        "skip the fence, and fire whoever the owner is",
        (
            Change(
                product.CONFIG,
                "EngineConfig.transactional_id",
                'return f"{self.application}-{partition}"',
                'import os\nreturn f"{self.application}-{partition}-{os.getpid()}"',
            ),
            Change(product.GATES, "Gates.closed", "self._group.is_rebalancing", "False"),
            Change(product.GATES, "Gates.closed", "not self._lease.valid", "False"),
            Change(product.GATES, "Gates.closed", "age > self._lag_limit_seconds", "False"),
            Change(product.GATES, "Gates.closed", "view.objection() or ...", "None"),
        ),
        (f"{WORKERS}::test_a_worker_paused_beyond_its_session_fires_nothing_and_rejoins",),
    ),
    Mutation(
        "keep timers when their partition is lost",
        (
            Change(
                product.PARTITIONS,
                "Partitions.assign",
                "await self._drop(...)",
                "self._slots = before | self._slots\nkept = set(self._slots)",
            ),
        ),
        (f"{REPAIRS}::test_a_partition_that_is_given_away_is_let_go",),
    ),
    Mutation(
        "go on although a batch is missing",
        (Change(product.WRITER, "PartitionWriter.apply", "batch.start > self.positions[topic]", "False"),),
        (f"{WRITER}::test_a_missing_batch_is_noticed",),
    ),
    Mutation(
        "take in what was read before the newest seek",
        (
            Change(product.WRITER, "PartitionWriter.apply", "batch.epoch != self._epochs.get(topic)", "False"),
            Change(product.WRITER, "PartitionWriter._is_wanted", "batch.epoch == self._epochs[batch.topic]", "True"),
        ),
        (f"{WRITER}::test_what_was_read_before_the_newest_seek_is_ignored",),
    ),
    Mutation(
        "apply records twice",
        (Change(product.WRITER, "PartitionWriter.apply", "batch.records[0].offset < position", "False"),),
        (f"{WRITER}::test_records_that_come_again_are_applied_once",),
    ),
    Mutation(
        "take a failed transaction for a committed one",
        (
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer.start",
                "raise PartitionLostError(partition=self.partition, reason=repr(error)) from error",
                "broker_ms = -1",
            ),
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer._in_time",
                "raise PartitionLostError(partition=self.partition, reason=repr(error)) from error",
                "broker_ms = -1",
            ),
        ),
        ("tests/streams/engine/test_transactions.py",),
    ),
    Mutation(
        "take a transaction for committed that did not come through in a second",
        (
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer._in_time",
                "asyncio.timeout(self._config.transaction_timeout_seconds)",
                "asyncio.timeout(1.0)",
            ),
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer.start",
                "raise PartitionLostError(partition=self.partition, reason=repr(error)) from error",
                "broker_ms = -1",
            ),
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer._in_time",
                "raise PartitionLostError(partition=self.partition, reason=repr(error)) from error",
                "broker_ms = -1",
            ),
        ),
        (f"{BROKER}::test_a_broker_outage_loses_and_repeats_no_eviction",),
    ),
    Mutation(
        "commit although a batch was refused",
        (Change(product.PARTITION_PRODUCER, "PartitionProducer._append", "raise result", "pass"),),
        ("tests/streams/engine/test_transactions.py::test_one_record_too_large_aborts_the_whole_transaction",),
    ),
    Mutation(
        "send what waits to be added to a transaction that has failed",
        (Change(product.PRODUCER, "TransactionalProducer._fail_with_what_waits", "waiting.clear()", "unsent.clear()"),),
        ("tests/streams/engine/test_transactions.py::test_a_transaction_with_a_forbidden_topic_sends_nothing",),
    ),
    Mutation(
        "start with an empty changelog beside committed offsets",
        (Change(product.TAKEOVER, "_settle_positions", "await _refuse_lost_state(...)", "pass"),),
        (f"{REFUSALS}::test_a_worker_refuses_an_empty_changelog_beside_committed_offsets",),
    ),
    Mutation(
        "accept a position beyond the end",
        (Change(product.TAKEOVER, "_bounds", "not beyond", "True"),),
        (f"{REFUSALS}::test_a_worker_refuses_an_input_that_was_created_anew",),
    ),
    Mutation(
        "do not look at the topics at start",
        (Change(product.CHECKS, "checked_record_limit", "report.raise_if_breaking()", "pass"),),
        (f"{REFUSALS}::test_a_worker_refuses_topics_that_are_missing_or_misconfigured",),
    ),
    Mutation(
        "fire in spite of a gap in the input",
        (Change(product.GATES, "Gates.closed", "gap is not None", "False"),),
        (f"{REFUSALS}::test_evictions_wait_after_input_has_expired_unread", GATES),
    ),
    Mutation(
        "let records of other partitions in",
        (
            Change(
                product.EVICTION_PARTITION,
                "EvictionPartition._is_here",
                "partition_of(key, self._config.partitions) == self.partition",
                "True",
            ),
        ),
        (f"{INPUT}::test_a_bad_record_becomes_a_dead_letter_with_its_reason",),
    ),
    Mutation(
        "pass over unreadable records",
        (
            Change(
                product.EVICTION_PARTITION,
                "EvictionPartition._apply_record",
                "self._effects.add_dead_letter(topic, record, outbox, reason=error.reason, detail=error.detail)",
                "pass",
            ),
        ),
        (f"{INPUT}::test_a_bad_record_becomes_a_dead_letter_with_its_reason",),
    ),
    Mutation(
        "accept outdated events",
        (Change(product.RESOURCE_VERSIONS, "is_older", "version < stored", "False"),),
        (f"{INPUT}::test_a_duplicate_or_outdated_event_changes_nothing",),
    ),
    Mutation(
        "do not mind a silent feed",
        (
            Change(
                product.CLUSTER,
                "ClusterState.is_silent",
                "heard_at_us is not None and heard_at_us < older_than_us",
                "False",
            ),
        ),
        (f"{INPUT}::test_a_silent_feed_holds_back_only_its_own_evictions",),
    ),
    Mutation(
        "never look again after an attempt",
        (Change(product.LIFECYCLE, "issue", "issued_at_us + ...", "10**18"),),
        (f"{WORKERS}::test_owed_evictions_are_repeated_while_the_executor_is_down",),
    ),
    Mutation(
        "open the owner gate always",
        (
            Change(product.GATES, "Gates.closed", "self._group.is_rebalancing", "False"),
            Change(product.GATES, "Gates.closed", "not self._lease.valid", "False"),
        ),
        (GATES,),
    ),
    Mutation(
        "trust any clock",
        (Change(product.CLOCK, "ClockWatch.objection", "left > 0", "False"),),
        ("tests/streams/worker/test_clock_watch.py", GATES),
    ),
    Mutation(
        "let an eviction become anything",
        (Change(product.TRANSITIONS, "move", "not is_allowed", "False"),),
        ("tests/models/eviction/test_transitions.py",),
    ),
    Mutation(
        "fire without deciding again",
        (Change(product.POD_STEPS, "fire", "reconcile(step, pod)", "pod.eviction.due"),),
        ("tests/models/eviction",),
    ),
    Mutation(
        "forget a cancel",
        (
            Change(
                product.RENDERING,
                "_tell",
                "step.commands.append",
                "(lambda command: None if command.action == 'Cancel' else $0(command))",
            ),
        ),
        ("tests/models/eviction", "tests/incidents"),
    ),
    Mutation(
        "look at no age",
        (Change(product.WATCHDOG, "find_stuck", "wait in ages and ages[wait] > limits[wait]", "False"),),
        (
            f"{HEALTH}::test_a_blocked_event_loop_is_reported_and_ends_the_worker",
            f"{HEALTH}::test_a_silent_broker_ends_the_worker_after_the_limit",
            WATCHDOG,
        ),
    ),
    Mutation(
        "end a stuck worker only after its last words",
        (Change(product.WATCHDOG, "Watchdog._end", "in_any_case.start()", "pass"),),
        (f"{HEALTH}::test_a_hung_log_or_interpreter_ends_the_worker",),
    ),
    Mutation(
        "take a broker's silence for idleness",
        (
            Change(
                product.GROUP_MEMBER,
                "GroupMember.batches",
                "bool(batches) or answered_ms != self._answered_ms",
                "True",
            ),
            Change(
                product.OWNERSHIP,
                "Ownership.confirm",
                "self._partitions.waits.heartbeat.progress(asked_at)",
                "self._partitions.waits.heartbeat.end()",
            ),
        ),
        (f"{HEALTH}::test_a_silent_broker_ends_the_worker_after_the_limit",),
    ),
    Mutation(
        "take the age of the last record for lag",
        (Change(product.LAG, "Lag.seconds", "not self.records(place, position)", "False"),),
        ("tests/streams/worker/test_lag.py",),
    ),
    Mutation(
        "let a slow transaction vouch for our clock",
        (
            Change(
                product.CLOCK,
                "ClockWatch.observe",
                "least, most = max(least, known_least), min(most, known_most)",
                "pass",
            ),
            Change(
                product.CLOCK,
                "ClockWatch.objection",
                "least, _ = self._brokers_offset_us",
                "_, least = self._brokers_offset_us",
            ),
        ),
        (CLOCK, "tests/faults/test_found.py"),
    ),
    Mutation(
        "repair while the group assigns anew",
        (Change(product.PARTITIONS, "Partitions._on_failure", "not self._is_assigning", "True"),),
        (REPAIRS,),
    ),
    Mutation(
        "ask for a commit again",
        (
            Change(
                product.PRODUCER, "TransactionalProducer._send_with_care", "isinstance(request, EndTxnRequest)", "False"
            ),
        ),
        (f"{TRANSACTIONS}::test_a_commit_without_answer_is_not_asked_for_again",),
    ),
    Mutation(
        "withdraw what is due by a clock that is behind",
        (Change(product.LIFECYCLE, "_change", "step.is_from_event", "True"),),
        ("tests/models/eviction/test_executing.py",),
    ),
    Mutation(
        "keep the state of lost partitions in memory",
        (Change(product.PARTITIONS, "Partitions._drop", "gc.collect()", "pass"),),
        (f"{REPAIRS}::test_the_state_of_a_lost_partition_is_freed",),
    ),
)
