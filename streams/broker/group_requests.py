"""Requests about a consumer group that do not wait behind its join.

A coordinator answers a JoinGroup when all members have come, and a broker answers the requests of one connection in
their order. kafka-python asks the coordinator everything on one connection, and refuses by itself to commit while its
group rebalances. So a member whose group waits for a dead one can neither commit nor read commits, although the
coordinator would take both. These requests have another connection to it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorError,
    UnknownMemberIdError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import LeaveGroupRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import CoordinatorType

_LOOKUP_MS: Final = 1_000
"""How long a request waits until a broker says which one is the coordinator."""

_OFFSET_FETCH_BY_GROUP: Final = 8
"""The version of OffsetFetch that asks for groups; those before ask for one."""


class GroupMembers(NamedTuple):
    """A group as its coordinator sees it.

    Attributes:
        state: as Kafka writes it, such as `Stable`, `PreparingRebalance` and `CompletingRebalance`.
        partitions: by member id what it has; the coordinator knows it while the group is `Stable`.
    """

    state: str
    partitions: dict[str, tuple[TopicPartition, ...]]


class GroupRequests:
    """What is asked of the coordinator of a consumer's group.

    The coroutines run in the consumer's own thread for input and output (`start`), and raise `KafkaError`.

    Attributes:
        group: its name.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        # None of these is public.
        self._coordinator = consumer._coordinator  # noqa: SLF001
        self._manager = self._coordinator._manager  # noqa: SLF001
        self.group: str = consumer.config["group_id"]
        self._node: tuple[str, Any, Any] | None = None  # of the coordinator: its own name, and where it is

    def start(self, coroutine: Any, *arguments: Any) -> Any:
        """Begin one, from any thread; returns a future of the library."""
        return self._manager.call_soon(coroutine, *arguments)

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await self._manager._net.sleep(seconds)  # noqa: SLF001 - none is public

    async def commit(self, member: Any, place: TopicPartition, offset: int, metadata: str) -> None:
        """Commit one position as a member; a group takes it from members of its last generation while it rebalances.

        Args:
            member: what `KafkaConsumer.group_metadata` says.
            place: topic and partition.
            offset: is read next.
            metadata: a text.
        """
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            max_version=8,  # the last one with a generation; of the library too
            group_id=self.group,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=[
                topic(
                    name=place.topic,
                    partitions=[
                        topic.OffsetCommitRequestPartition(
                            partition_index=place.partition,
                            committed_offset=offset,
                            committed_leader_epoch=-1,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        response = await self._ask(request)
        self._raise(*(each.error_code for found in response.topics for each in found.partitions))

    async def committed_texts(self) -> list[str]:
        """Return the metadata of all commits of the group. One need not be in it."""
        groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=self.group, topics=None)]
        request = OffsetFetchRequest(
            group_id=self.group, topics=None, groups=groups, require_stable=False, min_version=2, max_version=8
        )
        response = await self._ask(request)
        found = response.groups[0] if response.API_VERSION >= _OFFSET_FETCH_BY_GROUP else response
        self._raise(found.error_code, *(each.error_code for topic in found.topics for each in topic.partitions))
        return [each.metadata or "" for topic in found.topics for each in topic.partitions]

    async def members(self) -> GroupMembers:
        """Return who is in the group, without those that have only been given an id."""
        response = await self._ask(DescribeGroupsRequest(groups=[self.group]))
        group = response.groups[0]
        self._raise(group.error_code)
        return GroupMembers(
            group.group_state,
            {
                each.member_id: tuple(ConsumerProtocolAssignment.decode(each.member_assignment).partitions())
                if each.member_assignment
                else ()
                for each in group.members
            },
        )

    async def remove(self, member_id: str, reason: str) -> bool:
        """Have a member leave, as it would itself; returns False if it is in the group no more."""
        leaving = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason=reason)
        response = await self._ask(LeaveGroupRequest(group_id=self.group, member_id=member_id, members=[leaving]))
        try:
            self._raise(response.error_code, *(each.error_code for each in response.members))
        except UnknownMemberIdError:
            return False
        return True

    async def _ask(self, request: Any) -> Any:
        if not await self._coordinator.ensure_coordinator_ready_async(timeout_ms=_LOOKUP_MS):
            raise CoordinatorNotAvailableError
        return await self._manager.send(request, node_id=self._own_node())

    def _own_node(self) -> str:
        """Return the library's name for another connection to the coordinator."""
        cluster = self._manager.cluster
        known = cluster.broker_metadata(self._coordinator.coordinator_id)
        if known is None:
            raise CoordinatorNotAvailableError
        name = f"{known.node_id} apart"
        if self._node != (name, known.host, known.port):
            self._node = (name, known.host, known.port)
            place = SimpleNamespace(error_code=0, node_id=name, host=known.host, port=known.port)
            cluster.add_coordinator(place, CoordinatorType.GROUP, f"{self.group} apart", synthesize_node_id=False)
        return name

    def _raise(self, *codes: int) -> None:
        for code in codes:
            if code:
                error: KafkaError = for_code(code)()
                if isinstance(error, NotCoordinatorError | CoordinatorNotAvailableError):
                    self._coordinator.coordinator_dead(error)  # which another one will be looked for
                raise error
