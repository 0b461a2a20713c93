"""Mutations of what keeps somebody who may write a topic from stopping its readers."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

COMPRESSION = "tests/streams/test_compression.py"
UNUSABLE = "tests/streams/engine/test_unusable_batches.py"
CONSUMERS = "tests/streams/broker/test_consumers.py"
FUTURE_TIMES = "tests/streams/partition/test_future_times.py"
KAFKA_REACH = "tests/streams/test_kafka_reach.py"
AT_INPUTS = "tests/guarantees/test_strangers_at_inputs.py"
TOPICS = f"{CONSUMERS}::test_a_consumer_learns_of_no_topics_but_those_asked"

OF_STRANGERS = (
    Mutation(
        "count Kafka as near while connections stand",
        (Change(product.KAFKA_REACH, "Reach._tell_if_away", "now - silent_since >= SILENT_SECONDS", "False"),),
        (f"{KAFKA_REACH}::test_a_broker_that_answers_nothing_is_away",),
    ),
    Mutation(
        "believe every append time",
        (Change(product.FUTURE_TIMES, "FutureTimes.believed", "record.timestamp > likely_ms", "False"),),
        (
            f"{FUTURE_TIMES}::test_a_heartbeat_from_the_future_does_not_hide_silence",
            f"{FUTURE_TIMES}::test_a_cluster_forgotten_in_the_future_can_be_fed_again",
        ),
    ),
    Mutation(
        "cap append times by a clock that is behind",
        (
            Change(
                product.FUTURE_TIMES,
                "FutureTimes.present_us",
                "max(self._now_us(), self._brokers_now_us())",
                "self._now_us()",
            ),
        ),
        (f"{FUTURE_TIMES}::test_a_worker_behind_its_brokers_caps_nothing",),
    ),
    Mutation(
        "decompress gzip as far as it goes",
        (
            Change(
                product.COMPRESSION,
                "_gunzip",
                "decompressor.decompress(data, limit + 1)",
                "decompressor.decompress(data)",
            ),
        ),
        (f"{COMPRESSION}::test_a_batch_beyond_the_bound_takes_no_more_memory",),
    ),
    Mutation(
        "decompress zstd as far as it goes",
        (
            Change(
                product.COMPRESSION,
                "_unzstd",
                "zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(limit + 1)",
                "zstandard.ZstdDecompressor().stream_reader(data).read()",
            ),
        ),
        (f"{COMPRESSION}::test_a_batch_beyond_the_bound_takes_no_more_memory",),
    ),
    Mutation(
        "open every compressed batch of a fetch in one poll",
        (Change(product.FETCHED_BATCHES, "BatchReading.is_full", "self.expanded_bytes > self.poll_bytes", "False"),),
        (f"{UNUSABLE}::test_a_poll_opens_no_more_than_its_share",),
    ),
    Mutation(
        "name every record that a header claims",
        (
            Change(
                product.FETCHED_BATCHES,
                "_unusable",
                "min(batch.next_offset, first + MOST_NAMED)",
                "min(batch.next_offset, first + 100 * MOST_NAMED)",
            ),
        ),
        (f"{UNUSABLE}::test_a_header_that_claims_millions_names_few",),
    ),
    Mutation(
        "take the records of an open transaction",
        (Change(product.FETCHED_BATCHES, "DecodedRecords._opened", "reading.refuses_transactions", "False"),),
        (f"{UNUSABLE}::test_records_of_transactions_are_set_aside_as_they_came",),
    ),
    Mutation(
        "read inputs up to an open transaction",
        (
            Change(
                product.GROUP_MEMBER,
                "group_member",
                'isolation_level="read_uncommitted"',
                'isolation_level="read_committed"',
            ),
        ),
        (f"{AT_INPUTS}::test_an_open_transaction_on_an_input_holds_up_nobody",),
    ),
    Mutation(
        "look for the ends of inputs before an open transaction",
        (
            Change(
                product.TAKEOVER,
                "take_over",
                "_bounds(takeovers, everything, config)",
                "_bounds(takeovers, reader, config)",
            ),
        ),
        (f"{AT_INPUTS}::test_an_open_transaction_on_an_input_holds_up_nobody",),
    ),
    Mutation(
        "hand out as many bytes as a poll finds",
        (Change(product.CONSUMERS, "_BoundedRecords.take", "fetcher.taken_bytes < fetcher.poll_bytes", "True"),),
        (f"{CONSUMERS}::test_one_poll_returns_no_more_bytes_than_the_bound",),
    ),
    Mutation(
        "learn of all topics to find one",
        (
            Change(
                product.CONSUMERS,
                "BoundedConsumer.partitions_for_topic",
                "cluster.add_topic(topic)",
                "setattr(cluster, 'need_all_topic_metadata', True)",
            ),
        ),
        (TOPICS,),
    ),
    Mutation(
        "ask again and again for a topic that is missing",
        (
            Change(
                product.CONSUMERS,
                "BoundedConsumer.partitions_for_topic",
                "cluster._topics.discard(topic)",
                "None",
            ),
        ),
        (TOPICS,),
    ),
    Mutation(
        "list all topics to check some",
        (
            Change(
                product.TOPICS,
                "present_topics",
                "client.describe_topics(list(names))",
                "[{'name': name, 'error_code': 0} for name in client.list_topics()]",
            ),
        ),
        ("tests/streams/broker/test_admin.py::test_checks_ask_about_no_other_topics",),
    ),
)
