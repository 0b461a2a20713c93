"""Which member of a cluster's group reads the cluster's partition: one acts, the others stand by.

The assignors of the library share out all partitions of the topic, and move them for balance. Only one partition has
commands of this cluster, and moving it would make each of its evictions wait for a member that has just joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from evictstream.streams.partitioner import partition_of


class ClusterAssignor(CooperativeStickyAssignor):  # type: ignore[misc] # the library has no types
    """Assigns the partition of one cluster, and no other.

    Whoever has it keeps it as long as it is a member. Then the first of the others by member id gets it. The rest,
    protocol and what members say of themselves, is the library's: `name` alone keeps members with another assignor out
    of the group.
    """

    name = "evictstream-cluster"

    def __init__(self, topic: str, key: bytes) -> None:
        """Take the commands topic, and the key of the cluster's records."""
        super().__init__()
        self._topic = topic
        self._key = key

    def assign(self, cluster: Any, members: Sequence[Any]) -> Mapping[str, ConsumerProtocolAssignment]:
        """Choose the member that acts, as the group's leader.

        Args:
            cluster: the library's metadata of Kafka.
            members: of the group, with what each says that it has.
        """
        count = len(cluster.partitions_for_topic(self._topic) or ())  # none only while the topic is not known
        place = TopicPartition(self._topic, partition_of(self._key, count)) if count else None
        owner = None if place is None else self._owner(place, members)
        return {
            member.member_id: ConsumerProtocolAssignment(
                self.version, [(place.topic, [place.partition])] if place is not None and member is owner else [], b""
            )
            for member in members
        }

    def _owner(self, place: TopicPartition, members: Sequence[Any]) -> Any:
        """Return the member that has the partition, or gets it; None while it is not clear who has it."""
        claims = [member for member in members if place in self.parse_member_metadata(member.metadata).partitions]
        if len(claims) == 1:
            return claims[0]
        # Of two claims one is out of date: both give it up and join again, and then there is none.
        return None if claims else min(members, key=lambda member: str(member.member_id))

    def forget(self) -> None:
        """Claim nothing at the next join: the group has put this member out, and another one may have the partition.

        The library keeps the claim.
        """
        self.member_assignment = None
