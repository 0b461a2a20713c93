"""Events of audit logs, after `k8s.io/apiserver/pkg/apis/audit/v1/types.go`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from evictstream.kit.recordings import Entry, Skipped, WatchEnded, open_recordings
from evictstream.kit.recordings.entries import Item
from evictstream.models.instants import instant_text

Object = dict[str, Any]

GRACE_SECONDS = 30


def at(second: float) -> str:
    """An instant of the log."""
    return f"2026-11-21T10:{int(second) // 60:02}:{second % 60:09.6f}Z"


def pod(name: str = "p", version: int = 10, *, node: str | None = "n-1", uid: str | None = None, **more: Any) -> Object:
    """A pod as an answer holds it; `more` goes into its metadata."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "shop", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
        | more,
        "spec": {"terminationGracePeriodSeconds": GRACE_SECONDS} | ({} if node is None else {"nodeName": node}),
        "status": {"phase": "Running"},
    }


def node(name: str = "n-1", version: int = 10, **spec: Any) -> Object:
    """A node as an answer holds it."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def terminating(found: Object, version: int, grace: int = GRACE_SECONDS, **more: Any) -> Object:
    """The same object after its deletion was asked for."""
    metadata = {"resourceVersion": str(version), "deletionTimestamp": at(60), "deletionGracePeriodSeconds": grace}
    return found | {"metadata": found["metadata"] | metadata | more}


SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def event(
    second: float,
    verb: str,
    answer: Object | None = None,
    *,
    resource: str = "pods",
    subresource: str = "",
    request: Object | None = None,
    **changes: Any,
) -> Object:
    """A request that has succeeded; `changes` replace fields of the event."""
    name = "p" if resource == "pods" else "n-1"
    if answer is not None and "name" in answer["metadata"]:
        name = answer["metadata"]["name"]
    about = {"resource": resource, "namespace": "shop" if resource == "pods" else "", "name": name, "apiVersion": "v1"}
    found: Object = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": "0",
        "stage": "ResponseComplete",
        "requestURI": f"/api/v1/{resource}",
        "verb": verb,
        "user": {"username": "u"},
        "objectRef": about | ({"subresource": subresource} if subresource else {}),
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": at(max(0.0, second - 0.01)),
        "stageTimestamp": at(second),
    }
    if request is not None:
        found["requestObject"] = request
    if answer is not None:
        found["responseObject"] = answer
    return found | changes


def lines(*events: Object) -> bytes:
    """A log."""
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events)


Found = list[Item | WatchEnded]

UNBOUND = pod(node=None)
BINDING = {"metadata": {"name": "p", "uid": "uid-p"}, "target": {"kind": "Node", "name": "n-7"}}
EVICTION = {"kind": "Eviction", "metadata": {"name": "p", "namespace": "shop"}}
CREATED = event(1, "create", pod())
METADATA_ONLY = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def read(folder: Path, *logs: bytes) -> Found:
    """Write files, and read them together."""
    names = []
    for number, log in enumerate(logs):
        (folder / f"{number}.log").write_bytes(log)
        names.append(str(folder / f"{number}.log"))
    with open_recordings(names) as items:
        return list(items)


def told(found: Found) -> list[tuple[str, str, str, str]]:
    """Second, type, name, and `terminating`, the node, or nothing."""
    result = []
    for item in found:
        if isinstance(item, Entry):
            thing = json.loads(bytes(item.object))
            state = "terminating" if "deletionTimestamp" in thing["metadata"] else item.node_name
            result.append((instant_text(item.observed_at_us or 0)[17:21], item.type, thing["metadata"]["name"], state))
    return result


def left_out(found: Found) -> Counter[str]:
    """Lines by the reason for which they are left out."""
    return Counter(item.type for item in found if isinstance(item, Skipped))
