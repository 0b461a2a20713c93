"""The fake API server, over HTTP, as an executor and a feed of anyone speak with it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection, RemoteDisconnected
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.kit.conformance.fake_patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

POD = "/api/v1/namespaces/shop/pods/p"
CONDITION = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


class Client:
    """One connection that is kept; says what came back."""

    def __init__(self, api: FakeApi) -> None:
        self.connection = HTTPConnection(api.url.removeprefix("http://"), timeout=10)

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {k.replace("_", "-"): v for k, v in headers.items()})
        response = self.connection.getresponse()
        self.headers = response.headers
        return response.status, json.loads(response.read())


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        found.put("Node", "n", spec={"taints": [{"key": "k", "effect": "NoExecute"}]})
        found.put("Pod", "p", uid="u-1", spec={"nodeName": "n"})
        yield found


@pytest.fixture
def client(api: FakeApi) -> Iterator[Client]:
    found = Client(api)
    yield found
    found.connection.close()


def options(uid: str, **more: object) -> dict[str, object]:
    return {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}, **more}


def eviction(uid: str) -> dict[str, object]:
    return {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": {"name": "p", "namespace": "shop"},
        "deleteOptions": options(uid),
    }


def test_one_object_is_read(client: Client) -> None:
    assert client("GET", "/api/v1/nodes/n")[1]["spec"]["taints"][0]["key"] == "k"
    assert client("GET", POD)[1]["metadata"]["uid"] == "u-1"
    assert client("GET", "/api/v1/namespaces/other/pods/p")[0] == 404
    status, said = client("GET", "/api/v1/nodes/none")
    assert (status, said["reason"], said["kind"]) == (404, "NotFound", "Status")


def test_lists_are_by_namespace_and_field(api: FakeApi, client: Client) -> None:
    api.put("Pod", "q", spec={"nodeName": "m"}, metadata={"namespace": "other"})
    names = [one["metadata"]["name"] for one in client("GET", "/api/v1/namespaces/other/pods")[1]["items"]]
    assert names == ["q"]
    found = client("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn")[1]["items"]
    assert [one["metadata"]["name"] for one in found] == ["p"]
    found = client("GET", "/api/v1/pods?fieldSelector=spec.nodeName%21%3Dn")[1]["items"]
    assert [one["metadata"]["name"] for one in found] == ["q"]


def test_a_delete_with_another_uid_deletes_nothing(api: FakeApi, client: Client) -> None:
    status, said = client("DELETE", POD, options("u-0"))
    assert (status, said["reason"]) == (409, "Conflict")
    assert ("Pod", "p") in api.objects
    assert [(one.uid, one.done_to, one.status) for one in api.removals("p")] == [("u-0", None, 409)]


def test_a_delete_is_done_seen_and_logged(api: FakeApi, client: Client) -> None:
    version = api.version
    assert client("DELETE", POD, options("u-1"))[0] == 200
    assert client("DELETE", POD, options("u-1"))[0] == 404
    assert [(one.type, one.object["metadata"]["uid"]) for one in api.changes_after(version) or ()] == [
        ("DELETED", "u-1")
    ]
    assert [(one.what, one.uid, one.done_to) for one in api.removals("p")] == [
        ("delete pods", "u-1", "u-1"),
        ("delete pods", "u-1", None),
    ]


def test_a_pod_terminates_for_a_while(api: FakeApi, client: Client) -> None:
    api.termination_seconds = 0.2
    assert "deletionTimestamp" in client("DELETE", POD, options("u-1"))[1]["metadata"]
    status, said = client("GET", POD)
    assert (status, said["metadata"]["deletionGracePeriodSeconds"]) == (200, 30)
    assert client("DELETE", POD, options("u-1"))[0] == 200
    assert [one.done_to for one in api.removals("p")] == ["u-1", None]
    until = time.monotonic() + 10
    while client("GET", POD)[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_no_grace_ends_a_pod_at_once(api: FakeApi, client: Client) -> None:
    api.termination_seconds = 60
    client("DELETE", POD, options("u-1", gracePeriodSeconds=0))
    assert client("GET", POD)[0] == 404


def test_an_eviction_deletes_with_precondition(api: FakeApi, client: Client) -> None:
    assert client("POST", f"{POD}/eviction", eviction("u-0"))[0] == 409
    assert client("POST", f"{POD}/eviction", eviction("u-1"))[0] == 201
    assert client("POST", f"{POD}/eviction", eviction("u-1"))[0] == 404
    assert [one.done_to for one in api.removals("p")] == [None, "u-1", None]


def test_a_dry_run_changes_nothing(api: FakeApi, client: Client) -> None:
    assert client("DELETE", f"{POD}?dryRun=All", options("u-1"))[0] == 200
    assert client("POST", f"{POD}/eviction?dryRun=All", eviction("u-1"))[0] == 201
    assert [(one.is_dry_run, one.done_to) for one in api.removals("p")] == [(True, None), (True, None)]
    assert ("Pod", "p") in api.objects


def test_a_budget_refuses_an_eviction(api: FakeApi, client: Client) -> None:
    api.trouble = {"create pods/eviction p": [Fault(status=429, retry_after_seconds=7, cause="DisruptionBudget"), 500]}
    status, said = client("POST", f"{POD}/eviction", eviction("u-1"))
    assert (status, said["details"]["causes"][0]["reason"], client.headers["Retry-After"]) == (
        429,
        "DisruptionBudget",
        "7",
    )
    assert client("POST", f"{POD}/eviction", eviction("u-1"))[0] == 500
    assert client("POST", f"{POD}/eviction", eviction("u-1"))[0] == 201


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (STRATEGIC_PATCH, {"metadata": {"uid": "u-1"}, "status": {"conditions": [CONDITION]}}),
        (MERGE_PATCH, {"metadata": {"uid": "u-1"}, "status": {"conditions": [CONDITION]}}),
        (
            JSON_PATCH,
            [
                {"op": "test", "path": "/metadata/uid", "value": "u-1"},
                {"op": "add", "path": "/status/conditions", "value": []},
                {"op": "add", "path": "/status/conditions/-", "value": CONDITION},
            ],
        ),
    ],
)
def test_a_condition_is_patched_in(content_type: str, patch: object, api: FakeApi, client: Client) -> None:
    assert client("PATCH", f"{POD}/status", patch, Content_Type=content_type)[0] == 200
    pod = api.objects["Pod", "p"]
    assert pod["status"]["conditions"] == [CONDITION]
    assert pod["metadata"]["resourceVersion"] == str(api.version)
    assert [one.done_to for one in api.writes] == ["u-1"]


def test_a_patch_of_another_pod_is_refused(api: FakeApi, client: Client) -> None:
    patch: object = {"metadata": {"uid": "u-0"}, "status": {"conditions": [CONDITION]}}
    assert client("PATCH", f"{POD}/status", patch, Content_Type=STRATEGIC_PATCH)[0] == 409
    patch = [{"op": "test", "path": "/metadata/uid", "value": "u-0"}]
    assert client("PATCH", f"{POD}/status", patch, Content_Type=JSON_PATCH)[0] == 422
    assert "status" not in api.objects["Pod", "p"]


def test_other_conditions_stay_in_a_strategic_patch(api: FakeApi, client: Client) -> None:
    api.put("Pod", "p", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    client("PATCH", f"{POD}/status", {"status": {"conditions": [CONDITION]}}, Content_Type=STRATEGIC_PATCH)
    assert api.objects["Pod", "p"]["status"] == {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, CONDITION],
    }


def test_events_of_both_groups_are_kept(api: FakeApi, client: Client) -> None:
    core = {
        "metadata": {"name": "e-1"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "p"},
        "reason": "TaintManagerEviction",
        "count": 1,
    }
    path = "/api/v1/namespaces/shop/events"
    assert client("POST", path, core)[0] == 201
    assert client("POST", path, core)[0] == 409
    assert client("PATCH", f"{path}/e-1", {"count": 2}, Content_Type=MERGE_PATCH)[0] == 200
    assert api.events["e-1"]["count"] == 2
    path = "/apis/events.k8s.io/v1/namespaces/shop/events"
    new = {"metadata": {"generateName": "e-"}, "regarding": {"namespace": "shop"}, "action": "Evict"}
    assert client("POST", path, new)[0] == 422
    new |= {"eventTime": "2026-11-21T02:25:53.106412Z", "reportingController": "c", "reportingInstance": "i"}
    assert client("POST", path, new)[0] == 201


def test_what_is_forbidden_is_reviewed_and_refused(api: FakeApi, client: Client) -> None:
    api.forbidden = {"create pods/eviction"}

    def allowed(**asked: str) -> bool:
        body = {"spec": {"resourceAttributes": asked}}
        found = client("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)[1]["status"]["allowed"]
        assert isinstance(found, bool)
        return found

    assert allowed(verb="delete", resource="pods", group="")
    assert not allowed(verb="create", resource="pods", subresource="eviction", group="")
    assert client("POST", f"{POD}/eviction", eviction("u-1"))[0] == 403
    assert ("Pod", "p") in api.objects


@pytest.mark.parametrize(("cut", "is_done"), [("before", False), ("after", True)])
def test_a_connection_is_cut_around_a_write(cut: str, *, is_done: bool, api: FakeApi, client: Client) -> None:
    api.trouble = {"delete pods": [Fault(cut=cut)]}
    with pytest.raises(RemoteDisconnected):
        client("DELETE", POD, options("u-1"))
    assert (("Pod", "p") not in api.objects) == is_done
    assert [one.done_to for one in api.removals("p")] == ["u-1" if is_done else None]


def test_a_slow_answer_is_of_what_is_done(api: FakeApi, client: Client) -> None:
    api.trouble = {"delete pods": [Fault(delay_seconds=0.3)]}
    began = time.monotonic()
    assert client("DELETE", POD, options("u-1"))[0] == 200
    assert time.monotonic() - began >= 0.3


def test_another_token_is_refused_until_it_is_the_right_one(api: FakeApi, client: Client) -> None:
    api.token = "new"
    assert client("GET", POD, Authorization="Bearer old")[0] == 401
    assert client("DELETE", POD, options("u-1"), Authorization="Bearer old")[0] == 401
    assert client("GET", POD, Authorization="Bearer new")[0] == 200
    assert not api.writes


def test_a_watch_without_version_begins_with_what_is_there(api: FakeApi, client: Client) -> None:
    client.connection.request("GET", "/api/v1/pods?watch=true&timeoutSeconds=1&allowWatchBookmarks=true")
    lines = client.connection.getresponse().read().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(one["type"], one["object"]["kind"]) for one in found] == [("ADDED", "Pod")]


@pytest.mark.parametrize("sent", ["", "bookmark", "stuck"])
def test_a_quiet_watch_gets_a_bookmark_of_what_is_news(sent: str, api: FakeApi, client: Client) -> None:
    api.bookmark_lead_seconds = 0.5
    begin = api.version
    if sent == "stuck":
        api.stuck["pods"] = begin
    if sent:
        api.put("Node", "n")
    query = f"watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={begin}"
    client.connection.request("GET", f"/api/v1/pods?{query}")
    found = [json.loads(line) for line in client.connection.getresponse().read().splitlines()]
    assert [one["type"] for one in found] == (["BOOKMARK"] if sent == "bookmark" else [])
    assert all(one["object"]["metadata"]["resourceVersion"] == str(api.version) for one in found)


def test_a_page_that_is_asked_for_too_late_is_gone(api: FakeApi, client: Client) -> None:
    api.put("Pod", "q", spec={"nodeName": "n"})
    at = client("GET", "/api/v1/pods?limit=2&continue=")[1]
    assert "continue" not in at["metadata"]
    assert client("GET", "/api/v1/pods?limit=2&continue=5:none/2")[0] == 410


def test_it_says_what_it_serves(client: Client) -> None:
    """Each resource is under the group and version that discovery names."""
    assert client("GET", "/version")[1]["minor"] == "34"
    versions = ["/api/" + name for name in client("GET", "/api")[1]["versions"]]
    versions += ["/apis/" + one["versions"][0]["groupVersion"] for one in client("GET", "/apis")[1]["groups"]]
    found: dict[tuple[str, str], Any] = {}
    for path in versions:
        status, listed = client("GET", path)
        assert (status, listed["kind"]) == (200, "APIResourceList")
        found |= {(path, one["name"]): one for one in listed["resources"]}
    assert found["/api/v1", "pods"]["namespaced"]
    assert found["/api/v1", "pods/eviction"]["group"] == "policy"
    assert ("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews") in found
    assert client("GET", "/api/v1/nodes/n")[1]["kind"] == found["/api/v1", "nodes"]["kind"]


def test_what_it_does_not_know_is_refused(client: Client) -> None:
    assert client("GET", "/apis/apps/v1/deployments")[0] == 404
    assert client("PUT", POD, {})[0] == 405
    assert client("PATCH", f"{POD}/status", {}, Content_Type="application/apply-patch+yaml")[0] == 415
