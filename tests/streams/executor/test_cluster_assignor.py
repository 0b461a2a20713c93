"""One member of a group has the partition of its cluster, keeps it while it lives, and another one gets it then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from evictstream.streams.executor.cluster_assignor import ClusterAssignor

TOPIC = "commands"
PARTITIONS = 8
CLUSTERS = {"c1": 3, "us": 1, "a": 4, "ein Häufchen": 7}
"""With the partition that aiokafka's producer chooses of eight."""


class Group:
    """Members of the group of one cluster, each with an assignor of its own; what they say is sent as bytes."""

    def __init__(self, cluster: str) -> None:
        self.key = cluster.encode()
        self.members: dict[str, ClusterAssignor] = {}
        self.partitions: set[int] | None = set(range(PARTITIONS))
        self.place = TopicPartition(TOPIC, CLUSTERS[cluster])

    def join(self, *names: str) -> None:
        self.members |= {name: ClusterAssignor(TOPIC, self.key) for name in names}

    def rebalance(self) -> dict[str, list[TopicPartition]]:
        """Return what each member has after a join of all."""
        said: list[Any] = [
            SimpleNamespace(
                member_id=name, metadata=ConsumerProtocolSubscription.decode(assignor.metadata({TOPIC}).encode())
            )
            for name, assignor in self.members.items()
        ]
        leader = next(iter(self.members.values()))
        metadata: Any = SimpleNamespace(partitions_for_topic=lambda _: self.partitions)
        found = {
            name: ConsumerProtocolAssignment.decode(assignment.encode())
            for name, assignment in leader.assign(metadata, said).items()
        }
        for name, assignment in found.items():
            self.members[name].on_assignment(assignment, 1)
        return {name: list(assignment.partitions()) for name, assignment in found.items()}


@pytest.fixture(params=CLUSTERS)
def group(request: pytest.FixtureRequest) -> Group:
    return Group(request.param)


def test_one_member_gets_the_partition_of_the_key(group: Group) -> None:
    group.join("b", "a", "c")
    assert group.rebalance() == {"a": [group.place], "b": [], "c": []}


def test_who_joins_takes_nothing_away(group: Group) -> None:
    group.join("m")
    group.rebalance()
    group.join("a", "z")
    assert group.rebalance() == {"m": [group.place], "a": [], "z": []}


def test_another_member_takes_over_from_one_that_left(group: Group) -> None:
    group.join("a", "b", "c")
    group.rebalance()
    del group.members["a"]
    assert group.rebalance() == {"b": [group.place], "c": []}


def test_of_two_that_claim_it_neither_keeps_it(group: Group) -> None:
    """One of them is out of date, and nobody can tell which. They give it up, and join again."""
    group.join("a")
    group.rebalance()
    late = group.members.pop("a")
    group.join("b", "c")
    group.rebalance()
    group.members["a"] = late
    assert group.rebalance() == {"a": [], "b": [], "c": []}
    assert group.rebalance() == {"a": [group.place], "b": [], "c": []}


def test_who_was_put_out_claims_it_no_more(group: Group) -> None:
    group.join("a")
    group.rebalance()
    late = group.members.pop("a")
    group.join("b")
    group.rebalance()
    late.forget()
    group.members["a"] = late
    assert group.rebalance() == {"a": [], "b": [group.place]}


def test_a_topic_that_is_not_known_yet_assigns_nothing(group: Group) -> None:
    group.join("a")
    group.partitions = None
    assert group.rebalance() == {"a": []}
