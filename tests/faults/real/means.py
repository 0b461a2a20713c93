"""Each fault of a plan by its real means.

| fault | means |
|---|---|
| worker kill, term, stop and continue | SIGKILL, SIGTERM, SIGSTOP and SIGCONT to the process |
| worker join | one more process, SIGTERM after the duration |
| broker kill, pause | SIGKILL and a start on the same data; SIGSTOP and SIGCONT |
| leader move | new order of replicas, then an election, through the admin client; Kafka's own topics too |
| network slow, cut | a TCP proxy that delays; that resets and refuses; that lets nothing pass (see `wire`) |
| produce refused | an ACL that denies writing; or `max.message.bytes` of the topic set below any record |
| record too large | an object above the limit, among the plan's changes |
| disk full | the broker's own small file system filled to the last byte; then cleared, and the broker started |
| clock step | what the worker's process reads as the time is shifted (see `clock`) |
"""

from __future__ import annotations

import functools
import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError

from evictstream.streams.broker.admin_client import ClosingAdminClient
from evictstream.streams.broker.kafka_node import KafkaNode
from evictstream.streams.settings import Settings
from tests.faults.plan import Fault
from tests.faults.real.arena import Arena
from tests.faults.real.clock import SteppedClock
from tests.faults.real.crew import Crew, Post
from tests.faults.real.wire import Wire
from tests.harness.workers import WorkerProcess

OWN_TOPICS = ("__consumer_offsets", "__transaction_state")
PREFERRED = 0
TOO_SMALL_BYTES = "100"
"""Below any batch of ours, above the markers that end transactions, without which the broker itself gets stuck."""

ADMIN_MS = 2_000
"""The play stands still meanwhile, and with it the end of the pause that the broker asked may be in."""

AGAIN_SECONDS = 1.0
END_SECONDS = 30.0
JOIN_SECONDS = 4.0
DYING_SECONDS = 8


@dataclass(frozen=True, slots=True)
class Scene:
    """What faults of one schedule may touch.

    Attributes:
        crew: workers; new ones may join.
        clocks: those that may be stepped, by post name.
        wire: between the wired workers and the brokers.
    """

    settings: Settings
    arena: Arena
    crew: Crew
    clocks: dict[str, SteppedClock]
    wire: Wire


class NobodyThereError(Exception):
    """The worker that was to be hit has ended, and the next one is not there yet."""


class Faults:
    """Begins and ends the faults of one plan at their times; call `tick` often.

    Attributes:
        done: those that have struck, one line each.
    """

    def __init__(self, scene: Scene, faults: tuple[Fault, ...]) -> None:
        self._scene = scene
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self.done: list[str] = []
        for fault in faults:
            self._at(fault.at_seconds, functools.partial(self._begin, fault))

    @property
    def are_over(self) -> bool:
        """Whether all have begun and ended."""
        return not self._due

    def tick(self, elapsed_seconds: float) -> None:
        """Do what is due."""
        while self._due and self._due[0][0] <= elapsed_seconds:
            _, _, work = heapq.heappop(self._due)
            try:
                work()
            except (KafkaError, OSError):
                # The brokers are away by another fault just now.
                self._at(elapsed_seconds + AGAIN_SECONDS, work)

    def end_all(self) -> None:
        """End at once what still goes on."""
        until = time.monotonic() + END_SECONDS
        while self._due and time.monotonic() < until:
            self.tick(self._due[0][0])
            time.sleep(0.05)

    def _at(self, seconds: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._due, (seconds, next(self._order), work))

    def _begin(self, fault: Fault) -> None:
        try:
            end = getattr(self, f"_{fault.kind.name.lower()}")(fault)
        except NobodyThereError:
            return
        self.done.append(f"{fault.at_seconds:.2f} {fault.kind} {fault.duration_seconds:.2f} {fault.amount:.3f}")
        if end is not None:
            self._at(fault.at_seconds + fault.duration_seconds, end)

    # ------------------------------------------------------------------------------------------------ workers

    def _post(self, fault: Fault) -> tuple[Post, WorkerProcess]:
        posts = [post for post in self._scene.crew.posts if post.is_wanted]
        post = posts[int(fault.amount * len(posts)) % len(posts)]
        if post.worker is None or post.worker.process.poll() is not None:
            raise NobodyThereError
        return post, post.worker

    def _worker_kill(self, fault: Fault) -> None:
        post, _ = self._post(fault)
        self._scene.crew.kill(post)

    def _worker_term(self, fault: Fault) -> None:
        post, _ = self._post(fault)
        self._scene.crew.terminate(post)

    def _worker_stop_cont(self, fault: Fault) -> Callable[[], None]:
        _, worker = self._post(fault)
        worker.freeze()
        return worker.thaw

    def _worker_join(self, fault: Fault) -> None:
        crew = self._scene.crew
        guest = crew.add(f"guest{len(crew.posts)}", self._scene.settings)

        def leave() -> None:
            guest.is_wanted = False
            crew.terminate(guest)

        # A process takes seconds before it can join at all.
        self._at(fault.at_seconds + max(fault.duration_seconds, JOIN_SECONDS), leave)

    # ------------------------------------------------------------------------------------------------ brokers

    def _node(self, fault: Fault) -> KafkaNode:
        nodes = self._scene.arena.broker.nodes
        return nodes[int(fault.amount * len(nodes)) % len(nodes)]

    def _broker_kill_restart(self, fault: Fault) -> Callable[[], None]:
        node = self._node(fault)
        node.kill()
        return node.start

    def _broker_pause(self, fault: Fault) -> Callable[[], None]:
        node = self._node(fault)
        node.pause()
        return node.resume

    def _disk_full(self, fault: Fault) -> Callable[[], None]:
        disk, node = self._scene.arena.disk, self._scene.arena.broker.nodes[0]
        assert disk is not None
        disk.fill()

        def clear() -> None:
            disk.clear()
            # Kafka ends itself when its only folder fails, which takes a while; running, a start does nothing.
            for seconds in range(DYING_SECONDS):
                self._at(fault.at_seconds + fault.duration_seconds + seconds, node.start)

        return clear

    def _leader_move(self, fault: Fault) -> None:
        settings = self._scene.settings

        def turn(admin: KafkaAdminClient) -> None:
            topics = [t for t in admin.list_topics() if t in OWN_TOPICS or t.startswith(settings.topic_prefix)]
            topics.append(settings.changelog_topic)
            new = {
                TopicPartition(topic["name"], partition["partition_index"]): _turned(partition["replica_nodes"], fault)
                for topic in admin.describe_topics(topics)
                for partition in topic["partitions"]
            }
            admin.alter_partition_reassignments(new)
            wanted: dict[str, list[int]] = {}
            for partition in new:
                wanted.setdefault(partition.topic, []).append(partition.partition)
            admin.elect_leaders(PREFERRED, wanted, raise_errors=False)

        _with_admin(settings, turn)

    # ------------------------------------------------------------------------------------------------ network

    def _network_slow(self, fault: Fault) -> Callable[[], None]:
        self._scene.wire.slow(fault.amount)
        return self._scene.wire.mend

    def _network_cut(self, fault: Fault) -> Callable[[], None]:
        wire = self._scene.wire
        if fault.amount < 0.5:
            wire.cut()
        else:
            wire.deafen()
        return wire.mend

    # ------------------------------------------------------------------------------------------------ refusals

    def _produce_refused(self, fault: Fault) -> Callable[[], None]:
        settings = self._scene.settings
        topics = (settings.commands_topic, settings.decisions_topic, settings.changelog_topic)
        choice = int(fault.amount * 2 * len(topics)) % (2 * len(topics))
        topic = topics[choice % len(topics)]
        refuse, allow = (forbid_writing, permit) if choice < len(topics) else (_shrink, _widen)
        refuse(settings, topic)
        return lambda: allow(settings, topic)

    def _record_too_large(self, _: Fault) -> None:
        """Do nothing: the plan has the object among its changes."""

    def _absurd_records(self, _: Fault) -> None:
        """Do nothing, for the same reason."""

    # ------------------------------------------------------------------------------------------------ clocks

    def _clock_step(self, fault: Fault) -> Callable[[], None]:
        clocks = list(self._scene.clocks.values())
        for clock in clocks:
            clock.step(fault.amount)

        def back() -> None:
            for clock in clocks:
                clock.step(0.0)

        return back


def _turned(replicas: list[int], fault: Fault) -> list[int]:
    by = 1 + int(fault.amount * len(replicas)) % max(1, len(replicas) - 1)
    return replicas[by:] + replicas[:by]


def _with_admin(settings: Settings, work: Callable[[KafkaAdminClient], object]) -> None:
    admin = ClosingAdminClient(
        bootstrap_servers=settings.bootstrap_servers, request_timeout_ms=ADMIN_MS, bootstrap_timeout_ms=ADMIN_MS
    )
    try:
        work(admin)
    finally:
        admin.close()


def forbid_writing(settings: Settings, topic: str) -> None:
    """Deny everybody to write to a topic, by an ACL."""
    forbid(settings, topic, ACLOperation.WRITE)


def forbid(settings: Settings, topic: str, operation: ACLOperation) -> None:
    """Deny everybody one operation on a topic, by an ACL."""
    place = ResourcePattern(ResourceType.TOPIC, topic)
    acls = [
        ACL("User:*", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, place),
        ACL("User:*", "*", operation, ACLPermissionType.DENY, place),
    ]
    _with_admin(settings, lambda admin: admin.create_acls(acls))


def permit(settings: Settings, topic: str) -> None:
    """Take back what was denied on a topic."""
    place = ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.LITERAL)
    every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, place)
    _with_admin(settings, lambda admin: admin.delete_acls([every]))


def _shrink(settings: Settings, topic: str) -> None:
    _set_largest(settings, topic, TOO_SMALL_BYTES)


def _widen(settings: Settings, topic: str) -> None:
    _set_largest(settings, topic, str(settings.max_message_bytes))


def _set_largest(settings: Settings, topic: str, size: str) -> None:
    change = ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": size})
    _with_admin(settings, lambda admin: admin.alter_configs([change]))
