"""Writes commands as the service does: in transactions, to the partition of their cluster."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import uuid
from types import TracebackType
from typing import Any, Final, Self

from kafka import KafkaProducer
from kafka.partitioner import DefaultPartitioner, murmur2

from evictstream.kit.conformance.fake_cluster import NAMESPACE
from evictstream.kit.conformance.playground import CLUSTER
from evictstream.models.instants import instant_text
from evictstream.streams.broker.clients import client_arguments, our_errors
from evictstream.streams.settings import Settings

COMMANDED_TAINT: Final = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}

TOLERATION_SECONDS: Final = 300

TOLERATION: Final = {**COMMANDED_TAINT, "operator": "Exists", "tolerationSeconds": TOLERATION_SECONDS}

_LINGER_MILLISECONDS: Final = 20
"""So that the commands of one transaction are one batch, which a reader gets as a whole."""

ANSWER_SECONDS: Final = 30.0
"""The service counts a command without an answer as failed after so long."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCommand:
    """A command that was written, or is to be.

    Attributes:
        case: of the play.
        action: `Schedule`, `Evict` or `Cancel`.
        pod: name.
        pod_uid: of the pod that is meant.
        node: name.
        revision: of the eviction.
        attempt: of the eviction.
        cluster: whose pod.
        at: when it was written, seconds since 1970.
        answer_seconds: how long its answer may take.
        is_committed: whether its transaction was.
        is_newer: whether it has a field that only a later version of the contract knows.
    """

    case: str
    action: str
    pod: str
    pod_uid: str
    node: str
    revision: int = 1
    attempt: int = 1
    cluster: str = CLUSTER
    at: float = 0.0
    answer_seconds: float = ANSWER_SECONDS
    is_committed: bool = True
    is_newer: bool = False

    @property
    def eviction_id(self) -> str:
        """The same for all commands about one pod."""
        text = f"{self.cluster}/{self.case}/{self.pod_uid}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def key(self) -> bytes:
        """That of its cluster."""
        return self.cluster.encode()

    @property
    def issued_at_us(self) -> int:
        """Its `issuedAt`, microseconds since 1970."""
        return int(self.at * 1_000_000)

    def value(self) -> bytes:
        """Return the message."""
        now_us = self.issued_at_us
        later = 3600 if self.action == "Schedule" else 0
        began_us = now_us - (TOLERATION_SECONDS - later) * 1_000_000
        return json.dumps(
            {
                "apiVersion": "evictstream.io/v1",
                "kind": "EvictionCommand",
                "action": self.action,
                "evictionId": self.eviction_id,
                "revision": self.revision,
                "attempt": self.attempt,
                "cluster": self.cluster,
                "namespace": NAMESPACE,
                "pod": self.pod,
                "podUid": self.pod_uid,
                "node": self.node,
                "nodeUid": uid_of(self.node),
                "reason": {
                    "verdict": "TaintRemoved" if self.action == "Cancel" else "TolerationExpires",
                    "taint": COMMANDED_TAINT,
                    "toleration": TOLERATION,
                },
                "windowStart": instant_text(began_us),
                "deadline": instant_text(began_us + TOLERATION_SECONDS * 1_000_000),
                "issuedAt": instant_text(now_us),
            }
            | ({"addedLater": {"to": ["the contract"]}} if self.is_newer else {})
        ).encode()

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers that the service writes with every command."""
        return [("type", b"io.evictstream.eviction-command.v1"), ("content-type", b"application/json")]


class CommandWriter:
    """A transactional producer for the commands topic. Use as a context manager."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = settings.commands_topic
        self._producer: Any = None

    def __enter__(self) -> Self:
        """Open it."""
        with our_errors(self._settings, "open a transactional producer"):
            self._producer = KafkaProducer(
                **client_arguments(self._settings),
                transactional_id=f"{self._settings.application_id}-{uuid.uuid4().hex[:8]}",
                partitioner=DefaultPartitioner(),
                linger_ms=_LINGER_MILLISECONDS,
            )
            self._producer.init_transactions()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._producer.close(timeout=1)

    def write(self, *commands: PlayedCommand) -> list[PlayedCommand]:
        """Write commands in one transaction; gives them with their time."""
        with our_errors(self._settings, "write commands"):
            self._producer.begin_transaction()
            sent = self._send(commands)
            self._producer.commit_transaction()
        return sent

    def write_raw(self, key: bytes, values: list[bytes | None]) -> None:
        """Write what is no command."""
        with our_errors(self._settings, "write records"):
            self._producer.begin_transaction()
            for value in values:
                self._producer.send(self._topic, key=key, value=value)
            self._producer.commit_transaction()

    def write_and_abort(self, *commands: PlayedCommand, open_seconds: float) -> list[PlayedCommand]:
        """Write commands, leave them uncommitted for a while, and abort."""
        with our_errors(self._settings, "write commands"):
            self._producer.begin_transaction()
            sent = self._send(commands)
            self._producer.flush()
            time.sleep(open_seconds)
            self._producer.abort_transaction()
        return [dataclasses.replace(one, is_committed=False) for one in sent]

    def _send(self, commands: tuple[PlayedCommand, ...]) -> list[PlayedCommand]:
        sent = [dataclasses.replace(command, at=time.time()) for command in commands]
        for one in sent:
            self._producer.send(self._topic, key=one.key, value=one.value(), headers=one.headers())
        return sent


def uid_of(name: str) -> str:
    """Give an object of the fake cluster its UID: the same in each run."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def partition_of_key(key: bytes, partitions: int) -> int:
    """Give the partition of a key by Kafka's default partitioner, without a line of the ends that are judged."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions
