"""What reaches a cluster's evictions from outside of it: strangers at Kafka, other clusters, what a kubeconfig says."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.oracle.records import InputRecord, MessageRecord
from evictstream.streams.settings import Settings
from tests.harness.feed import Feed, taint

CLUSTER: Final = "lab"
DEAD: Final = "dead"
"""A cluster that was fed once and whose API server has been gone since; all that is due there waits."""

DEAD_PODS: Final = 100
NOBODY_LISTENS: Final = "http://127.0.0.1:9"  # the port of the discard protocol

STAGING: Final = "staging"
"""A cluster with nodes and pods of the same names, in which no process may write."""

TROUBLE_SECONDS: Final = 3.0
"""How long credentials fail, the context is another one, a watch cache stands still, or a transaction stays open."""

SEND_SECONDS: Final = 30.0

GIANT: Final = bytes(60 << 20)
"""Two kilobytes of zstd."""

TROUBLES: Final = ("token", "plugin fails", "context", "stale cache", "transaction", "giant")
"""What happens in a run, each for `TROUBLE_SECONDS`."""

CACHE_STANDS: Final = "cache stands"
"""As `stale cache`, and to the end: only a listing shows what has changed. It costs a run two minutes."""

OF_STRANGERS: Final = {b"Transactional", b"Oversized", b"BadBatch"}
"""Reasons of dead letters about what strangers wrote. No other record of a run is one."""


class Place(NamedTuple):
    """Where a record stands; the topic without its prefix."""

    topic: str
    partition: int
    offset: int


class OutsideWorld:
    """Everything around the cluster `lab` of one run. Use as a context manager.

    Attributes:
        kubeconfig: a file with the contexts `lab`, `dead` and `staging`.
        staging: the other cluster that answers.
        sent: topic, partition and offset of what strangers have written to inputs.
    """

    def __init__(
        self, api: FakeApi, settings: Settings, folder: Path, draw: Random, *, troubles: Sequence[str] = TROUBLES
    ) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.staging = FakeApi()
        self.sent: set[Place] = set()
        self._troubles = troubles
        self._api = api
        self._settings = settings
        self._draw = draw
        self._token = folder / "token"
        self._context = CLUSTER
        self._lock = threading.Lock()
        self._over: list[threading.Timer] = []
        self._producers: list[Any] = []

    def __enter__(self) -> Self:
        self.staging.__enter__()
        self._renew_token()
        self._write_kubeconfig()
        for number in range(6):
            self.staging.put("Node", f"n-{number}", spec={"taints": [taint("maintenance")]})
        for number in range(40):
            self.staging.put("Pod", f"p-{number}", spec={"nodeName": f"n-{number % 6}"}, status={"phase": "Running"})
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for producer in self._producers:
            producer.close(timeout=0)
        self.staging.__exit__()

    def feed_the_dead_cluster(self) -> None:
        """Tell of pods that are due in the cluster that does not answer."""
        with Feed(self._settings, DEAD) as feed:
            for number in range(DEAD_PODS):
                feed.pod(f"d-{number % 3}", f"p-{number}")
            for number in range(3):
                feed.node(f"d-{number}", taint())
            feed.flush()

    @property
    def is_calm(self) -> bool:
        """Whether a process that is started now finds its own cluster and credentials."""
        with self._lock:
            return self._context == CLUSTER and self._token.exists()

    def act(self, *, is_starting: bool) -> str:
        """Let something happen for a while; returns what. While a process starts, the context stays: it is its own."""
        what = self._draw.choice(self._troubles) if self._troubles else "nothing"
        if what == "context" and is_starting:
            return "context stays"
        if what == "token":
            self._renew_token()
        elif what == "plugin fails":
            self._token.unlink(missing_ok=True)
            self._api.token = secrets.token_hex(8)
            self._later(self._renew_token)
        elif what == "context":
            self._use(STAGING)
            self._api.trouble.setdefault("watch pods", []).append(401)
            self._api.trouble.setdefault("get pods", []).append(401)
            self._later(self._use, CLUSTER)
        elif what in {"stale cache", CACHE_STANDS}:
            plural = self._draw.choice(("nodes", "pods"))
            self._api.stuck.setdefault(plural, self._api.version)
            if what != CACHE_STANDS:
                self._later(self._api.stuck.pop, plural, None)
        elif what == "transaction":
            self._open_transaction()
        elif what == "giant":
            self._send_giant()
        return what

    def end(self) -> None:
        """End all that happens, and wait for it."""
        for timer in self._over:
            timer.join()
        self._over.clear()

    def _later(self, do: Any, *arguments: object) -> None:
        timer = threading.Timer(TROUBLE_SECONDS, do, arguments)
        timer.start()
        self._over.append(timer)

    def _renew_token(self) -> None:
        token = secrets.token_hex(8)
        answer = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": token},
        }
        with self._lock:
            self._token.write_text(json.dumps(answer))
            self._api.token = token

    def _use(self, context: str) -> None:
        with self._lock:
            self._context = context
            self._write_kubeconfig()

    def _write_kubeconfig(self) -> None:
        servers = {CLUSTER: self._api.url, DEAD: NOBODY_LISTENS, STAGING: self.staging.url}
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [str(self._token)],
            "interactiveMode": "Never",
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
            "users": [{"name": "somebody", "user": {"exec": plugin}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "somebody"}} for name in servers],
            "current-context": self._context,
        }
        new = self.kubeconfig.with_suffix(".new")
        new.write_text(json.dumps(config))
        new.replace(self.kubeconfig)

    def _open_transaction(self) -> None:
        producer = self._producer(transactional_id=f"{self._settings.application_id}-stranger-{len(self._producers)}")
        producer.init_transactions()
        producer.begin_transaction()
        for topic in self._draw.sample(self._settings.input_topics, 2):
            partition = self._draw.randrange(self._settings.partitions)
            self._send(producer, topic, b"{}", partition=partition)
        ends = self._draw.choice((producer.commit_transaction, producer.abort_transaction))
        self._later(_quietly, ends)

    def _send_giant(self) -> None:
        settings = self._settings
        topic = self._draw.choice((*settings.input_topics, settings.commands_topic, settings.feeds_topic))
        partition = 0 if topic == settings.feeds_topic else self._draw.randrange(settings.partitions)
        producer = self._producer(compression_type="zstd", max_request_size=1 << 30, batch_size=1 << 30)
        self._send(producer, topic, GIANT, partition=partition)

    def _send(self, producer: Any, topic: str, value: bytes, *, partition: int) -> None:
        told = producer.send(topic, value, key=CLUSTER.encode(), partition=partition).get(SEND_SECONDS)
        if topic in self._settings.input_topics:
            self.sent.add(Place(topic.rpartition(".")[2], told.partition, told.offset))

    def _producer(self, **more: object) -> Any:
        producer = KafkaProducer(bootstrap_servers=self._settings.bootstrap_servers, acks="all", **more)
        self._producers.append(producer)
        return producer


def _quietly(do: Any) -> None:
    with contextlib.suppress(KafkaError):
        do()


def of_the_cluster(
    inputs: Iterable[InputRecord], messages: Iterable[MessageRecord]
) -> tuple[list[InputRecord], list[MessageRecord], set[Place]]:
    """Leave out the dead cluster, what strangers wrote, and the dead letters about that; returns what these are of."""
    ours = CLUSTER.encode()
    of_strangers, kept = set[Place](), []
    for message in messages:
        if message.topic == "dead-letters" and message.headers["reason"] in OF_STRANGERS:
            topic = message.headers["originTopic"].decode().rpartition(".")[2]
            place = int(message.headers["originPartition"]), int(message.headers["originOffset"])
            of_strangers.add(Place(topic, *place))
        elif message.key == ours and message.value != GIANT:
            kept.append(message)
    heard = [one for one in inputs if one.key == ours and (one.topic, one.partition, one.offset) not in of_strangers]
    return heard, kept, of_strangers
