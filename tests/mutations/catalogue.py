"""The mutations: what is broken, where, and which tests have to notice."""

from __future__ import annotations

from typing import NamedTuple

WORKERS = "tests/guarantees/test_worker_faults.py"
BROKER = "tests/guarantees/test_broker_faults.py"
REFUSALS = "tests/guarantees/test_refusals.py"
INPUT = "tests/guarantees/test_input_faults.py"
WRITER = "tests/streams/engine/test_writer.py"
CLOCK = "tests/streams/service/test_clock.py"
REPAIRS = "tests/streams/engine/test_repairs.py"
TRANSACTIONS = "tests/streams/engine/test_transactions.py"
REBALANCES = "tests/streams/engine/test_rebalances.py"
TRANSPORT = "tests/streams/engine/test_transport.py"
GATES = "tests/streams/service/test_gates.py"
HEALTH = "tests/guarantees/test_health.py"
WATCHDOG = "tests/streams/service/test_watchdog.py"


class Mutation(NamedTuple):
    """One thing broken: in ``file``, each ``(old, new)`` is replaced; each of ``tests`` has to fail then.

    What two parts hold together is broken in both: ``also`` has ``(file, old, new)`` of others.
    """

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]
    also: tuple[tuple[str, str, str], ...] = ()


MUTATIONS = (
    Mutation(
        "take over without reading the changelog",
        "streams/engine/core/takeover.py",
        (
            (
                "await reader.read_rows({t.partition: t.take_row for t in takeovers})",
                "dict.fromkeys(map(int, [t.partition for t in takeovers]), 0)",
            ),
        ),
        (f"{WORKERS}::test_worker_killed_at_any_moment",),
    ),
    Mutation(
        "commit the positions of a writer that has failed",
        "streams/engine/core/writer.py",
        (
            (
                "        return self.live\n\n    async def _wait_until_full",
                "        return True\n\n    async def _wait_until_full",
            ),
        ),
        (f"{WRITER}::test_nothing_is_committed_once_the_writer_has_failed",),
    ),
    Mutation(
        "lose a cancellation",
        "streams/engine/core/waits.py",
        (
            (
                "        async with asyncio.timeout(seconds):\n            await event.wait()",
                "        await asyncio.wait_for(event.wait(), seconds)",
            ),
        ),
        ("tests/streams/engine/test_waits.py::test_a_cancellation_is_never_taken_away",),
    ),
    Mutation(
        "begin at the end of the inputs after a take-over",
        "streams/engine/core/takeover.py",
        (("settled[topic] = max(position, start)", "settled[topic] = end"),),
        (f"{WORKERS}::test_worker_killed_at_any_moment",),
    ),
    Mutation(
        "seek to group offsets",
        "streams/engine/kafka/group_member.py",
        (
            (
                "self.seek(TopicPartition(topic, number), offset)",
                "self.seek(place := TopicPartition(topic, number), await self.committed(place) or offset)",
            ),
        ),
        # No worker fault shows it: group offsets follow the positions, so more is read again, and ignored. It loses
        # records where somebody has set the group's offsets.
        (f"{TRANSPORT}::test_inputs_are_sought_to_the_positions_not_to_what_the_group_has_committed",),
    ),
    Mutation(
        "empty the agents' queues when batches flow again",
        "streams/engine/faust/app.py",
        (("        self._resume.set()", "        self._resume.set()\n        self.clear()"),),
        (f"{REBALANCES}::test_what_was_read_after_the_seek_is_kept_when_the_flow_resumes_again",),
    ),
    Mutation(
        "let a stop that fails keep a crashed worker",
        "streams/service/app.py",
        (("except Exception as failure:", "except ZeroDivisionError as failure:"),),
        (f"{BROKER}::test_a_crash_whose_stop_comes_too_late",),
    ),
    Mutation(
        "write positions without their rows and messages",
        "streams/engine/core/writer.py",
        (
            (
                "await self._producer.commit(outbox, {",
                "await self._producer.commit(Outbox() if self.transactions % 3 == 2 else outbox, {",
            ),
        ),
        (f"{WORKERS}::test_worker_killed_at_any_moment",),
    ),
    Mutation(
        "skip the fence: a transactional id for each process",
        "streams/engine/core/config.py",
        (
            (
                'return f"{self.application}-{partition}"',
                'import os; return f"{self.application}-{partition}-{os.getpid()}"',
            ),
        ),
        ("tests/streams/engine/test_transactions.py::test_an_owner_killed_in_mid_transaction_leaves_nothing_behind",),
    ),
    Mutation(
        "skip the fence, and fire whoever the owner is",
        "streams/engine/core/config.py",
        (
            (
                'return f"{self.application}-{partition}"',
                'import os; return f"{self.application}-{partition}-{os.getpid()}"',
            ),
        ),
        (f"{WORKERS}::test_worker_paused_beyond_the_session_timeout_then_continued",),
        (
            ("streams/service/gates.py", "if self._is_rebalancing():", "if False:"),
            ("streams/service/gates.py", "if not self._lease.valid:", "if False:"),
            ("streams/service/gates.py", "if age > self._lag_limit_seconds:", "if False:"),
        ),
    ),
    Mutation(
        "keep timers when their partition is lost",
        "streams/engine/core/partitions.py",
        (
            (
                "await self._drop([slot for number, slot in before.items() if number not in kept])",
                "self._slots = before",
            ),
        ),
        (f"{REPAIRS}::test_a_partition_that_is_given_away_is_let_go",),
    ),
    Mutation(
        "go on although a batch is missing",
        "streams/engine/core/writer.py",
        (("if batch.start > self.positions[batch.topic]:", "if False:"),),
        (f"{WRITER}::test_a_missing_batch_is_noticed",),
    ),
    Mutation(
        "take in what was read before the newest seek",
        "streams/engine/core/writer.py",
        (
            ("if batch.epoch != self._epochs.get(batch.topic):", "if False:"),
            ("if not self.live or batch.epoch != self._epochs[batch.topic]:", "if not self.live:"),
        ),
        (f"{WRITER}::test_what_was_read_before_the_newest_seek_is_ignored",),
    ),
    Mutation(
        "apply records twice",
        "streams/engine/core/writer.py",
        (("if records[0].offset < known:", "if False:"),),
        (f"{WRITER}::test_records_that_come_again_are_applied_once",),
    ),
    Mutation(
        "take a failed transaction for a committed one",
        "streams/engine/kafka/partition_producer.py",
        (
            (
                "raise PartitionLostError(partition=self.partition, reason=repr(error)) from error",
                "broker_ms = -1",
            ),
        ),
        ("tests/streams/engine/test_transactions.py",),
    ),
    Mutation(
        "take a transaction for committed that did not come through in a second",
        "streams/engine/kafka/partition_producer.py",
        (
            ("asyncio.timeout(self._config.transaction_timeout_seconds)", "asyncio.timeout(1.0)"),
            (
                "raise PartitionLostError(partition=self.partition, reason=repr(error)) from error",
                "broker_ms = -1",
            ),
        ),
        (f"{BROKER}::test_broker_down_for_a_while",),
    ),
    Mutation(
        "commit although a batch was refused",
        "streams/engine/kafka/partition_producer.py",
        (
            (
                "            if isinstance(result, BaseException):\n                raise result\n        if broken",
                "            if isinstance(result, BaseException):\n                pass\n        if broken",
            ),
        ),
        ("tests/streams/engine/test_transactions.py::test_one_record_too_large_aborts_the_whole_transaction",),
    ),
    Mutation(
        "send what waits to be added to a transaction that has failed",
        "streams/engine/kafka/transactional_producer.py",
        (("waiting.clear()", "unsent.clear()"),),
        (
            "tests/streams/engine/test_transactions.py::test_nothing_is_sent_of_a_transaction_one_of_whose_topics_is_forbidden",
        ),
    ),
    Mutation(
        "start with an empty changelog beside committed offsets",
        "streams/engine/core/takeover.py",
        (("await _refuse_lost_state(fresh, config, kafka)", "pass"),),
        (f"{REFUSALS}::test_state_changelog_empty_while_offsets_are_committed",),
    ),
    Mutation(
        "accept a position beyond the end",
        "streams/engine/core/takeover.py",
        (("        if not beyond:\n", "        if True:\n"),),
        (f"{REFUSALS}::test_input_cut_or_created_anew",),
    ),
    Mutation(
        "do not look at the topics at start",
        "streams/service/checks.py",
        (("report.raise_if_breaking()", "pass"),),
        (f"{REFUSALS}::test_partition_counts_differ_or_wrong_cleanup_policy",),
    ),
    Mutation(
        "fire in spite of a gap in the input",
        "streams/service/gates.py",
        (("if gap is not None:", "if False:"),),
        (f"{REFUSALS}::test_input_expired_while_away", GATES),
    ),
    Mutation(
        "let records of other partitions in",
        "streams/service/placement.py",
        (("return partition_of(key, partitions) == partition", "return True"),),
        (f"{INPUT}::test_unreadable_record_foreign_cluster_oversized_object",),
    ),
    Mutation(
        "pass over unreadable records",
        "streams/service/partition.py",
        (("self._effects.bury(topic, record, outbox, error.reason, error.detail)", "pass"),),
        (f"{INPUT}::test_unreadable_record_foreign_cluster_oversized_object",),
    ),
    Mutation(
        "accept outdated events",
        "models/eviction/accepting.py",
        (("def is_older(", "def is_older(*_: object) -> bool:\n    return False\n\n\ndef _is_older("),),
        (f"{INPUT}::test_duplicate_reordered_outdated_event",),
    ),
    Mutation(
        "do not mind a silent feed",
        "streams/service/clusters.py",
        (("if since is not None and since < older_than_us:", "if False:"),),
        (f"{INPUT}::test_feed_silent",),
    ),
    Mutation(
        "never look again after an attempt",
        "models/eviction/lifecycle.py",
        (("eviction.next_attempt_us = eviction.issued_at_us + ", "eviction.next_attempt_us = 10**18 + "),),
        (f"{WORKERS}::test_executor_down",),
    ),
    Mutation(
        "open the owner gate always",
        "streams/service/gates.py",
        (("if self._is_rebalancing():", "if False:"), ("if not self._lease.valid:", "if False:")),
        (GATES,),
    ),
    Mutation(
        "trust any clock",
        "streams/service/clock.py",
        (("if monotonic_seconds < self._held_until:", "if False:"),),
        ("tests/streams/service/test_clock.py", GATES),
    ),
    Mutation(
        "fire without deciding again",
        "models/eviction/timer_step.py",
        (("due = reconcile(step, pod)", "due = pod.eviction.due"),),
        ("tests/models/eviction",),
    ),
    Mutation(
        "forget a cancel",
        "models/eviction/records.py",
        (
            (
                "step.commands.append(",
                "(lambda command: None if command.action == 'Cancel' else step.commands.append(command))(",
            ),
        ),
        ("tests/models/eviction", "tests/incidents"),
    ),
    Mutation(
        "look at no age",
        "streams/service/watchdog.py",
        (("if vital in ages and ages[vital] > limits[vital]:", "if False:"),),
        (f"{HEALTH}::test_blocked_event_loop", f"{HEALTH}::test_broker_that_answers_no_more", WATCHDOG),
    ),
    Mutation(
        "end a stuck worker only after its last words",
        "streams/service/watchdog.py",
        (("        in_any_case.start()\n", ""),),
        (f"{HEALTH}::test_it_ends_whatever_hangs",),
    ),
    Mutation(
        "take a broker's silence for idleness",
        "streams/engine/faust/transport.py",
        (
            ("        if has_answered:\n", "        if True:\n"),
            ("heartbeat.progress(asked_at)", "heartbeat.end()"),
        ),
        (f"{HEALTH}::test_broker_that_answers_no_more",),
    ),
    Mutation(
        "take the age of the last record for lag",
        "streams/service/lag.py",
        (("        if not self.records(place, position):\n            return 0.0\n", ""),),
        ("tests/streams/service/test_lag.py",),
    ),
    Mutation(
        "let a slow transaction vouch for our clock",
        "streams/service/clock.py",
        (
            (
                "                least, most = max(least, known_least), min(most, known_most)\n",
                "                pass\n",
            ),
            ("least, _ = self._brokers_offset_us", "_, least = self._brokers_offset_us"),
        ),
        (CLOCK, "tests/faults/test_found.py"),
    ),
    Mutation(
        "repair while the group assigns anew",
        "streams/engine/core/partitions.py",
        (("if not self._is_assigning:", "if True:"),),
        (REPAIRS,),
    ),
    Mutation(
        "ask for a commit again",
        "streams/engine/kafka/transactional_producer.py",
        (("if isinstance(request, EndTxnRequest):", "if False:"),),
        (f"{TRANSACTIONS}::test_a_commit_without_answer_is_not_asked_for_again",),
    ),
    Mutation(
        "withdraw what is due by a clock that is behind",
        "models/eviction/lifecycle.py",
        (("elif step.has_news and ", "elif "),),
        ("tests/models/eviction/test_executing.py",),
    ),
    Mutation(
        "keep the state of lost partitions in memory",
        "streams/engine/core/partitions.py",
        (("            gc.collect()", "            pass"),),
        (f"{REPAIRS}::test_the_state_of_a_lost_partition_is_not_kept_in_memory",),
    ),
    Mutation(
        "step many records at once, whatever they cost",
        "streams/engine/core/writer.py",
        (("else max(size // 2, 1)", "else SLICE_RECORDS"),),
        (f"{WRITER}::test_the_loop_comes_round_however_much_a_record_changes",),
    ),
)
