"""What the fake API server says of itself, for clients that ask before they use it (controller-runtime, kubectl)."""

from __future__ import annotations

from typing import Final

from evictstream.kit.conformance.fake_faults import Object

_SERVED: Final[dict[str, dict[str, tuple[str, bool, list[str]]]]] = {
    "v1": {
        "nodes": ("Node", False, ["get", "list", "watch"]),
        "pods": ("Pod", True, ["delete", "get", "list", "watch"]),
        "pods/status": ("Pod", True, ["patch"]),
        "pods/eviction": ("Eviction", True, ["create"]),
        "events": ("Event", True, ["create", "patch"]),
        "namespaces": ("Namespace", False, ["get"]),
    },
    "policy/v1": {},
    "events.k8s.io/v1": {"events": ("Event", True, ["create", "patch"])},
    "authorization.k8s.io/v1": {"selfsubjectaccessreviews": ("SelfSubjectAccessReview", False, ["create"])},
}
"""By version of a group: each resource's kind, whether it is in namespaces, and its verbs."""


def _resources(version: str) -> Object:
    resources = [
        {"name": name, "singularName": "", "namespaced": is_in_namespaces, "kind": kind, "verbs": verbs}
        for name, (kind, is_in_namespaces, verbs) in _SERVED[version].items()
    ]
    for one in resources:
        if one["name"] == "pods/eviction":
            one |= {"group": "policy", "version": "v1"}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _group(version: str) -> Object:
    served = {"groupVersion": version, "version": version.partition("/")[2]}
    return {"name": version.partition("/")[0], "versions": [served], "preferredVersion": served}


DISCOVERY: Final[dict[str, Object]] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0", "platform": "evictstream/conformance"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": _resources("v1"),
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(version) for version in _SERVED if "/" in version],
    },
    **{f"/apis/{version}": _resources(version) for version in _SERVED if "/" in version},
}
"""By path."""
