"""EvictionRequests of the fake API server, as Kubernetes 1.37 serves them: stored and checked, and acted on by nobody.

The API server compares a request with no pod. What it checks is the request itself, and that only intent and metadata
change afterwards. A request whose pod is its owner goes soon after the pod.
"""

from __future__ import annotations

import re
from typing import Any, Final

from evictstream.kit.conformance.fake_cluster import (
    EVICTION_REQUEST,
    EVICTION_REQUESTS,
    LIFECYCLE_VERSION,
    FakeCluster,
    stored_name,
)
from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest, Object, refusal
from evictstream.kit.conformance.fake_patches import patched

LIFECYCLE: Final = LIFECYCLE_VERSION.partition("/")[0]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_NAME: Final = 253
_KEPT: Final = ("labels", "annotations", "ownerReferences", "finalizers")
_INTENTS: Final = ("Eviction", "Withdrawn")

DISCOVERED: Final[Object] = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": LIFECYCLE_VERSION,
    "resources": [
        {
            "name": EVICTION_REQUESTS,
            "singularName": "evictionrequest",
            "namespaced": True,
            "kind": EVICTION_REQUEST,
            "verbs": ["create", "delete", "get", "list", "patch", "watch"],
        }
    ],
}
"""What the group's version says of itself while it is served."""


def create_request(api: FakeCluster, request: FakeRequest) -> tuple[FakeAnswer, str | None]:
    """Store a new request, with generation 1 and without a status."""
    body: Object = dict(request.body)
    meta: Object = dict(body.get("metadata") or {})
    name = str(meta.get("name", ""))
    problem = _problem(name, body.get("spec") or {})
    if problem:
        return _invalid(name, problem), None
    with api.changing():
        if (EVICTION_REQUEST, _key(request, name)) in api.objects:
            return _refused(
                409, f'{EVICTION_REQUESTS}.{LIFECYCLE} "{name}" already exists', name, "AlreadyExists"
            ), None
        kept: Object = {key: meta[key] for key in _KEPT if key in meta}
        kept["generation"] = 1
        stored = api.put(EVICTION_REQUEST, _key(request, name), metadata=kept, spec=body["spec"], status={})
    return FakeAnswer(201, _whole(stored)), None


def patch_request(api: FakeCluster, request: FakeRequest) -> tuple[FakeAnswer, str | None]:
    """Change intent and metadata of a request. A changed spec is another generation."""
    with api.changing():
        stored = _stored(api, request)
        if stored is None:
            return _missing(request.name), None
        after = patched(stored, request)
        if isinstance(after, FakeAnswer):
            return after, None
        unmet = _unmet(request.name, stored, after["metadata"])
        if unmet is not None:
            return unmet, None
        spec, before = after.get("spec") or {}, stored["spec"]
        problem = _problem(request.name, spec)
        for field in ("target", "requester"):
            if not problem and spec.get(field) != before[field]:
                problem = f"spec.{field}: Invalid value: field is immutable"
        if problem:
            return _invalid(request.name, problem), None
        meta = {key: after["metadata"].get(key) or {} for key in ("labels", "annotations")}
        meta["generation"] = stored["metadata"]["generation"] + (spec != before)
        if spec != before or any(meta[key] != (stored["metadata"].get(key) or {}) for key in ("labels", "annotations")):
            stored = api.put(EVICTION_REQUEST, _key(request), metadata=stored["metadata"] | meta, spec=spec)
        return FakeAnswer(200, _whole(stored)), None


def patch_request_status(api: FakeCluster, request: FakeRequest) -> tuple[FakeAnswer, str | None]:
    """Change the status of a request. What was observed does not decrease."""
    with api.changing():
        stored = _stored(api, request)
        if stored is None:
            return _missing(request.name), None
        after = patched(stored, request)
        if isinstance(after, FakeAnswer):
            return after, None
        status, before = after.get("status") or {}, stored.get("status") or {}
        if (status.get("observedGeneration") or 0) < (before.get("observedGeneration") or 0):
            return _invalid(request.name, "status.observedGeneration: Invalid value: cannot decrement"), None
        return FakeAnswer(200, _whole(api.put(EVICTION_REQUEST, _key(request), status=status))), None


def delete_request(api: FakeCluster, request: FakeRequest) -> tuple[FakeAnswer, str | None]:
    """Delete a request that is still as the preconditions say."""
    with api.changing():
        stored = _stored(api, request)
        if stored is None:
            return _missing(request.name), None
        unmet = _unmet(request.name, stored, request.body.get("preconditions") or {})
        if unmet is not None:
            return unmet, None
        api.remove(EVICTION_REQUEST, _key(request))
        uid = stored["metadata"]["uid"]
    about = {"name": request.name, "group": LIFECYCLE, "kind": EVICTION_REQUESTS, "uid": uid}
    done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about}
    return FakeAnswer(200, done), None


def _stored(api: FakeCluster, request: FakeRequest) -> Object | None:
    return api.objects.get((EVICTION_REQUEST, _key(request)))


def _key(request: FakeRequest, name: str = "") -> str:
    return stored_name(EVICTION_REQUEST, request.namespace, name or request.name)


def _whole(stored: Object) -> Object:
    return {"kind": EVICTION_REQUEST, "apiVersion": LIFECYCLE_VERSION, **stored}


def _problem(name: str, spec: Object) -> str:
    """Return what the API server objects to in a request, in short; empty if it takes it."""
    pod: Object = (spec.get("target") or {}).get("pod") or {}
    rules: list[tuple[bool, str]] = [
        (_is_name(name), "metadata.name: Invalid value: a lowercase RFC 1123 subdomain must consist of lower case"),
        (_is_name(pod.get("name")), "spec.target.pod.name: Invalid value"),
        (_matches(_UUID, pod.get("uid")), "spec.target.pod.uid: Invalid value: must be a lowercase UUID"),
        (_matches(_KEY, spec.get("requester")), "spec.requester: Invalid value: must be a domain-prefixed key"),
        (spec.get("intent") in _INTENTS, 'spec.intent: Unsupported value: supported values: "Eviction", "Withdrawn"'),
    ]
    return next((problem for is_met, problem in rules if not is_met), "")


def _is_name(text: Any) -> bool:
    return _matches(_NAME, text) and len(text) <= _LONGEST_NAME


def _matches(pattern: re.Pattern[str], text: Any) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def _unmet(name: str, stored: Object, wanted: Object) -> FakeAnswer | None:
    for field in ("uid", "resourceVersion"):
        is_ = stored["metadata"][field]
        if wanted.get(field, is_) != is_:
            what = f'Operation cannot be fulfilled on {EVICTION_REQUESTS}.{LIFECYCLE} "{name}"'
            return _refused(409, f"{what}: {field} in precondition: {wanted[field]}, in object meta: {is_}", name)
    return None


def _missing(name: str) -> FakeAnswer:
    return _refused(404, f'{EVICTION_REQUESTS}.{LIFECYCLE} "{name}" not found', name)


def _invalid(name: str, problem: str) -> FakeAnswer:
    return _refused(422, f'EvictionRequest.{LIFECYCLE} "{name}" is invalid: {problem}', name)


def _refused(status: int, message: str, name: str, reason: str = "") -> FakeAnswer:
    answer = refusal(status, message)
    details = {"name": name, "group": LIFECYCLE, "kind": EVICTION_REQUESTS}
    return answer._replace(body=answer.body | {"details": details} | ({"reason": reason} if reason else {}))
