"""Events of a storm: an Event for each of the first pods, and one for each node that counts the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.executor import pod_events
from evictstream.streams.executor.pod_events import FIRST_EVENTS, MOST_NAMED_PODS, PodEvents
from evictstream.streams.kubernetes.connection import Connection
from tests.models.execution.samples import command
from tests.streams.executor.serving import wait_for

NODES = 3
PODS = 100


@pytest.fixture
def events(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[PodEvents]:
    monkeypatch.setattr(pod_events, "SUM_SECONDS", 0.3)
    monkeypatch.setattr(pod_events, "EVENTS_A_SECOND", 0.001)
    found = PodEvents("c1", connection)
    found.start()
    yield found
    found.stop()
    found.join()


def storm(events: PodEvents, action: Action = Action.EVICT) -> None:
    for pod in range(PODS):
        for node in range(NODES):
            events.add(command(action, f"p-{node}-{pod}", node=f"n-{node}", node_uid=f"uid-n-{node}"))


def test_a_storm_is_counted_by_node(api: FakeApi, events: PodEvents) -> None:
    storm(events)
    wait_for(lambda: events.written == FIRST_EVENTS + NODES)
    of_nodes = [one for one in api.events.values() if one["involvedObject"]["kind"] == "Node"]
    assert {one["involvedObject"]["uid"] for one in of_nodes} == {f"uid-n-{node}" for node in range(NODES)}
    assert sum(one["count"] for one in of_nodes) == NODES * PODS - FIRST_EVENTS == events.counted
    assert {one["reason"] for one in api.events.values()} == {"TaintManagerEviction"}
    assert events.dropped == 0


def test_a_nodes_event_names_few_pods_and_counts_the_rest(api: FakeApi, events: PodEvents) -> None:
    storm(events, Action.SCHEDULE)
    wait_for(lambda: events.written == FIRST_EVENTS + NODES)
    (message,) = [one["message"] for one in api.events.values() if one["involvedObject"]["name"] == "n-0"]
    assert message.startswith("Will evict ")
    assert message.count("shop/p-0-") == MOST_NAMED_PODS
    assert " more" in message


def test_nodes_beyond_the_limit_are_dropped_and_counted(events: PodEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_events, "MOST_SUMS", 2)
    storm(events)
    wait_for(lambda: events.counted + events.dropped + FIRST_EVENTS == NODES * PODS)
    assert events.dropped > 0
