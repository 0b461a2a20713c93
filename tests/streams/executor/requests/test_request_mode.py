"""The mode `request` between a real Kafka and a fake API server, in which a controller and a responder may act."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Object
from evictstream.models.execution.eviction_requests import request_key
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.errors import ApiNotServedError, ExitCode, MissingRightsError
from evictstream.streams.executor import cluster_check, open_requests
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader
from tests.models.steering.test_brakes import record
from tests.streams.executor import serving
from tests.streams.executor.requests.conftest import UIDS
from tests.streams.executor.serving import results_in, run, said, wait_for, wait_for_results

pytestmark = pytest.mark.kafka

LOOK_SECONDS = 0.05


def command(action: Action = Action.EVICT, pod: str = "a", **changes: Any) -> Any:
    return serving.command(action, pod, **({"pod_uid": UIDS[pod]} | changes))


def made(api: FakeApi, pod: str = "a") -> Object:
    """Return the request for a pod; empty without one."""
    found = api.objects.get(("EvictionRequest", "/".join(request_key(command(pod=pod)))))
    return found or {"metadata": {}, "spec": {}, "status": {}}


@contextlib.contextmanager
def controller(api: FakeApi, act: Callable[[Object], None] = lambda _: None) -> Iterator[None]:
    """Note each generation of each request, as a controller does; a responder acts on those that are wanted."""
    stopped = threading.Event()

    def work() -> None:
        while not stopped.wait(LOOK_SECONDS):
            for kind, name in list(api.objects):
                request = api.objects.get((kind, name))
                if kind != "EvictionRequest" or request is None:
                    continue
                generation = request["metadata"]["generation"]
                if request["status"].get("observedGeneration") != generation:
                    with api.changing():
                        if api.objects.get((kind, name)) is request:
                            api.put(kind, name, status={**request["status"], "observedGeneration": generation})
                if request["spec"]["intent"] == "Eviction":
                    act(request)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    stopped.set()
    thread.join()


def evicting(api: FakeApi) -> Callable[[Object], None]:
    def act(request: Object) -> None:
        pod = request["spec"]["target"]["pod"]["name"]
        if ("Pod", pod) in api.objects:
            api.remove("Pod", pod)

    return act


def test_what_a_responder_evicts_has_succeeded(
    declared: Settings, requested: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    with run(declared, access, ExecutorMode.REQUEST):
        writer.write(command())
        assert wait_for_results(results, 1) == [("a", 1, "Accepted")]
        with controller(requested, evicting(requested)):
            assert wait_for_results(results, 2) == [("a", 1, "Accepted"), ("a", 1, "Succeeded")]
        wait_for(lambda: not made(requested)["metadata"])
    assert not requested.removals("a")


@pytest.mark.parametrize(
    "later",
    [
        pytest.param({"action": Action.CANCEL}, id="cancel"),
        pytest.param({"action": Action.SCHEDULE, "revision": 2, "attempt": 0}, id="a later deadline"),
    ],
)
def test_a_request_ends_with_what_it_was_made_for(
    later: dict[str, Any],
    declared: Settings,
    requested: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
) -> None:
    with run(declared, access, ExecutorMode.REQUEST), controller(requested):
        writer.write(command(), command(pod="b"))
        wait_for_results(results, 2)
        writer.write(command(**later))
        assert ("a", 1, "Obsolete") in wait_for_results(results, 3)
        wait_for(lambda: not made(requested)["metadata"])
        assert made(requested, "b")["spec"]["intent"] == "Eviction"
    withdrawn = [write for write in requested.writes if write.what == "patch evictionrequests"]
    assert [write.name for write in withdrawn] == [command().eviction_id]


def test_a_cancel_during_a_restart_withdraws_the_request(
    declared: Settings, requested: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    with controller(requested):
        with run(declared, access, ExecutorMode.REQUEST):
            writer.write(command(), command(pod="b"))
            wait_for_results(results, 2)
        uid = made(requested, "b")["metadata"]["uid"]
        writer.write(command(Action.CANCEL))
        with run(declared, access, ExecutorMode.REQUEST):
            wait_for(lambda: not made(requested)["metadata"])
            wait_for(lambda: said(results.poll()).count(("b", 1, "Accepted")) >= 2)
            assert made(requested, "b")["metadata"]["uid"] == uid
            requested.remove("Pod", "b")
            wait_for(lambda: ("b", 1, "Succeeded") in said(results.poll()))


def test_the_next_attempt_goes_on_with_the_request(
    declared: Settings, requested: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    with run(declared, access, ExecutorMode.REQUEST), controller(requested):
        writer.write(command())
        wait_for_results(results, 1)
        uid = made(requested)["metadata"]["uid"]
        writer.write(command(attempt=2))
        found = wait_for_results(results, 3)
        assert found == [("a", 1, "Accepted"), ("a", 1, "Obsolete"), ("a", 2, "Accepted")]
        assert made(requested)["metadata"]["uid"] == uid
        assert made(requested)["spec"]["intent"] == "Eviction"


def test_it_is_accepted_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
    declared: Settings,
    requested: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
) -> None:
    monkeypatch.setattr(open_requests, "ACCEPTED_SECONDS", 0.2)
    with run(declared, access, ExecutorMode.REQUEST), controller(requested):
        writer.write(command())
        assert set(wait_for_results(results, 4)) == {("a", 1, "Accepted")}
    made_once = [write.what for write in requested.writes if "evictionrequests" in write.what]
    assert made_once == ["create evictionrequests"]


@pytest.mark.parametrize(
    "seconds", [pytest.param(None, id="for long"), pytest.param(30, id="for a moment", marks=pytest.mark.kit)]
)
def test_a_brake_withdraws_and_its_end_asks_again(
    seconds: int | None,
    declared: Settings,
    requested: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
) -> None:
    brakes = declared.brakes_topic
    with (
        open_producer(declared, delivery_seconds=30.0) as producer,
        run(declared, access, ExecutorMode.REQUEST),
        controller(requested),
    ):

        def brake(**fields: Any) -> None:
            producer.send(brakes, key=b"b1", value=record("b1", namespaces=["shop"], spreadSeconds=0, **fields)).get(30)

        writer.write(command())
        wait_for_results(results, 1)
        ends_us = None if seconds is None else time.time_ns() // 1_000 + seconds * SECOND_US
        brake(**({} if ends_us is None else {"endsAt": instant_text(ends_us)}))
        wait_for(lambda: not made(requested)["metadata"])
        assert ("Pod", "a") in requested.objects
        brake(releasedBy="anna")
        if seconds is None:
            held = results_in(results.poll())[-1].value
            assert (held["outcome"], held["heldBy"]) == ("Accepted", "b1")
            writer.write(command(attempt=2))
        wait_for(lambda: made(requested)["spec"].get("intent") == "Eviction")


def test_a_cluster_without_a_controller_is_told(
    monkeypatch: pytest.MonkeyPatch,
    declared: Settings,
    requested: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
) -> None:
    monkeypatch.setattr("evictstream.models.execution.eviction_requests.NOTICED_SECONDS", 0.5)
    monkeypatch.setattr(open_requests, "ACCEPTED_SECONDS", 0.2)
    settings = declared.model_copy(update={"health_port": free_port()})
    with run(settings, access, ExecutorMode.REQUEST):
        writer.write(command())
        wait_for(lambda: ("a", 1, "Failed") in said(results.poll()))
        assert "no controller acts" in ready(settings.health_port)["evictionRequests"]["c1"]
        wait_for(lambda: not made(requested)["metadata"])


def test_an_api_server_without_the_gate_is_refused(declared: Settings, access: ClusterAccess) -> None:
    with pytest.raises(ApiNotServedError) as raised, run(declared, access, ExecutorMode.REQUEST) as running:
        wait_for(lambda: running.failure is not None)
    assert raised.value.exit_code is ExitCode.FOUND_PROBLEM
    assert "does not serve lifecycle.k8s.io/v1alpha1" in str(raised.value)
    assert "--feature-gates=EvictionRequestAPI=true" in raised.value.next_step


def test_the_rights_of_the_mode_are_named(
    monkeypatch: pytest.MonkeyPatch, declared: Settings, requested: FakeApi, access: ClusterAccess
) -> None:
    monkeypatch.setattr(cluster_check, "RIGHTS_SECONDS", 0.0)
    requested.forbidden |= {"patch evictionrequests"}
    with pytest.raises(MissingRightsError, match="patch evictionrequests") as raised:  # noqa: SIM117
        with run(declared, access, ExecutorMode.REQUEST) as running:
            wait_for(lambda: running.failure is not None)
    assert "executor-request.yaml" in raised.value.next_step
