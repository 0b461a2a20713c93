"""The Faust application, with the engine's parts put in at Faust's own extension points.

What is Faust's, what is replaced and what is off: `engine/faust/__init__.py`. Replaced by subclass are the transport
(consumer and producer), the table manager and the recovery.
"""

from __future__ import annotations

import logging
import time
import uuid
from typing import TYPE_CHECKING, Any, cast

import faust
from faust.serializers.schemas import Schema
from mode.utils.queues import FlowControlEvent
from yarl import URL

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.ownership import Ownership
from evictstream.streams.engine.faust.recovery import EngineTableManager
from evictstream.streams.engine.faust.transport import EngineConsumer, EngineConsumerThread, EngineTransport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from faust.types import AppT, Message, StreamT

    from evictstream.streams.engine.core.batches import Batch
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Place
    from evictstream.streams.engine.kafka.clients import KafkaClients

BATCHES_IN_QUEUE = 4  # fetched batches waiting for one agent, each bounded by max_poll_records: enough to keep it busy


def _member_name(instance_id: str | None) -> str:
    """Make a name that is valid in an address; the same for the same static member."""
    return (uuid.uuid4() if instance_id is None else uuid.uuid5(uuid.NAMESPACE_OID, instance_id)).hex


class BatchSchema(Schema[None, "Batch"]):
    """Passes batches through: the logic decodes records, and treats a bad one as data."""

    def loads_key(self, app: AppT, message: Message, **_: object) -> None:
        """Batches have no key."""

    def loads_value(self, app: AppT, message: Message, **_: object) -> Batch:
        """Hand over the batch as it is."""
        del app
        return cast("Batch", message.value)


class KeepingFlow(FlowControlEvent):
    """Resumes the flow of batches without emptying the agents' queues; when the flow stops they are emptied anyway.

    If a second rebalance begins before the first has ended, the end of the first resumes the flow during the second. A
    batch read after the second one's seek may be queued when the second ends; emptying the queue then would lose it.
    """

    def resume(self) -> None:
        """Let batches flow; the writer ignores those in the queues that were read before the newest seek."""
        self._suspend.clear()
        self._resume.set()


class FaustGroup:
    """Implements `engine.core.ports.Group`: asks the app, which owns the member of the group once it has started.

    Partitions need a group when they are made, and the app needs partitions: so this is made first. Nothing is assigned
    before the app has started.
    """

    _app: EngineApp | None = None

    def attach(self, app: EngineApp) -> None:
        """Use this app from now on."""
        self._app = app

    @property
    def _thread(self) -> EngineConsumerThread:
        if self._app is None:
            raise RuntimeError("the app has not started")
        return self._app.consumer_thread

    @property
    def is_rebalancing(self) -> bool:
        """Whether a rebalance goes on."""
        return self._app is not None and self._app.rebalancing

    async def seek(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Read on from these offsets; returns the new seek epoch of each partition."""
        return await self._thread.seek_inputs(positions)

    async def end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask where partitions end."""
        return await self._thread.end_offsets(places)

    def leave(self) -> None:
        """Begin to leave, from any thread and without waiting."""
        if self._app is not None:
            self._app.consumer_thread.leave_group()


class EngineApp(faust.App):
    """A Faust app whose state, messages and positions are written in one transaction by partition."""

    logger = logging.getLogger("faust.engine")  # at the level of Faust's own loggers

    def __init__(
        self, config: EngineConfig, partitions: Partitions[Any], *, clients: KafkaClients, group: FaustGroup
    ) -> None:
        """Declare the app, its input topics, one agent for each and the table; `partitions` ask `group`."""
        self.config = config
        self.partitions = partitions
        self.ownership = Ownership(partitions, group, SYSTEM_CLOCK)
        self.clients = clients
        self._group = group
        # From the start: a worker that the group has not answered yet must not count as one without partitions.
        self.partitions.waits.ownership.begin(time.monotonic())
        super().__init__(
            config.application,
            broker=[URL(f"kafka://{server}") for server in config.bootstrap_servers.split(",")],
            store="memory://",
            TableManager=EngineTableManager,
            web_enabled=False,
            topic_allow_declare=False,
            topic_disable_leader=True,
            topic_partitions=config.partitions,
            table_standby_replicas=0,
            stream_buffer_maxsize=BATCHES_IN_QUEUE,
            stream_wait_empty=False,  # agents may wait for a minute; acks=False below leaves nothing to wait for either
            stream_recovery_delay=0.0,
            broker_commit_interval=config.commit_interval_seconds,
            broker_session_timeout=config.session_timeout_seconds,
            broker_heartbeat_interval=config.heartbeat_seconds,
            broker_request_timeout=max(config.session_timeout_seconds * 4, 40.0),
            # Faust tells members apart by this address; nothing listens on it. A static member has the same one after a
            # restart: the group gives it its assignment back, which Faust would take for another member's.
            canonical_url=URL(f"evictstream://{_member_name(config.instance_id)}:1"),
            autodiscover=False,
        )
        self.flow_control = KeepingFlow()
        self.state_table = self.Table(config.table, partitions=config.partitions, key_type=bytes, value_type=bytes)
        for name in config.inputs:
            self._declare_agent(name)

    def _declare_agent(self, topic_name: str) -> None:
        # With acks Faust would keep every offset until it commits them; here it never does.
        topic = self.topic(topic_name, schema=BatchSchema(), acks=False)

        async def agent(stream: StreamT[Batch]) -> None:
            try:
                async for batch in stream:
                    await self.partitions.deliver(batch)
            except Exception as error:  # noqa: BLE001 - Faust would ack the batch and go on without it
                await self.crash(error)

        self.agent(topic, name=f"agent-{topic_name}")(agent)

    @property
    def consumer_thread(self) -> EngineConsumerThread:
        """The thread of the group member, for seeks and end offsets."""
        return cast("EngineConsumer", self.consumer).thread

    def _new_transport(self) -> EngineTransport:
        return EngineTransport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> EngineTransport:
        return EngineTransport(self.conf.broker_producer, self)

    def _create_directories(self) -> None:
        """Make none: nothing is kept in files."""

    async def on_start(self) -> None:
        """Connect `group` to this app before the member can be assigned anything."""
        await super().on_start()
        self._group.attach(self)

    def on_rebalance_start(self) -> None:
        """Note, in the consumer's thread, that a rebalance has begun."""
        self.partitions.waits.rebalancing(time.monotonic())
        super().on_rebalance_start()

    def _on_rebalance_when_stopped(self) -> None:
        """Do nothing: Faust's version closes the member, and a closed one could not leave the group in `on_stop`."""

    async def wait_crashed(self) -> None:
        """Return when the application has crashed; `crash_reason` says why."""
        await self._crashed.wait()

    async def on_stop(self) -> None:
        """Commit what was applied, and group offsets, and close the partitions; then Faust leaves the group."""
        await self.ownership.let_go(self.consumer.commit)
        await super().on_stop()
