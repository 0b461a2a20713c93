"""What a coordinator takes while its group rebalances, and from whom, on a real Kafka."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.consumers import open_as
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.group_membership import LONGER_SESSION_MS, GroupConsumer, finish_joining, subscribe
from evictstream.streams.broker.group_requests import GroupRequests
from evictstream.streams.executor.cluster_assignor import ClusterAssignor
from evictstream.streams.executor.cluster_life import GROUP_SESSION_SECONDS
from evictstream.streams.settings import Settings

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 30.0


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as found:
        yield found


def consumer(settings: Settings, stack: contextlib.ExitStack, **more: Any) -> GroupConsumer:
    """Make one as an executor does. The library's session of 45 s would outlast the patience of these tests."""
    arguments = {
        "group_id": settings.application_id,
        "partition_assignment_strategy": [ClusterAssignor(settings.commands_topic, b"c1")],
        "session_timeout_ms": int(GROUP_SESSION_SECONDS * 1_000),
        "heartbeat_interval_ms": 200,
    }
    found = open_as(GroupConsumer, settings, **{**arguments, **more})
    stack.callback(found.close)
    return found


def member(settings: Settings, stack: contextlib.ExitStack, **more: Any) -> GroupConsumer:
    found = consumer(settings, stack, **more)
    subscribe(found, settings.commands_topic)
    return found


def wait_until(condition: Callable[[], bool], *polled: GroupConsumer) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        for one in polled:
            finish_joining(one)
            one.poll(timeout_ms=50)


def are_settled(*members: GroupConsumer) -> bool:
    return all(one._coordinator.stable() and not one._coordinator.rejoining for one in members)


def answer(requests: GroupRequests, coroutine: Any, *arguments: Any) -> Any:
    """Wait for it, as a caller of the library would. Until a Kafka serves its first group, ask again as callers do."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return requests._manager.run(coroutine, *arguments)
        except (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError):
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_member_commits_while_its_group_waits(settings: Settings, stack: contextlib.ExitStack) -> None:
    """The library refuses on its own side, and would ask on the connection on which its join waits."""
    declare_topics(settings)
    acting = member(settings, stack)
    wait_until(lambda: bool(acting.assignment()), acting)
    silent = member(settings, stack)
    wait_until(lambda: are_settled(acting, silent), acting, silent)
    (place,), requests = acting.assignment(), GroupRequests(acting)
    before = acting.group_metadata()
    third = member(settings, stack)
    wait_until(acting._coordinator.rebalance_in_progress, third, acting)  # until the silent one joins, too
    assert answer(requests, requests.members).state == "PreparingRebalance"
    with pytest.raises((RebalanceInProgressError, CommitFailedError)):
        acting.commit({place: OffsetAndMetadata(3, "by the library", -1)}, timeout_ms=1_000)
    answer(requests, requests.commit, acting.group_metadata(), place, 3, "here")
    assert answer(requests, requests.committed_texts) == ["here"]
    answer(requests, requests.remove, silent.group_metadata().member_id, "it is dead")
    wait_until(lambda: acting.group_metadata().generation_id > before.generation_id, third, acting)
    with pytest.raises(KafkaError):
        answer(requests, requests.commit, before, place, 4, "of the generation before")
    assert answer(requests, requests.committed_texts) == ["here"]


@pytest.mark.parametrize("instance", [None, "one"])
def test_whoever_reads_the_group_may_remove_a_member(
    settings: Settings, stack: contextlib.ExitStack, instance: str | None
) -> None:
    declare_topics(settings)
    acting = member(settings, stack, **({} if instance is None else {"group_instance_id": instance}))
    wait_until(lambda: bool(acting.assignment()), acting)
    (place,), dead = acting.assignment(), acting.group_metadata()
    successor, outside = member(settings, stack), GroupRequests(consumer(settings, stack))
    wait_until(lambda: len(answer(outside, outside.members).partitions) > 1, successor)
    assert answer(outside, outside.remove, dead.member_id, "it is dead")
    wait_until(lambda: successor.assignment() == {place}, successor)
    assert answer(outside, outside.members).partitions == {successor.group_metadata().member_id: (place,)}
    assert not answer(outside, outside.remove, dead.member_id, "again")

    requests = GroupRequests(acting)
    with pytest.raises(UnknownMemberIdError):
        answer(requests, requests.commit, dead, place, 5, "")
    wait_until(lambda: acting.group_metadata().member_id not in {"", dead.member_id}, acting, successor)
    wait_until(lambda: are_settled(acting, successor), acting, successor)


def test_a_group_without_commits_has_no_texts(settings: Settings, stack: contextlib.ExitStack) -> None:
    outside = GroupRequests(consumer(settings, stack))
    assert answer(outside, outside.committed_texts) == []


@pytest.mark.kit
def test_a_broker_that_wants_long_sessions_gets_them(
    stack: contextlib.ExitStack, make_settings: Callable[..., Settings]
) -> None:
    with EmbeddedBroker(properties={"group.min.session.timeout.ms": "10000"}) as broker:
        settings = make_settings(bootstrap_servers=broker.bootstrap_servers)
        declare_topics(settings)
        found = member(settings, stack)
        wait_until(lambda: bool(found.assignment()), found)
        assert found.config["session_timeout_ms"] == 6_000
        assert found._coordinator.heartbeat.config["session_timeout_ms"] == LONGER_SESSION_MS
        stack.close()
