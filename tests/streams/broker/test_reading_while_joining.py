"""A member reads on during a join, and completes a join that ended between two of its polls."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.consumers import open_as
from evictstream.streams.broker.group_membership import GroupConsumer, finish_joining, subscribe
from evictstream.streams.settings import Settings

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 30.0


def member(settings: Settings, stack: contextlib.ExitStack) -> GroupConsumer:
    found = open_as(
        GroupConsumer,
        settings,
        group_id=settings.application_id,
        partition_assignment_strategy=[CooperativeStickyAssignor],
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
    )
    stack.callback(found.close)
    subscribe(found, settings.commands_topic)
    return found


def wait_until(condition: Callable[[], bool], *polled: GroupConsumer) -> None:
    """Wait. A thread polls each member, since a test that polls them in turn would be slow."""
    until = time.monotonic() + PATIENCE_SECONDS
    with ThreadPoolExecutor(max(1, len(polled))) as threads:
        while not condition():
            list(threads.map(poll, polled))
            assert time.monotonic() < until


def poll(member: GroupConsumer) -> None:
    finish_joining(member)
    member.poll(timeout_ms=200)


def is_settled(member: GroupConsumer) -> bool:
    return len(member.assignment()) == 1 and not member._coordinator.rejoining


def test_a_member_reads_on_while_another_holds_up_a_join(settings: Settings) -> None:
    declare_topics(settings)
    topic = settings.commands_topic
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    with contextlib.ExitStack() as stack:
        stack.callback(producer.close)
        reader, silent = member(settings, stack), member(settings, stack)
        wait_until(lambda: is_settled(reader) and is_settled(silent), reader, silent)
        (mine,) = reader.assignment()
        third = member(settings, stack)
        wait_until(lambda: bool(reader._coordinator.rejoining), third, reader)  # until the silent one joins, too
        read: list[Any] = []

        def has_read(value: bytes) -> bool:
            finish_joining(reader)
            for records in reader.poll(timeout_ms=50).values():
                read.extend(record.value for record in records)
            return value in read

        for value in (b"first", b"second"):
            producer.send(topic, value, partition=mine.partition).get(PATIENCE_SECONDS)
            wait_until(lambda value=value: has_read(value))  # type: ignore[misc]
            assert reader._coordinator.rejoining, "the join has ended"
        assert reader.assignment() == {TopicPartition(topic, mine.partition)}
        wait_until(lambda: not reader._coordinator.rejoining, silent, third, reader)
    assert read == [b"first", b"second"]


def test_a_join_that_ends_between_two_polls_counts(settings: Settings) -> None:
    declare_topics(settings)
    with contextlib.ExitStack() as stack:
        joining = member(settings, stack)
        until = time.monotonic() + PATIENCE_SECONDS
        while not joining.assignment():
            finish_joining(joining)
            joining.poll(timeout_ms=1)
            time.sleep(0.1)
            assert time.monotonic() < until
