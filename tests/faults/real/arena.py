"""The brokers that schedules run on: one that many share, one that may be killed, three whose leaders move.

Each has several wires (see `wire`), so that several schedules run at once and each can have its own workers cut off.
An authorizer that allows everything is on, so that an ACL can forbid something, and outputs are stamped by the broker.
Harness and actors come the direct way:
a fault is meant for the workers, and what is to be judged must be written and read whatever happens to them.
"""

from __future__ import annotations

import contextlib
import enum
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.errors import BrokerFailedError
from tests.faults.real.disk import SmallDisk
from tests.faults.real.wire import Wire, WireLoop

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Not with several nodes: their controllers would have to be told apart from clients before any ACL is known."""

START_TRIES = 3

LOST_COORDINATOR = re.compile(r"Failed to load metadata from (__consumer_offsets-\d+) .* must be greater than")
"""A disk without room can make Kafka 4.3 write a batch twice (its memory-mapped index fails after the log took the
batch). It then never serves the groups of that partition again, and no worker of theirs may fire anything.
"""

STAMPS = {"log.message.timestamp.type": "LogAppendTime"}


class ArenaKind(enum.Enum):
    """What a schedule may do to its brokers."""

    SHARED = "shared"
    OWN = "own"
    CLUSTER = "cluster"


class Arena:
    """Brokers with wires. Use as a context manager."""

    def __init__(self, kind: ArenaKind, wires: WireLoop, folder: Path, width: int) -> None:
        """`width` is how many schedules run on it at once."""
        self.kind = kind
        self.disk: SmallDisk | None = SmallDisk(folder / "disk") if kind is ArenaKind.OWN else None
        self._folder = folder
        self._width = width
        self._loop = wires
        self._stack = ExitStack()
        self.wires: list[Wire] = []

    def __enter__(self) -> Self:
        data = self._folder / "data"
        if self.disk is not None:
            data = self._stack.enter_context(self.disk).folder / "data"
        self.nodes = 3 if self.kind is ArenaKind.CLUSTER else 1
        self.broker = EmbeddedBroker(
            data=data,
            nodes=self.nodes,
            detours=self._width,
            properties=STAMPS if self.nodes > 1 else STAMPS | AUTHORIZER,
            heap_megabytes=384,
        )
        self._stack.callback(self.broker.stop)
        self._stack.callback(self.broker.kill)  # first: nobody needs the data any more
        self.revive()
        for number in range(self._width):
            detours = [node.address.detours[number] for node in self.broker.nodes]
            self.wires.append(self._stack.enter_context(Wire(self._loop, detours)))
        return self

    def revive(self) -> None:
        """Start every node that is down and wait until all answer; again, where a busy machine takes too long."""
        for _ in range(START_TRIES - 1):
            with contextlib.suppress(BrokerFailedError):
                self.broker.start()
                return
        self.broker.start()

    @property
    def lost_coordinator(self) -> str | None:
        """Which partition of group offsets the broker itself has destroyed, if any."""
        for node in self.broker.nodes:
            if found := LOST_COORDINATOR.search(node.log_file.read_text(errors="replace")):
                return found[1]
        return None

    def renew(self) -> None:
        """Begin anew with an empty broker; no schedule may be running."""
        self._stack.close()
        self.wires.clear()
        self.__enter__()

    def __exit__(self, *_: object) -> None:
        self._stack.close()
