"""The embedded Kafka: a real Apache Kafka on loopback that needs nothing installed but Python.

For trying out and for tests, never for production: no TLS, no copies unless several nodes are asked for. Its data lives
in a temporary folder that is removed afterwards, or in a folder of the caller's that is kept. Start takes about 4 s
(formatting 1 s, Kafka 3 s) and 320 MB of memory a node; the first start ever downloads 46 MB before.
"""

from __future__ import annotations

import base64
import fcntl
import json
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Self

from evictstream.streams.broker.admin_client import Probe, probe
from evictstream.streams.broker.jars import kafka_version
from evictstream.streams.broker.kafka_node import KafkaNode
from evictstream.streams.broker.ports import LOOPBACK, free_ports, is_listened_on, reserve
from evictstream.streams.broker.properties import Detour, NodeAddress
from evictstream.streams.errors import BrokerFailedError, PlaceUnusableError, WrongUseError

START_TIMEOUT_SECONDS = 60.0
"""Three seconds are usual. A machine whose cores are all busy has been seen to need twenty."""

_POLL_SECONDS = 0.05

MAX_NODES = 5
"""More would not fit on a usual laptop (320 MB each)."""

DEFAULT_HEAP_MEGABYTES = 512


class EmbeddedBroker:
    """A Kafka of one or more nodes. Use it as a context manager, or call `start` and `stop`.

        with EmbeddedBroker() as broker:
            broker.bootstrap_servers  # 127.0.0.1:24211

    `kill`, `pause`, `resume` and `restart` act on all nodes; `nodes[i]` has the same for one. Ports and data stay the
    same until `stop`, so clients find it again.

    Attributes:
        usual_features: for brokers made without `features`; tests set it.
    """

    usual_features: ClassVar[Mapping[str, int]] = {}

    def __init__(
        self,
        *,
        data: Path | None = None,
        port: int | None = None,
        nodes: int = 1,
        heap_megabytes: int = DEFAULT_HEAP_MEGABYTES,
        detours: int = 0,
        properties: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        """Choose ports and folder; `start` starts the nodes.

        Args:
            data: folder to keep data in, made if it is missing; with data of an earlier run it goes on with that.
                Without it, a temporary folder.
            port: where clients connect to the first node; without it, a free one.
            nodes: how many, 1 to 5. Three make leaders that move.
            heap_megabytes: for each node.
            detours: how many further ways to each node, for tests that slow or cut connections (see `Detour`).
            properties: of Kafka; they override the ones made here.
            features: levels of Kafka's features, such as `transaction.version`, for new data; without it, the newest.

        Raises:
            WrongUseError: a number out of range, or a folder made with another number of nodes.
        """
        if not 1 <= nodes <= MAX_NODES:
            problem = f"an embedded Kafka has 1 to {MAX_NODES} nodes, not {nodes}"
            raise WrongUseError(problem)
        self._temporary = data is None
        self._folder = Path(tempfile.mkdtemp(prefix="evictstream-kafka-")) if data is None else data.resolve()
        self._cluster_id = _cluster_id(self._folder, nodes)
        ports = free_ports((2 + 2 * detours) * nodes)
        if port is not None:
            ports[0] = port
        self._ports, self._reserved = tuple(ports), list[socket.socket]()
        self._lock: IO[bytes] | None = None
        addresses = [
            NodeAddress(
                node_id=index + 1,
                host=LOOPBACK,
                client_port=ports.pop(0),
                controller_port=ports.pop(0),
                detours=tuple(Detour(ports.pop(0), ports.pop(0)) for _ in range(detours)),
            )
            for index in range(nodes)
        ]
        self.nodes = tuple(
            KafkaNode(
                address,
                addresses,
                folder=self._folder / f"node-{address.node_id}",
                cluster_id=self._cluster_id,
                heap_megabytes=heap_megabytes,
                remove_folder=self._folder if self._temporary else None,
                properties=properties,
                features=self.usual_features if features is None else features,
            )
            for address in addresses
        )

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all nodes, `host:port,host:port`."""
        return ",".join(f"{node.address.host}:{node.address.client_port}" for node in self.nodes)

    @property
    def description(self) -> str:
        """What this is, for people."""
        kept = "in a temporary folder" if self._temporary else f"with its data in {self._folder}"
        return f"embedded Apache Kafka {kafka_version()}, {len(self.nodes)} node(s), {kept}"

    def start(self) -> Self:
        """Start all nodes that are down and wait until all of them answer.

        Raises:
            EmbeddedBrokerError: of the kind that fits; what was started is stopped again.
        """
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        try:
            self._lock_folder()
            self._reserve_ports()
            for node in self.nodes:
                node.start()
            self._wait_until_all_answer(deadline)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all nodes and remove a temporary folder. Down: does nothing.

        Nodes whose data is kept end in order, the others at once.
        """
        if self._temporary:
            self.kill()
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            self._stop_in_order()
        for holder in self._reserved:
            holder.close()
        self._reserved.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def kill(self) -> None:
        """End all nodes at once, as a crash or a power cut would; the data stays."""
        for node in self.nodes:
            node.kill()

    def restart(self) -> None:
        """Start again after `kill` on the same data and ports, or stop in order first if it runs."""
        self._stop_in_order()
        self.start()

    def pause(self) -> None:
        """Freeze all nodes: connections stay open, but get no answer."""
        for node in self.nodes:
            node.pause()

    def resume(self) -> None:
        """Let frozen nodes go on."""
        for node in self.nodes:
            node.resume()

    def raise_if_ended(self) -> None:
        """Raise `BrokerFailedError` if the process of a node has ended."""
        for node in self.nodes:
            node.raise_if_ended()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _lock_folder(self) -> None:
        """Keep others from a folder whose data is kept: two brokers in it would write into the same files."""
        if self._temporary or self._lock is not None:
            return
        lock = (self._folder / "lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            next_step = "stop that one, or name another folder"
            raise PlaceUnusableError(
                str(self._folder), reason="another embedded Kafka uses it", next_step=next_step
            ) from error
        self._lock = lock

    def _reserve_ports(self) -> None:
        if self._reserved or any(node.pid is not None for node in self.nodes):
            return
        for port in self._ports:
            if is_listened_on(port):
                next_step = "name another port, or none for a free one"
                raise PlaceUnusableError(f"port {port}", reason="another program uses it", next_step=next_step)
        self._reserved = reserve(self._ports)

    def _stop_in_order(self) -> None:
        for node in self.nodes:
            node.terminate()  # all at once: the last one alone has no majority to leave its cluster in order
        for node in self.nodes:
            node.stop()

    def _wait_until_all_answer(self, deadline: float) -> None:
        for node in self.nodes:
            while not node.answers():
                _sleep_unless_late(deadline, node)
        # A node accepts connections before it takes part. The id tells this Kafka from another one on the same port.
        while probe(self.bootstrap_servers) != Probe(self._cluster_id, len(self.nodes)):
            self.raise_if_ended()
            _sleep_unless_late(deadline, self.nodes[0])


def _sleep_unless_late(deadline: float, node: KafkaNode) -> None:
    if time.monotonic() > deadline:
        message = f"the embedded Kafka did not answer within {START_TIMEOUT_SECONDS:g} s"
        raise BrokerFailedError(message, log_tail=node.log_tail())
    time.sleep(_POLL_SECONDS)


def _cluster_id(folder: Path, nodes: int) -> str:
    """Return the id in the folder's `cluster.json`, or write a new one."""
    path = folder / "cluster.json"
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["nodes"] != nodes:
            problem = f"{folder} belongs to an embedded Kafka of {stored['nodes']} node(s), not {nodes}"
            raise WrongUseError(problem, next_step="name another folder, or use the same number of nodes")
        return str(stored["cluster_id"])
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # Kafka's own tool reads an id that begins with a dash as an option.
    cluster_id = cluster_id.replace("-", "a", 1) if cluster_id.startswith("-") else cluster_id
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cluster_id": cluster_id, "nodes": nodes}), encoding="utf-8")
    return cluster_id
