"""Mutations of what keeps a worker in its group and in touch with its brokers, for minutes as for weeks."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import WATCHDOG, Mutation
from tests.mutations.matching import Change
from tests.mutations.torture import TORTURE

GROUP_BEATS = "tests/streams/engine/test_group_beats.py"
MEMBERSHIP = "tests/streams/engine/test_membership.py"
LEFT_OPEN = "tests/faults/test_found.py::test_transactions_without_their_markers_end_as_they_should"
MARKERS = "tests/streams/engine/test_markers.py::test_rows_and_messages_of_a_transaction_count_together"
TRANSACTIONS_V2 = "tests/streams/engine/test_transactions_v2.py"
FETCHED_BATCHES = "tests/streams/engine/test_fetched_batches.py"
LEADER_EPOCHS = "tests/streams/engine/test_leader_epochs.py"
LONG_RUNS = "tests/streams/engine/test_long_runs.py"
PERMIT = "tests/streams/engine/test_permit.py"

OF_GROUP_AND_BROKERS = (
    Mutation(
        "aiokafka: leave requests that time out to its client",
        (
            Change(
                product.CONNECTION,
                "BrokerConnection.send",
                "self._answered(super().send(request, expect_response))",
                "super().send(request, expect_response)",
            ),
        ),
        ("tests/streams/engine/test_connection.py::test_requests_that_time_out_at_once_end_alike",),
    ),
    Mutation(
        "take records from before the position that was sought",
        (Change(product.FETCHED_BATCHES, "DecodedRecords._unpack_batches", "batch.base_offset >= position", "True"),),
        (FETCHED_BATCHES,),
    ),
    Mutation(
        "stand before a hole that compaction has left at the end of a batch",
        (
            Change(
                product.FETCHED_BATCHES,
                "DecodedRecords._unpack_batches",
                "self.next_fetch_offset = batch.next_offset",
                "pass",
            ),
        ),
        (FETCHED_BATCHES,),
    ),
    Mutation(
        "take a damaged batch",
        (Change(product.FETCHED_BATCHES, "DecodedRecords._unpack_batches", "not records.is_intact(batch)", "False"),),
        (FETCHED_BATCHES,),
    ),
    Mutation(
        "read on behind a damaged batch",
        (
            Change(
                product.TRANSPORT,
                "EngineConsumerThread._fetch_records",
                "raise InputUnreadableError(reason=str(error)) from error",
                "return {}",
            ),
        ),
        ("tests/guarantees/test_input_faults.py::test_a_damaged_batch_stops_the_worker_and_loses_nothing",),
    ),
    Mutation(
        "join without the id that the group knew, and throw a namesake out",
        (
            Change(
                product.GROUP_MEMBER,
                "GroupMember.start",
                "request._member_id or self._member_id",
                "request._member_id",
            ),
        ),
        ("tests/guarantees/test_fleet_of_workers.py::test_of_two_workers_with_one_instance_id_the_first_ends",),
    ),
    Mutation(
        "wait for the session of a dead worker",
        (Change(product.GROUP_BEATS, "GroupBeats._remove", "silent - self._removed", "frozenset()"),),
        ("tests/guarantees/test_silent_workers.py::test_a_worker_killed_three_times_is_replaced_each_time",),
    ),
    Mutation(
        "remove the workers that come back last after an outage",
        (Change(product.GROUP_BEATS, "GroupBeats._judged", "now + COME_BACK_SECONDS", "now"),),
        (f"{GROUP_BEATS}::test_after_an_outage_members_have_time_to_come_back",),
    ),
    Mutation(
        "let the beat of the owner before stand in a partition",
        (Change(product.GROUP_BEATS, "GroupBeats._beat", "None if self._is_new_owner else 1", "1"),),
        (f"{GROUP_BEATS}::test_a_new_owner_marks_each_partition_then_one",),
    ),
    Mutation(
        "leave the group for want of records",
        (
            Change(
                product.GROUP_MEMBER,
                "group_member",
                "max_poll_interval_ms=...",
                "max_poll_interval_ms=300_000",
            ),
        ),
        (f"{MEMBERSHIP}::test_a_worker_without_partitions_takes_over_after_a_day",),
    ),
    Mutation(
        "do not ask whether the group has failed us",
        (
            Change(
                product.TRANSPORT, "EngineConsumer._poll", "await self._thread.check_membership()", "time.monotonic()"
            ),
        ),
        (f"{MEMBERSHIP}::test_a_worker_without_partitions_crashes_when_its_member_fails",),
    ),
    Mutation(
        "run the consumer on asyncio's own loop whatever is chosen",
        (
            Change(
                product.TRANSPORT,
                "EngineConsumer._new_consumer_thread",
                "type(self.loop)()",
                "asyncio.new_event_loop()",
            ),
        ),
        ("tests/streams/worker/test_event_loop.py::test_the_chosen_loop_runs_worker_and_consumer",),
    ),
    Mutation(
        "receive on uvloop as aiokafka's protocol does",
        (
            Change(
                product.FRAMES,
                "FrameProtocol.connection_made",
                "cast('asyncio.Transport', transport).set_protocol(_FrameReceiver(self))",
                "pass",
            ),
        ),
        ("tests/streams/engine/test_frames.py::test_answers_of_a_real_connection_arrive",),
    ),
    Mutation(
        "end a stuck worker as a member of its group",
        (Change(product.WATCHDOG, "Watchdog._end", "self._permit.leave_group()", "pass"),),
        ("tests/guarantees/test_stuck_workers.py::test_a_stuck_worker_without_a_peer_leaves_its_group",),
    ),
    Mutation(
        "wait for the group to take offsets of partitions that others have",
        (
            Change(
                product.OWNERSHIP,
                "Ownership.take_over",
                "any(number in numbers for _, number in partitions.durable_positions())",
                "partitions.durable_positions()",
            ),
        ),
        ("tests/streams/engine/test_repairs.py::test_a_takeover_waits_for_no_offsets_of_others",),
    ),
    Mutation(
        "join again before the end",
        (
            Change(
                product.GROUP_MEMBER,
                "GroupMember.start.send_permitted",
                "await self._permit.granted()",
                "pass",
            ),
        ),
        (f"{PERMIT}::test_a_worker_without_permit_leaves_and_takes_nothing_over",),
    ),
    Mutation(
        "fence a peer before the end",
        (
            Change(
                product.PRODUCER,
                "TransactionalProducer._send_with_care",
                "isinstance(request, InitProducerIdRequest)",
                "False",
            ),
        ),
        (f"{PERMIT}::test_a_worker_about_to_end_fences_nobody",),
    ),
    Mutation(
        "permit to join before the first look after a standstill",
        (Change(product.PERMIT, "Permit.granted", "self._monotonic() >= self._valid_until", "False"),),
        (f"{PERMIT}::test_a_worker_that_stood_still_joins_after_the_next_look",),
    ),
    Mutation(
        "take a standstill of the process for a stuck part",
        (Change(product.WATCHDOG, "Watchdog._ages_watched", "min(now - before, LATE_SECONDS)", "now - before"),),
        (f"{WATCHDOG}::test_a_standstill_of_the_process_does_not_count",),
    ),
    Mutation(
        "commit while we wait to join",
        (Change(product.TRANSPORT, "EngineConsumerThread._commit", "self._is_joining", "False"),),
        (f"{MEMBERSHIP}::test_a_member_that_waits_to_join_causes_no_second_rebalance",),
    ),
    Mutation(
        "try a takeover again without the group's word",
        (
            Change(
                product.OWNERSHIP,
                "Ownership.take_over",
                "self._failures and any(number in numbers for _, number in partitions.durable_positions())",
                "False",
            ),
        ),
        (f"{MEMBERSHIP}::test_a_failed_take_over_waits_for_the_groups_confirmation",),
    ),
    Mutation(
        "take no answer for nothing committed",
        (Change(product.ADMIN, "committed_offsets", "not found.keys() >= set(asked)", "False"),),
        ("tests/streams/engine/test_lost_state.py",),
    ),
    Mutation(
        "let Faust keep what is acked",
        (Change(product.ENGINE_APP, "EngineApp._declare_agent", "acks=False", "acks=True"),),
        (f"{LONG_RUNS}::test_nothing_is_kept_of_batches_that_were_taken",),
    ),
    Mutation(
        "wait for a silent broker as long as for a leader",
        (
            Change(
                product.CONNECTION,
                "use_broker_connections",
                "aiokafka.conn.AIOKafkaConnection = BrokerConnection",
                "pass",
            ),
        ),
        (f"{LONG_RUNS}::test_connections_that_went_dead_without_a_word_lose_no_transaction",),
    ),
    Mutation(
        "lose a transaction whose coordinator was asked for over a closed connection",
        (
            Change(
                product.PRODUCER,
                "TransactionalProducer._send_with_care",
                "isinstance(request, FindCoordinatorRequest) and ...",
                "False",
            ),
        ),
        (f"{LONG_RUNS}::test_connections_that_went_dead_without_a_word_lose_no_transaction",),
    ),
    Mutation(
        "let a takeover open that a newer one has followed",
        (Change(product.PARTITIONS, "Partitions._open", "rebalances != self._rebalances", "False"),),
        ("tests/streams/engine/test_repairs.py::test_a_takeover_that_was_not_cancelled_in_time_opens_nothing",),
    ),
    Mutation(
        "give a worker in reserve no age",
        (Change(product.WAITS, "WorkerWaits.confirmed_in_reserve", "self.heartbeat.begin(now)", "pass"),),
        (f"{LONG_RUNS}::test_a_worker_without_partitions_ages_while_its_group_is_silent",),
    ),
    Mutation(
        "count below zero",
        (
            Change(
                product.PRODUCER,
                "TransactionalProducer.__init__",
                "self._txn_manager.increment_sequence_number = self._count_on",
                "pass",
            ),
        ),
        (f"{LONG_RUNS}::test_sequence_numbers_begin_anew_as_brokers_count",),
    ),
    Mutation(
        "let brokers forget who writes a quiet partition",
        (Change(product.COMMITTER, "Committer.keep_alive", "self.probe()", "pass"),),
        ("tests/streams/engine/test_writer.py::test_a_quiet_partition_is_written_before_brokers_forget_its_owner",),
    ),
    Mutation(
        "let connections get older than their authentication",
        (Change(product.PRODUCER, "TransactionalProducer.begin_transaction", "renew_coordination(...)", "pass"),),
        (f"{LONG_RUNS}::test_no_transaction_is_lost_where_clients_have_to_authenticate_anew",),
    ),
    Mutation(
        "commit although a leader has refused a batch",
        (
            Change(
                product.TRANSACTION_V2,
                "TransactionsV2._produce",
                "raise error(topic.name)",
                "appended[topic.name] = Appended(-1, -1)",
            ),
        ),
        (f"{TRANSACTIONS_V2}::test_transaction_of_which_one_topic_is_forbidden_stays_invisible",),
    ),
    Mutation(
        "give up a commit whose answer is lost, with KIP-890",
        (Change(product.TRANSACTION_V2, "TransactionsV2._ask_for_end", "error not in PASSING", "True"),),
        (f"{TRANSACTIONS_V2}::test_commit_whose_answers_are_lost_is_asked_for_again",),
    ),
    Mutation(
        "keep the epoch of the transaction before",
        (
            Change(
                product.TRANSACTION_V2, "TransactionsV2.end", "self._epochs._pid_and_epoch = PidAndEpoch(...)", "pass"
            ),
        ),
        (f"{TRANSACTIONS_V2}::test_marker_of_ones_own_after_transactions",),
    ),
    Mutation(
        "go on behind a marker that was left out",
        (Change(product.PARTITION_PRODUCER, "PartitionProducer._write", "await self._find_markers(contents)", "pass"),),
        (f"{TRANSACTIONS_V2}::test_commit_that_was_asked_for_again_looks_for_its_markers",),
    ),
    Mutation(
        "write as with KIP-890 to brokers without it",
        (Change(product.PRODUCER, "TransactionalProducer.start", "... >= V2", "True"),),
        (f"{TRANSACTIONS_V2}::test_cluster_without_the_feature_has_the_old_transactions",),
    ),
    Mutation(
        "name no epoch when asking for ends",
        (Change(product.LEADER_EPOCHS, "EpochOffsetRequest.prepare", "_epoch(self._epochs, topic, number)", "-1"),),
        (LEADER_EPOCHS,),
    ),
    Mutation(
        "name no epoch when fetching",
        (Change(product.LEADER_EPOCHS, "EpochFetchRequest.build", "_epoch(self._epochs, topic, number)", "-1"),),
        (LEADER_EPOCHS,),
    ),
    Mutation(
        "ask where a log ends without the epoch of its leader",
        (
            Change(
                product.LEADER_EPOCHS,
                "EpochClient.send",
                "EpochOffsetRequest(request, self.leader_epochs)",
                "EpochOffsetRequest(request, {})",
            ),
        ),
        (f"{LEADER_EPOCHS}::test_a_deposed_leader_refuses_who_knows_of_the_new_one",),
    ),
    Mutation(
        "believe an older leader at once",
        (
            Change(
                product.LEADER_EPOCHS,
                "EpochClient._learn",
                "epoch >= self.leader_epochs.get(place, UNKNOWN_EPOCH)",
                "True",
            ),
        ),
        (LEADER_EPOCHS,),
    ),
    Mutation(
        "take over what a leader of yesterday has shown",
        (Change(product.TAKEOVER, "_write_first", "lands_at=takeover.read_to", "lands_at=None"),),
        ("tests/streams/engine/test_lost_state.py",),
    ),
    Mutation(
        "let what hangs in outputs go with the next transaction",
        (Change(product.TAKEOVER, "take_over", "await markers.end_messages(...)", "pass"),),
        (MARKERS, LEFT_OPEN),
    ),
    Mutation(
        "abort whatever hangs in outputs",
        (Change(product.MARKERS, "Markers.end_messages", "transaction <= newest[number]", "False"),),
        (MARKERS, TORTURE),
    ),
    Mutation(
        "abort whatever hangs in changelogs",
        (Change(product.MARKERS, "Markers.end_rows", "0 < transaction <= newest", "False"),),
        (MARKERS, LEFT_OPEN),
    ),
    Mutation(
        "commit whatever hangs in changelogs",
        (Change(product.MARKERS, "Markers.end_rows", "0 < transaction <= newest", "True"),),
        (MARKERS,),
    ),
    Mutation(
        "take another application's messages for ours",
        (Change(product.MARKERS, "newest_message", "owner == wanted", "True"),),
        ("tests/streams/engine/test_markers.py::test_what_another_application_has_written_is_not_ours",),
    ),
    Mutation(
        "give a marker up half way",
        (Change(product.PARTITION_PRODUCER, "PartitionProducer.mark", "await asyncio.wait([marking], ...)", "pass"),),
        ("tests/streams/engine/test_markers.py::test_a_marker_is_not_given_up_half_way",),
    ),
    Mutation(
        "make batches that the smallest topic refuses",
        (
            Change(
                product.SERVICE,
                "EvictionService.__init__",
                "engine_config(settings, record_limit_bytes)",
                "engine_config(settings)",
            ),
        ),
        ("tests/guarantees/test_unusual_topics.py::test_batches_are_no_larger_than_the_smallest_topic_takes",),
    ),
    Mutation(
        "believe a leader of yesterday where inputs end",
        (Change(product.TAKEOVER, "", "LOOKS_AGAIN = 5", "LOOKS_AGAIN = 0"),),
        ("tests/streams/engine/test_lost_state.py::test_an_input_end_before_the_position_is_asked_for_again",),
    ),
    Mutation(
        "take the passing mistake of a topic for a limit",
        (Change(product.PLAN, "partition_config", "max(record_limit_bytes, LEAST_LIMIT_BYTES)", "record_limit_bytes"),),
        ("tests/guarantees/test_broker_faults.py::test_a_refused_write_stops_the_worker_and_loses_nothing",),
    ),
)
