"""What the fake API server makes of each kind of request: one function for each, found by verb and resource."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from evictstream.kit.conformance.fake_cluster import EVICTION_REQUESTS, PLURALS, FakeCluster
from evictstream.kit.conformance.fake_eviction_requests import (
    LIFECYCLE,
    create_request,
    delete_request,
    patch_request,
    patch_request_status,
)
from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest, Object, refusal
from evictstream.kit.conformance.fake_patches import patched

AUTHORIZATION: Final = "authorization.k8s.io"
_EVENTS: Final = "events.k8s.io"
_MULTICLUSTER: Final = "multicluster.x-k8s.io"

Done = tuple[FakeAnswer, str | None]
"""The answer, and the UID of the pod that was changed."""


def answer(api: FakeCluster, request: FakeRequest) -> Done:
    """Do what is asked for, if it may be done."""
    if request.what in api.forbidden:
        return refusal(403, f"{request.resource} is forbidden: User cannot {request.verb} it"), None
    is_of_lifecycle = request.resource.partition("/")[0] == EVICTION_REQUESTS
    if is_of_lifecycle != (request.group == LIFECYCLE) or (is_of_lifecycle and not api.serves_requests):
        return refusal(404, "the server could not find the requested resource"), None
    if request.resource in PLURALS and request.verb in {"get", "list"}:
        kind = PLURALS[request.resource]
        return (api.get if request.verb == "get" else api.page)(kind, request), None
    if request.group == "" and request.what == "get namespaces":
        return _namespace(api, request), None
    respond = _BY_REQUEST.get((request.group, request.what))
    if respond is None:
        return refusal(405 if request.resource in PLURALS else 404, "the server does not know this request"), None
    return respond(api, request)


def _namespace(api: FakeCluster, request: FakeRequest) -> FakeAnswer:
    if request.name != "kube-system":
        return refusal(404, f'namespaces "{request.name}" not found')
    meta = {"uid": api.uid, "name": "kube-system", "resourceVersion": "1"}
    return FakeAnswer(200, {"kind": "Namespace", "apiVersion": "v1", "metadata": meta})


def _get_profile(api: FakeCluster, request: FakeRequest) -> Done:
    if request.version not in api.profile_versions:
        return FakeAnswer(404, {}, None, "404 page not found\n"), None
    profile = api.profiles.get(f"{request.namespace}/{request.name}")
    if profile is None:
        message = f'clusterprofiles.{_MULTICLUSTER} "{request.name}" not found'
        return refusal(404, message, about=request), None
    api_version = f"{_MULTICLUSTER}/{request.version}"
    return FakeAnswer(200, {"kind": "ClusterProfile", "apiVersion": api_version, **profile}), None


def _delete_pod(api: FakeCluster, request: FakeRequest) -> Done:
    options = dict(request.body)
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
    if "dryRun" in request.query:
        options["dryRun"] = [request.query["dryRun"]]
    return api.delete_pod(request, options)


def _evict_pod(api: FakeCluster, request: FakeRequest) -> Done:
    if request.body.get("apiVersion") != "policy/v1" or request.body.get("kind") != "Eviction":
        return refusal(400, "the body is no Eviction of policy/v1"), None
    options = dict(request.body.get("deleteOptions") or {})
    if "dryRun" in request.query:
        options["dryRun"] = [request.query["dryRun"]]
    answer, uid = api.delete_pod(request, options)
    if not answer.is_done:
        return answer, None
    return FakeAnswer(
        201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    ), uid


def _patch_pod_status(api: FakeCluster, request: FakeRequest) -> Done:
    return api.patch_pod_status(request)


def _create_event(api: FakeCluster, request: FakeRequest) -> Done:
    event: Object = dict(request.body)
    meta = dict(event.get("metadata") or {})
    name = meta.get("name") or f"{meta.get('generateName', '')}{uuid.uuid4().hex[:5]}"
    about = event.get("regarding" if request.group else "involvedObject") or {}
    problem = ""
    if about.get("namespace", "default") != request.namespace and about.get("namespace") is not None:
        problem = "the namespace of the object that it is about is another one"
    if request.group:
        required = ("eventTime", "reportingController", "reportingInstance", "action")
        problem = problem or next((f"{field}: Required value" for field in required if not event.get(field)), "")
    if problem:
        return refusal(422, f'Event "{name}" is invalid: {problem}'), None
    if name in api.events:
        return refusal(409, f'events "{name}" already exists'), None
    api.events[name] = event | {"metadata": meta | {"name": name, "namespace": request.namespace}}
    return FakeAnswer(201, api.events[name]), None


def _patch_event(api: FakeCluster, request: FakeRequest) -> Done:
    event = api.events.get(request.name)
    if event is None:
        return refusal(404, f'events "{request.name}" not found'), None
    after = patched(event, request)
    if isinstance(after, FakeAnswer):
        return after, None
    api.events[request.name] = after
    return FakeAnswer(200, after), None


def _review_access(api: FakeCluster, request: FakeRequest) -> Done:
    asked = (request.body.get("spec") or {}).get("resourceAttributes") or {}
    below = f"/{asked['subresource']}" if asked.get("subresource") else ""
    allowed = f"{asked.get('verb')} {asked.get('resource')}{below}" not in api.forbidden
    return FakeAnswer(201, {**request.body, "status": {"allowed": allowed}}), None


_BY_REQUEST: Final[dict[tuple[str, str], Callable[[FakeCluster, FakeRequest], Done]]] = {
    ("", "delete pods"): _delete_pod,
    ("", "create pods/eviction"): _evict_pod,
    ("", "patch pods/status"): _patch_pod_status,
    ("", "create events"): _create_event,
    ("", "patch events"): _patch_event,
    (_EVENTS, "create events"): _create_event,
    (_EVENTS, "patch events"): _patch_event,
    (LIFECYCLE, "create evictionrequests"): create_request,
    (LIFECYCLE, "patch evictionrequests"): patch_request,
    (LIFECYCLE, "patch evictionrequests/status"): patch_request_status,
    (LIFECYCLE, "delete evictionrequests"): delete_request,
    (_MULTICLUSTER, "get clusterprofiles"): _get_profile,
    (AUTHORIZATION, "create selfsubjectaccessreviews"): _review_access,
}
