"""Every program runs under exactly the rights that docs/kafka-rights.md gives its user, and gets no others.

One broker with an authorizer serves two domains of trust, `red` and `blue`, each with all users of the page.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.messages.result import RESULT_KIND
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import QUICK
from tests.harness import copies
from tests.harness.ends import MAIN
from tests.harness.reading import TopicReader
from tests.harness.rights import PASSWORD, RightsBroker, rights_broker, table_of_rights
from tests.harness.workers import WorkerProcess, environment

pytestmark = pytest.mark.kafka

USERS = {
    "worker": "worker",
    "feed": "feed-prod",
    "executor": "executor-prod",
    "observer": "observer-prod",
    "operator": "operator",
    "reader": "reader",
}
"""Their names behind the domain's, by columns of the page's table."""

LOGIN = {"EVICTSTREAM_SASL_PASSWORD": PASSWORD}
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RightsBroker]:
    with rights_broker(["red", "blue"]) as found:
        for domain in ("red", "blue"):
            declare_topics(found.settings(domain, "operator")).raise_if_breaking()
        yield found


@pytest.fixture(scope="module")
def ran(broker: RightsBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Run feed, worker, executor and observer of `red` until a pod is evicted and both have answered."""
    folder = tmp_path_factory.mktemp("ran")
    with ExitStack() as stack:
        api = stack.enter_context(FakeApi())
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        of_cluster = ("--cluster", "prod", "--kubeconfig", str(kubeconfig))

        def start(user: str, *arguments: str) -> None:
            settings = broker.settings("red", user, **QUICK)
            stack.enter_context(WorkerProcess(settings, folder, user, (MAIN, *arguments), LOGIN))

        start("worker", "worker")
        start("feed-prod", "feed", *of_cluster)
        start("executor-prod", "execute", *of_cluster, "--mode", "delete")
        start("observer-prod", "execute", *of_cluster)
        api.put("Node", "n-1", uid="uid-n-1", spec={"taints": [{"key": "maintenance", "effect": "NoExecute"}]})
        api.put("Pod", "p-1", uid="uid-p-1", spec={"nodeName": "n-1"}, status={"phase": "Running"})
        results = TopicReader(broker.settings("red"), "red.results", RESULT_KIND)
        stack.callback(results.close)
        seen = results.wait_for(
            lambda seen: {"Succeeded", "Observed"} <= {str(each.value.get("outcome")) for each in seen},
            "an eviction and an observation",
            PATIENCE_SECONDS,
        )
        yield {str(each.value["outcome"]): each.value["pod"] for each in seen}


def test_each_end_does_its_work_under_its_rights(ran: dict[str, object]) -> None:
    assert (ran["Succeeded"], ran["Observed"]) == ("p-1", "p-1")


@pytest.mark.usefixtures("ran")
def test_each_tool_does_its_work_under_its_rights(broker: RightsBroker, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(
        '{"cluster":"prod","type":"ADDED","observedAt":"2026-11-21T02:10:01Z","object":{"apiVersion":"v1","kind":"Node",'
        '"metadata":{"name":"n-2","uid":"n","resourceVersion":"1"},"spec":{}}}\n'
    )
    with _tools(broker) as tool:
        tool("operator", "topics", "check")
        tool("operator", "accept-gap", "--yes", code=1)  # there is none, it says
        tool("operator", "hold", "--cluster", "elsewhere", "--why", "a try", "--for", "1m", "--id", "tried")
        tool("operator", "release", "unknown", "--why", "a try", code=1)
        tool("feed-prod", "import", "--into-fed-cluster", str(events))
        tool("reader", "commands", "--from", "beginning", "--idle-seconds", "1")
        tool("reader", "record", str(tmp_path / "recording"))
        tool("reader", "replay")
        tool("reader", "explain", "uid-p-1")
        tool("reader", "what-if", "--nodes", "n-1", "--taint", "k=v:NoExecute")
        tool("reader", "get", "evictions", "--selector", "pool=spot", "--since", "5m")
        tool("reader", "get", "dead-letters")
        tool("reader", "holds", "--count")
        tool("reader", "status")
        tool("reader", "describe", "node", "n-1")
    with _tools(broker) as tool:
        tool("operator", "cluster", "forget", "prod", "--yes")


@pytest.mark.usefixtures("ran")
def test_each_command_ends_with_1_where_a_right_is_missing(broker: RightsBroker, tmp_path: Path) -> None:
    """Before it begins: nobody waits for a group, a session or a transaction to be refused."""
    events = tmp_path / "events.jsonl"
    events.write_text('{"cluster":"prod","type":"ADDED","object":{"apiVersion":"v1","kind":"Node","metadata":{}}}\n')
    with FakeApi() as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        of_cluster = ("--cluster", "prod", "--kubeconfig", str(kubeconfig))
        with _tools(broker) as tool:
            for user in ("reader", "operator"):
                tool(user, "worker", code=1)
                tool(user, "feed", *of_cluster, code=1)
                tool(user, "execute", *of_cluster, code=1)
            tool("observer-prod", "execute", *of_cluster, "--mode", "delete", code=1)  # the group of those that act
            tool("feed-prod", "topics", "check", code=1)
            tool("reader", "import", str(events), "--into-fed-cluster", code=1)
            tool("reader", "cluster", "forget", "prod", "--yes", code=1)
            tool("reader", "accept-gap", "--yes", code=1)
            tool("reader", "hold", "--all", "--why", "a try", "--for", "1m", code=1)
            tool("feed-prod", "commands", "--from", "beginning", "--idle-seconds", "1", code=1)
            tool("feed-prod", "record", str(tmp_path / "recording"), code=1)
            tool("feed-prod", "replay", code=1)
            tool("feed-prod", "explain", "uid-p-1", code=1)
            tool("feed-prod", "what-if", "--nodes", "n-1", "--taint", "k=v:NoExecute", code=1)


@contextlib.contextmanager
def _tools(broker: RightsBroker) -> Iterator[Any]:
    """Start command lines, all at once, and hold each to its exit code."""
    started: list[tuple[subprocess.Popen[str], int]] = []

    def start(user: str, *arguments: str, code: int = 0) -> None:
        process = copies.start(
            [sys.executable, "-m", MAIN, *arguments],
            env=environment(broker.settings("red", user)) | LOGIN,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append((process, code))

    yield start
    for process, code in started:
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code, f"{process.args!r}: {process.returncode}: {said}"


@pytest.mark.parametrize("column", USERS)
@pytest.mark.usefixtures("ran")
def test_nobody_may_do_more_than_the_table_says(broker: RightsBroker, column: str) -> None:
    wanted = table_of_rights()[column]
    with admin_client(broker.settings("red", USERS[column]), "look at rights") as admin:
        for first, operations in wanted.items():
            for name in _names(first):
                assert _granted(admin, first, name) == operations, f"{column}: {first}: {name}"
        for name in ("blue.nodes", "blue.commands", "blue.feeds", "blue-v2-state-changelog", "__consumer_offsets"):
            assert _granted(admin, "topic", name) == set()
        for name in ("blue-v2", "blue-feed-prod", "blue-executor-prod"):
            assert _granted(admin, "group", name) == set()


def _names(first: str) -> list[str]:
    """Return the names in the first cell of a row, in the domain `red`."""
    words = [word.replace("evictstream", "red") for word in first.split("`")[1::2]]
    if first.startswith("topic"):
        return ["red-v2-state-changelog" if "…" in word else f"red.{word}" for word in words]
    return [word.replace("v…", "v2") for word in words]


def _granted(admin: KafkaAdminClient, kind: str, name: str) -> set[str]:
    if kind.startswith("topic"):
        return set(admin.describe_topics([name])[0]["authorized_operations"] or ())
    if kind.startswith("group"):
        try:
            return set(admin.describe_groups([name], include_authorized_operations=True)[name]["authorized_operations"])
        except GroupAuthorizationFailedError:
            return set()
    if kind.startswith("transactional"):
        try:
            admin.describe_transactions([f"{name}-0"])
        except TransactionalIdAuthorizationFailedError:
            return set()
        return {"DESCRIBE", "WRITE"}
    return set(admin.describe_cluster()["authorized_operations"])


@pytest.mark.parametrize("domain", ["red", "blue"])
@pytest.mark.parametrize("user", [user for user in USERS.values() if user != "worker"])
def test_nobody_but_a_worker_can_fence_a_worker(broker: RightsBroker, user: str, domain: str) -> None:
    _refused_to_fence(broker.settings(domain, user), "red-v2-0")


def test_a_worker_cannot_fence_one_of_another_domain(broker: RightsBroker) -> None:
    _refused_to_fence(broker.settings("blue", "worker"), "red-v2-0")


def _refused_to_fence(settings: Settings, transactional_id: str) -> None:
    producer = KafkaProducer(**client_arguments(settings), transactional_id=transactional_id)
    with pytest.raises(TransactionalIdAuthorizationFailedError):
        producer.init_transactions()
    producer.close(timeout=1)


@pytest.mark.parametrize(
    ("user", "topic"),
    [
        ("feed-prod", "red.commands"),
        ("feed-prod", "red.results"),
        ("feed-prod", "blue.nodes"),
        ("executor-prod", "red.commands"),
        ("executor-prod", "red.pods"),
        ("executor-prod", "red.feeds"),
        ("reader", "red.nodes"),
        ("operator", "red.commands"),
        ("worker", "blue.commands"),
    ],
)
def test_writing_what_the_table_does_not_grant_is_refused(broker: RightsBroker, user: str, topic: str) -> None:
    producer = KafkaProducer(**client_arguments(broker.settings("red", user)), max_block_ms=10_000)
    with pytest.raises(KafkaError, match="Authorization"):
        producer.send(topic, b"{}").get(10)
    producer.close(timeout=1)


def test_a_feed_cannot_read_what_it_writes(broker: RightsBroker) -> None:
    place = TopicPartition("red.pods", 0)
    consumer = open_consumer(broker.settings("red", "feed-prod"), group_id=None)
    consumer.assign([place])
    consumer.seek(place, 0)
    with contextlib.closing(consumer), pytest.raises(TopicAuthorizationFailedError):
        _polled(consumer)


def test_an_observer_cannot_join_those_that_act(broker: RightsBroker) -> None:
    consumer = open_consumer(broker.settings("red", "observer-prod"), group_id="red-executor-prod")
    consumer.subscribe(["red.commands"])
    with contextlib.closing(consumer), pytest.raises(GroupAuthorizationFailedError):
        _polled(consumer)


def _polled(consumer: Any) -> list[Any]:
    return [consumer.poll(1_000) for _ in range(10)]
