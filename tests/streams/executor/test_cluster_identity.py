"""Nothing is written to a cluster that is not the one whose commands they are, whatever its name leads to."""

from __future__ import annotations

import json
import time

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.errors import ClusterChangedError
from evictstream.streams.executor import cluster_identity
from evictstream.streams.executor.cluster_identity import ClusterIdentity
from evictstream.streams.executor.eviction import ExecutorMode, PutOff
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.kubernetes import expected_cluster
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter, executing
from tests.harness.reading import TopicReader
from tests.models.execution.samples import command
from tests.streams.executor.conftest import command_now

pytestmark = pytest.mark.kafka

OTHER = "uid-of-another-cluster"


def feed(settings: Settings, uid: str) -> None:
    """Have the feed say which cluster has the name."""
    value = {"clusterUid": uid, "epoch": 0, "resourceVersion": 1}
    with open_producer(settings, delivery_seconds=30.0) as producer:
        producer.send(settings.feeds_topic, key=b"c1", value=json.dumps(value).encode(), partition=0)
        producer.flush()


@pytest.mark.parametrize(
    ("fed", "wanted", "found"),
    [
        pytest.param(None, None, None, id="for any cluster"),
        pytest.param(OTHER, "this", None, id="for this one"),
        pytest.param("this", OTHER, Outcome.OBSOLETE, id="for one whose place this one has taken"),
        pytest.param(OTHER, OTHER, "cluster waits", id="for the one that is fed, and another answers"),
        pytest.param(None, OTHER, "waits", id="for one of which nothing is known"),
    ],
)
def test_a_command_is_done_only_in_its_own_cluster(
    fed: str | None,
    wanted: str | None,
    found: Outcome | str | None,
    declared: Settings,
    api: FakeApi,
    connection: Connection,
) -> None:
    if fed is not None:
        feed(declared, api.uid if fed == "this" else fed)
    identity = ClusterIdentity("c1", api.uid, connection=connection, settings=declared)
    objection = identity.objection(command(cluster_uid=api.uid if wanted == "this" else wanted))

    if isinstance(objection, PutOff):
        assert found == ("cluster waits" if objection.is_of_cluster else "waits")
    else:
        assert found == (None if objection is None else objection.outcome)


def test_a_rebuilt_cluster_is_expected_once_it_is_fed(
    declared: Settings, api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_identity, "_LOOK_SECONDS", 0.0)
    identity = ClusterIdentity("c1", api.uid, connection=connection, settings=declared)
    identity.prove()
    api.uid = OTHER
    with pytest.raises(ClusterChangedError, match=OTHER):
        identity.prove()
    feed(declared, OTHER)
    identity.prove()


def test_another_cluster_is_served_once_it_is_fed(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expected_cluster, "IDENTITY_SECONDS", 0.1)
    monkeypatch.setattr(cluster_identity, "_LOOK_SECONDS", 0.2)
    monkeypatch.setattr(cluster_identity, "CREDENTIALS_SECONDS", 0.2)
    feed(declared, api.uid)
    order = ClusterOrder(name="c1", access=access, mode=ExecutorMode.DELETE)
    with executing(declared, [order], ExecutionOptions(group=f"{declared.application_id}-executor")):
        writer.write(command_now("a", cluster_uid=api.uid))
        results.wait_for(bool, "an answer")
        api.uid = OTHER
        time.sleep(0.2)  # until it asks again
        writer.write(command_now("b", cluster_uid=OTHER))
        assert len(results.quiet(2.0)) == 1
        assert {one.name for one in list(api.writes)} <= {"a", ""}
        feed(declared, OTHER)
        seen = results.wait_for(lambda seen: len(seen) > 1, "an answer once it is fed")
    assert [(one.value["pod"], one.value["outcome"]) for one in seen] == [("a", "Succeeded"), ("b", "Succeeded")]
