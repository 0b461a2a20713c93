"""One eviction against an API server that misbehaves: the right pod, the right answer."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault, deep
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor import eviction, node_looks
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor, PutOff
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection
from tests.models.execution.samples import T0_US, command
from tests.streams.executor.braking import unbraked
from tests.streams.executor.conftest import TAINTED


def evictor(connection: Connection, mode: ExecutorMode = ExecutorMode.DELETE, **changes: Any) -> PodEvictor:
    return evictor_of(PodRequests(connection), mode, **changes)


def evictor_of(requests: PodRequests, mode: ExecutorMode = ExecutorMode.DELETE, **changes: Any) -> PodEvictor:
    looks = NodeLooks(requests, lists=mode is not ExecutorMode.EVICT)
    return PodEvictor(requests=requests, looks=looks, mode=mode, **({"brakes": unbraked()} | changes))


def outcome(found: CommandAnswer | PutOff) -> Outcome | None:
    return found.outcome if isinstance(found, CommandAnswer) else None


def deleted(api: FakeApi) -> list[str]:
    return [name for name in ("a", "b", "c") if ("Pod", name) not in api.objects]


@pytest.mark.parametrize(
    ("mode", "says", "gone"),
    [
        pytest.param(ExecutorMode.OBSERVE, Outcome.OBSERVED, [], id="observe"),
        pytest.param(ExecutorMode.DELETE, Outcome.SUCCEEDED, ["a"], id="delete"),
        pytest.param(ExecutorMode.EVICT, Outcome.SUCCEEDED, ["a"], id="evict"),
    ],
)
def test_each_mode_does_what_it_says(
    api: FakeApi, connection: Connection, mode: ExecutorMode, says: Outcome, gone: list[str]
) -> None:
    assert outcome(evictor(connection, mode).evict(command(), 0)) is says
    assert deleted(api) == gone
    assert not [write for write in api.writes if mode is ExecutorMode.OBSERVE]


def test_a_pod_is_marked_before_it_is_deleted(api: FakeApi, connection: Connection) -> None:
    api.termination_seconds = 60.0
    evictor(connection).evict(command(), 0)

    conditions = api.objects["Pod", "a"]["status"]["conditions"]
    assert [(one["type"], one["reason"]) for one in conditions] == [("DisruptionTarget", "DeletionByTaintManager")]
    assert "deletionTimestamp" in api.objects["Pod", "a"]["metadata"]


@pytest.mark.parametrize("mode", [ExecutorMode.DELETE, ExecutorMode.EVICT])
def test_another_pod_of_the_name_stays(api: FakeApi, connection: Connection, mode: ExecutorMode) -> None:
    api.remove("Pod", "a")
    api.put("Pod", "a", uid="uid-later", spec={"nodeName": "n-1"})

    assert outcome(evictor(connection, mode).evict(command(), 0)) is Outcome.GONE
    assert deleted(api) == []


class ChangingRequests(PodRequests):
    """Changes the pod right after each look, as another client of the API server would."""

    def __init__(self, connection: Connection, api: FakeApi, changes: list[dict[str, Any]]) -> None:
        super().__init__(connection)
        self._api = api
        self._changes = changes

    def pod(self, command: Any) -> Any:
        found = super().pod(command)
        if self._changes:
            self._api.put("Pod", "a", **self._changes.pop(0))
        return found


def test_a_toleration_between_look_and_delete_saves_the_pod(api: FakeApi, connection: Connection) -> None:
    tolerant = {"spec": {"nodeName": "n-1", "tolerations": [{"operator": "Exists"}]}}
    found = evictor_of(ChangingRequests(connection, api, [tolerant])).evict(command(), 0)

    assert outcome(found) is Outcome.OBSOLETE
    assert deleted(api) == []


class FrozenRequests(PodRequests):
    """Stands still right after its first look at a node, while the taint goes."""

    def __init__(self, connection: Connection, api: FakeApi) -> None:
        super().__init__(connection)
        self._api = api
        self._is_first = True

    def node(self, command: Any) -> Any:
        found = super().node(command)
        if self._is_first:
            self._is_first = False
            self._api.put("Node", "n-1", spec={})
            time.sleep(0.2)  # the fault itself
        return found


def test_a_look_of_before_a_freeze_does_not_count(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "OLDEST_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(node_looks, "NODE_FRESH_SECONDS", 0.1)
    late = evictor_of(FrozenRequests(connection, api))

    assert outcome(late.evict(command(), 0)) is Outcome.OBSOLETE
    assert not api.writes


@pytest.mark.parametrize("mode", [ExecutorMode.DELETE, ExecutorMode.EVICT])
def test_a_look_of_before_new_credentials_does_not_count(
    mode: ExecutorMode, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write is answered with 401; while a plugin takes its time, the node's taint is removed."""
    monkeypatch.setattr(eviction, "OLDEST_LOOK_SECONDS", 1.0)
    config, plugin = json.loads(api.kubeconfig()), tmp_path / "plugin.sh"
    version = "client.authentication.k8s.io/v1"
    shown = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "t"}}
    plugin.write_text(f"#!/bin/sh\n[ -e {tmp_path}/slow ] && sleep 1.2\necho '{json.dumps(shown)}'\n")
    plugin.chmod(0o755)
    config["users"][0]["user"] = {"exec": {"apiVersion": version, "command": str(plugin)}}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    connection = Connection(ClusterAccess(kubeconfig=str(tmp_path / "kubeconfig")))
    connection.get("/api/v1/nodes")
    (tmp_path / "slow").touch()
    api.trouble |= {"patch pods/status": [401], "create pods/eviction": [401]}
    threading.Timer(0.6, lambda: api.put("Node", "n-1", spec={})).start()

    assert outcome(evictor(connection, mode).evict(command(), 0)) is Outcome.OBSOLETE
    assert [write.status for write in api.writes] == [401]


@pytest.mark.parametrize("hours", [-1.0, 1.0])
def test_times_of_the_api_server_change_nothing(api: FakeApi, connection: Connection, hours: float) -> None:
    at = instant_text(time.time_ns() // 1_000 + int(hours * 3_600_000_000))
    api.put("Node", "n-1", spec={"taints": [TAINTED["taints"][0] | {"timeAdded": at}]})
    api.put("Pod", "a", metadata={"creationTimestamp": at}, status={"phase": "Running", "startTime": at})

    assert outcome(evictor(connection).evict(command(), 0)) is Outcome.SUCCEEDED


@pytest.mark.parametrize("hours", [-1.0, 1.0])
def test_a_clock_that_is_off_lets_what_is_due_leave(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """Also where the pod's toleration was prolonged, but not beyond the moment at which the command was issued."""
    now_us, toleration = (
        time.time_ns() // 1_000,
        Toleration(key="maintenance", operator="Exists", toleration_seconds=60),
    )
    off = SimpleNamespace(time_ns=lambda: time.time_ns() + int(hours * 3.6e12), monotonic=time.monotonic)
    monkeypatch.setattr(eviction, "time", off)
    longer = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 90}
    api.put("Pod", "a", spec={"nodeName": "n-1", "tolerations": [longer]})
    due = command(toleration=toleration, deadline=instant_text(now_us - 31_000_000), issued_at=instant_text(now_us))

    assert outcome(evictor(connection).evict(due, 0)) is Outcome.SUCCEEDED


def test_a_pod_that_never_rests_is_failed(api: FakeApi, connection: Connection) -> None:
    changes = [{"status": {"phase": "Running", "startTime": str(number)}} for number in range(9)]
    found = evictor_of(ChangingRequests(connection, api, changes)).evict(command(), 0)

    assert outcome(found) is Outcome.FAILED
    assert deleted(api) == []


OVERLOADED = Fault(status=429, retry_after_seconds=1)
PAGE = Fault(status=404, text="default backend - 404")
DENIED = 'admission webhook "machines.example.com" denied the request: eviction has triggered evacuation of the machine'


@pytest.mark.parametrize(
    ("mode", "place", "fault", "follows"),
    [
        pytest.param(ExecutorMode.DELETE, "delete pods", 404, Outcome.GONE, id="delete 404"),
        pytest.param(ExecutorMode.DELETE, "delete pods", 403, Outcome.REFUSED, id="delete 403"),
        pytest.param(ExecutorMode.DELETE, "delete pods", 422, Outcome.FAILED, id="delete 422"),
        pytest.param(ExecutorMode.DELETE, "delete pods", 500, "put off", id="delete 500"),
        pytest.param(ExecutorMode.DELETE, "delete pods", 429, "put off", id="delete 429"),
        pytest.param(ExecutorMode.DELETE, "delete pods", OVERLOADED, "cluster put off", id="an overloaded server"),
        pytest.param(ExecutorMode.DELETE, "patch pods/status", 403, Outcome.REFUSED, id="mark 403"),
        pytest.param(ExecutorMode.DELETE, "get pods", 503, "put off", id="look 503"),
        pytest.param(ExecutorMode.DELETE, "get nodes", 403, Outcome.REFUSED, id="look at the node 403"),
        pytest.param(ExecutorMode.DELETE, "get pods", Fault(cut="middle"), "cluster put off", id="half an answer"),
        pytest.param(
            ExecutorMode.DELETE, "delete pods", Fault(cut="before"), "cluster put off", id="cut before the delete"
        ),
        pytest.param(ExecutorMode.EVICT, "create pods/eviction", 403, Outcome.REFUSED, id="evict 403"),
        pytest.param(
            ExecutorMode.EVICT,
            "create pods/eviction",
            Fault(status=429, cause="DisruptionBudget", retry_after_seconds=7),
            "put off",
            id="a disruption budget",
        ),
        pytest.param(
            ExecutorMode.EVICT,
            "create pods/eviction",
            Fault(status=403, cause="DisruptionBudget"),
            "put off",
            id="a disruption budget whose status cannot be used",
        ),
        pytest.param(ExecutorMode.EVICT, "create pods/eviction", 500, "put off", id="several disruption budgets"),
        pytest.param(ExecutorMode.EVICT, "create pods/eviction", 404, Outcome.GONE, id="evict 404"),
        pytest.param(ExecutorMode.DELETE, "get pods", PAGE, "put off", id="a proxy's 404"),
        pytest.param(ExecutorMode.DELETE, "get nodes", PAGE, "put off", id="a proxy's 404 to the node"),
        pytest.param(ExecutorMode.DELETE, "delete pods", PAGE, "put off", id="a proxy's 404 to the delete"),
        pytest.param(ExecutorMode.DELETE, "delete pods", Fault(status=200, text="ok"), "put off", id="a page with 200"),
        pytest.param(
            ExecutorMode.EVICT, "create pods/eviction", Fault(status=429, message=DENIED), "put off", id="webhook 429"
        ),
    ],
)
def test_what_the_api_server_answers(
    api: FakeApi, connection: Connection, mode: ExecutorMode, place: str, fault: int | Fault, follows: Outcome | str
) -> None:
    api.trouble[place] = [fault]
    found = evictor(connection, mode).evict(command(), 0)

    if isinstance(found, PutOff):
        assert ("cluster " if found.is_of_cluster else "") + "put off" == follows
    else:
        assert found.outcome == follows
    assert deleted(api) == []


def test_a_delete_whose_answer_was_lost_is_found_done(api: FakeApi, connection: Connection) -> None:
    api.trouble["delete pods"] = [Fault(cut="after")]

    assert isinstance(evictor(connection).evict(command(), 0), PutOff)
    assert outcome(evictor(connection).evict(command(), 1)) is Outcome.GONE


def test_a_budget_names_its_own_pause(api: FakeApi, connection: Connection) -> None:
    api.trouble["create pods/eviction"] = [Fault(status=429, cause="DisruptionBudget", retry_after_seconds=7)]
    found = evictor(connection, ExecutorMode.EVICT).evict(command(), 0)

    assert isinstance(found, PutOff)
    assert found.seconds == 7

    api.trouble["create pods/eviction"] = [Fault(status=403, cause="DisruptionBudget")]
    unusable = evictor(connection, ExecutorMode.EVICT).evict(command(), 0)
    assert isinstance(unusable, PutOff)
    assert unusable.seconds == eviction.BUDGET_SECONDS


@pytest.mark.parametrize(
    ("cause", "seconds"), [pytest.param("DisruptionBudget", 600, id="one"), pytest.param("", 30, id="the cluster")]
)
def test_a_pause_that_a_server_asks_for_has_a_limit(
    api: FakeApi, connection: Connection, cause: str, seconds: float
) -> None:
    api.trouble["create pods/eviction"] = [Fault(status=429, cause=cause, retry_after_seconds=10**400)]
    found = evictor(connection, ExecutorMode.EVICT).evict(command(), 0)

    assert isinstance(found, PutOff)
    assert found.seconds == seconds


@pytest.mark.parametrize("tries", [6, 1_000_000])
def test_pauses_grow_to_their_limit_and_no_further(api: FakeApi, connection: Connection, tries: int) -> None:
    api.trouble["get pods"] = [500]
    found = evictor(connection).evict(command(), tries)

    assert isinstance(found, PutOff)
    assert found.seconds == 30


def test_a_webhook_that_refuses_is_quoted_in_short(api: FakeApi, connection: Connection) -> None:
    said = 'admission webhook "guard.example.com" denied the request: ' + "no" * 500_000
    api.trouble["delete pods"] = [Fault(status=403, message=said)]
    found = evictor(connection).evict(command(), 0)

    assert isinstance(found, CommandAnswer)
    assert found.outcome is Outcome.REFUSED
    assert "guard.example.com" in found.reason
    assert len(found.reason) < 2_000


def test_after_the_latest_time_a_budget_is_overruled(api: FakeApi, connection: Connection) -> None:
    api.trouble["create pods/eviction"] = [Fault(status=429, cause="DisruptionBudget")] * 2
    patient = evictor(connection, ExecutorMode.EVICT, delete_after_seconds=60.0)
    overdue = command(deadline=instant_text(T0_US))

    assert isinstance(patient.evict(overdue, 0, time.monotonic() - 50), PutOff), (
        "first seen lately: a clock may be ahead"
    )
    assert outcome(patient.evict(overdue, 0, time.monotonic() - 61)) is Outcome.SUCCEEDED
    assert deleted(api) == ["a"]


@pytest.mark.parametrize("own_seconds", [None, 5.0, 3_600.0])
def test_a_policys_patience_replaces_the_executors_own(
    api: FakeApi, connection: Connection, own_seconds: float | None
) -> None:
    api.trouble["create pods/eviction"] = [Fault(status=429, cause="DisruptionBudget")] * 2
    patient = evictor(connection, ExecutorMode.EVICT, delete_after_seconds=own_seconds)
    overdue = command(deadline=instant_text(T0_US), delete_after=instant_text(T0_US + 60 * SECOND_US))

    assert isinstance(patient.evict(overdue, 0, time.monotonic() - 50), PutOff)
    assert deleted(api) == []
    assert outcome(patient.evict(overdue, 0, time.monotonic() - 61)) is Outcome.SUCCEEDED


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2fb", "../nodes/n-1"])
def test_a_name_that_is_another_path_is_refused(api: FakeApi, connection: Connection, name: str) -> None:
    assert outcome(evictor(connection).evict(command(pod=name), 0)) is Outcome.REFUSED
    assert outcome(evictor(connection).evict(command(namespace=name), 0)) is Outcome.REFUSED
    assert not api.requests


def test_pods_of_a_node_share_a_look_at_it(api: FakeApi, connection: Connection) -> None:
    one = evictor(connection)
    one.evict(command(pod="a"), 0)
    api.trouble["get nodes"] = [403, 403]
    for letter in "bc":
        one.evict(command(pod=letter), 0)

    assert deleted(api) == ["a", "b", "c"]


def test_another_cluster_at_the_address_gets_no_write(api: FakeApi, connection: Connection) -> None:
    connection.expect_cluster(api.uid)
    one = evictor(connection)
    assert outcome(one.evict(command(pod="a"), 0)) is Outcome.SUCCEEDED
    api.uid = "another"
    api.trouble["get pods"] = ["cut"]  # the connection ends, and the next one leads elsewhere
    for _ in range(2):
        found = one.evict(command(pod="b"), 0)
        assert isinstance(found, PutOff)
        assert found.is_of_cluster
    assert deleted(api) == ["a"]


@pytest.mark.parametrize("levels", [990, 1_500, 9_995])
def test_a_pod_too_deep_for_a_decoder_is_evicted(api: FakeApi, connection: Connection, levels: int) -> None:
    for kind, name in (("Pod", "a"), ("Node", "n-1")):
        api.put(kind, name, metadata={"managedFields": [{"fieldsV1": deep(levels)}]})
    assert outcome(evictor(connection).evict(command(), 0)) is Outcome.SUCCEEDED
    assert deleted(api) == ["a"]


def test_one_pod_with_doubtful_answers_holds_up_no_other(api: FakeApi, connection: Connection) -> None:
    """Alone it may be the cluster's trouble, for a second; once another pod got its answer it is its own."""
    api.trouble["delete pods a"] = [Fault(status=429, text="blocked")] * 3
    one = evictor(connection)
    first = one.evict(command(pod="a"), 5)
    assert isinstance(first, PutOff)
    assert (first.seconds, first.cluster_seconds) == (30, eviction.ALONE_SECONDS)
    assert outcome(one.evict(command(pod="b"), 0)) is Outcome.SUCCEEDED
    second = one.evict(command(pod="a"), 6)
    assert isinstance(second, PutOff)
    assert second.cluster_seconds == 0


def test_two_pods_with_doubtful_answers_hold_up_all(api: FakeApi, connection: Connection) -> None:
    one = evictor(connection)
    for name, is_of_cluster in (("a", False), ("b", True), ("a", True)):
        api.trouble["get pods"] = [PAGE]
        api.trouble["list pods"] = [PAGE]
        found = one.evict(command(pod=name), 5)
        assert isinstance(found, PutOff)
        assert found.is_of_cluster is is_of_cluster
        assert found.cluster_seconds == (30 if is_of_cluster else eviction.ALONE_SECONDS)


def test_retry_after_of_a_read_is_kept(api: FakeApi, connection: Connection) -> None:
    api.trouble["get pods"] = [Fault(status=429, retry_after_seconds=7), Fault(status=503, retry_after_seconds=9)]
    one = evictor(connection)
    for seconds in (7, 9):
        found = one.evict(command(), 0)
        assert isinstance(found, PutOff)
        assert found.seconds == seconds
