"""Nodes and pods with one resource version for all, and what happens to them: lists, watches, deletes, patches.

It keeps what counts of a real API server: lists in pages of one version, watches that begin at a version, 410 for
versions that are forgotten, UIDs as preconditions, pods that terminate for a while. Names are unique over namespaces,
except those of EvictionRequests.
"""

from __future__ import annotations

import bisect
import contextlib
import copy
import heapq
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest, Object, refusal
from evictstream.kit.conformance.fake_patches import patched

NAMESPACE: Final = "shop"
"""Of all pods that are put without another one."""

GRACE_SECONDS: Final = 30
"""Kubernetes' own default for `terminationGracePeriodSeconds`."""

LISTINGS_KEPT: Final = 64
"""Lists whose next page may still be asked for; older ones have expired, as they do after some minutes."""

EVICTION_REQUEST: Final = "EvictionRequest"
EVICTION_REQUESTS: Final = "evictionrequests"
LIFECYCLE_VERSION: Final = "lifecycle.k8s.io/v1alpha1"

PLURALS: Final = {"nodes": "Node", "pods": "Pod", EVICTION_REQUESTS: EVICTION_REQUEST}

_COLLECTED_SECONDS: Final = 0.3
"""How long an EvictionRequest outlasts the pod that owns it: what a real garbage collector took."""


class WatchedChange(NamedTuple):
    """A change as watches see it."""

    version: int
    kind: str
    type: str
    object: Object


class FakeCluster:
    """The objects, from several threads.

    Attributes:
        uid: of the namespace `kube-system`.
        version: the newest resource version.
        objects: by kind and name, EvictionRequests by `stored_name`. Change them by `put` and `remove`.
        events: by name, as they were created and patched.
        forbidden: `delete pods` and the like: an access review says no, and so does the request itself.
        termination_seconds: how long a deleted pod terminates; None: it is gone at once.
        serves_requests: whether it serves EvictionRequests, as with the gate `EvictionRequestAPI`.
        profiles: ClusterProfiles by `<namespace>/<name>`, without kind and version.
        profile_versions: versions in which it serves them; none without their definition.
    """

    def __init__(self) -> None:
        self.uid = str(uuid.uuid4())
        self.version = 100
        self.objects: dict[tuple[str, str], Object] = {}
        self.events: dict[str, Object] = {}
        self.forbidden: set[str] = set()
        self.termination_seconds: float | None = None
        self.serves_requests = False
        self.profiles: dict[str, Object] = {}
        self.profile_versions: set[str] = set()
        self._changes: list[WatchedChange] = []
        self._oldest = 0
        self._changed = threading.Condition(threading.RLock())
        self._listings: OrderedDict[str, list[Object]] = OrderedDict()
        self._unowned: dict[str, float] = {}  # by name of a request: when its pod was first seen to be gone
        self._ends: list[tuple[float, str, str]] = []  # when, name and UID of pods that terminate

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Let nothing else change meanwhile."""
        with self._changed:
            yield

    def put(self, kind: str, name: str, *, uid: str | None = None, **parts: Object) -> Object:
        """Add an object, or change the one of this name, as in `objects`; returns it."""
        with self._changed:
            stored = self.objects.get((kind, name))
            before: Object = stored if stored is not None and uid is None else {}
            meta: Object = {"name": name, "uid": uid or str(uuid.uuid4())} | before.get("metadata", {})
            if kind == EVICTION_REQUEST:
                meta["namespace"], _, meta["name"] = name.partition("/")
            if kind == "Pod":
                meta.setdefault("namespace", NAMESPACE)
            merged = {**before, **parts, "metadata": meta | parts.get("metadata", {})}
            return self._change(kind, "MODIFIED" if stored else "ADDED", merged)

    def remove(self, kind: str, name: str) -> None:
        """End an object, as if its finalizers and its kubelet were done."""
        with self._changed:
            self._change(kind, "DELETED", self.objects.pop((kind, name)))

    def forget_history(self) -> None:
        """Compact: watches can begin only at the newest version."""
        with self._changed:
            self._changes.clear()
            self._oldest = self.version

    def rebuild(self, *, uid: str | None = None, version: int = 1) -> None:
        """Go back: another cluster answers, or with the same UID etcd was restored; its objects must be put again."""
        with self._changed:
            self.uid = uid or self.uid
            self.version = self._oldest = version
            self.objects.clear()
            self._changes.clear()
            self._changed.notify_all()

    def get(self, kind: str, request: FakeRequest) -> FakeAnswer:
        """Answer with one object."""
        with self._changed:
            stored = self._stored(kind, request)
        return _not_found(request) if stored is None else FakeAnswer(200, head(kind) | stored)

    def page(self, kind: str, request: FakeRequest) -> FakeAnswer:
        """Answer with a page of a list; all its pages are of the version of the first."""
        query = request.query
        with self._changed:
            at, _, place = query.get("continue", "").partition("/")
            if not at:
                at = f"{self.version}:{uuid.uuid4().hex}"
                self._listings[at] = [one for (of, _), one in sorted(self.objects.items()) if of == kind]
                if len(self._listings) > LISTINGS_KEPT:
                    self._listings.popitem(last=False)
            items = self._listings.get(at)
        if items is None:
            return refusal(410, "The provided continue parameter is too old")
        items = [item for item in items if is_selected(item, request)]
        begin = int(place or 0)
        end = begin + (int(query.get("limit", "0") or 0) or len(items))
        meta = {"resourceVersion": at.partition(":")[0]} | ({"continue": f"{at}/{end}"} if end < len(items) else {})
        return FakeAnswer(200, head(kind) | {"kind": f"{kind}List", "metadata": meta, "items": items[begin:end]})

    def changes_after(self, version: int) -> list[WatchedChange] | None:
        """List changes of all kinds; None if some of them are forgotten, or lie ahead."""
        with self._changed:
            if version < self._oldest or version > self.version:
                return None
            return self._changes[bisect.bisect_right(self._changes, version, key=lambda one: one.version) :]

    def quiet_version(self, version: int) -> int:
        """Return the newest version if no node and no pod has changed since this one; else this one."""
        with self._changed:
            is_quiet = not self._changes or self._changes[-1].version <= version
            return max(version, self.version) if is_quiet else version

    def wait_for_change(self, version: int, seconds: float) -> None:
        """Return when there is something newer than this version, or after so long."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, seconds)

    def delete_pod(self, request: FakeRequest, options: Object) -> tuple[FakeAnswer, str | None]:
        """Delete a pod as `DeleteOptions` say; gives the answer, and the UID of the pod that is gone or terminates."""
        with self._changed:
            pod = self._stored("Pod", request)
            if pod is None:
                return _not_found(request), None
            problem = _unmet(request, pod, options.get("preconditions") or {})
            if problem is not None:
                return problem, None
            if options.get("dryRun"):
                return FakeAnswer(200, {"kind": "Pod", "apiVersion": "v1", **pod}), None
            is_first = "deletionTimestamp" not in pod["metadata"]
            pod = self._end(pod, options.get("gracePeriodSeconds"))
            return FakeAnswer(200, {"kind": "Pod", "apiVersion": "v1", **pod}), pod["metadata"][
                "uid"
            ] if is_first else None

    def patch_pod_status(self, request: FakeRequest) -> tuple[FakeAnswer, str | None]:
        """Change a pod's status; gives the answer, and the UID of the pod that was changed."""
        with self._changed:
            pod = self._stored("Pod", request)
            if pod is None:
                return _not_found(request), None
            changed = patched(pod, request)
            if isinstance(changed, FakeAnswer):
                return changed, None
            problem = _unmet(request, pod, changed["metadata"])
            if problem is not None:
                return problem, None
            if not request.query.get("dryRun"):
                # Of all that a patch of the status says, only the status is taken over.
                pod = self._change("Pod", "MODIFIED", {**pod, "status": changed["status"]})
            return FakeAnswer(200, {"kind": "Pod", "apiVersion": "v1", **pod}), pod["metadata"]["uid"]

    def end_terminated(self) -> None:
        """Remove pods that have terminated long enough; the server calls it again and again."""
        with self._changed:
            while self._ends and self._ends[0][0] <= time.monotonic():
                _, name, uid = heapq.heappop(self._ends)
                pod = self.objects.get(("Pod", name))
                if pod is not None and pod["metadata"]["uid"] == uid:
                    self.remove("Pod", name)
            if self.serves_requests:
                self._collect()

    def _collect(self) -> None:
        """Remove EvictionRequests whose pods are gone, as the garbage collector does."""
        uids = {item["metadata"]["uid"] for (kind, _), item in self.objects.items() if kind == "Pod"}
        now = time.monotonic()
        for (kind, name), item in list(self.objects.items()):
            owners = item["metadata"].get("ownerReferences") or ()
            if kind != EVICTION_REQUEST or not owners or any(owner["uid"] in uids for owner in owners):
                continue
            if now - self._unowned.setdefault(name, now) >= _COLLECTED_SECONDS:
                del self._unowned[name]
                self.remove(kind, name)

    def _end(self, pod: Object, grace: int | None) -> Object:
        name, uid, spec = pod["metadata"]["name"], pod["metadata"]["uid"], pod.get("spec", {})
        seconds = spec.get("terminationGracePeriodSeconds", GRACE_SECONDS) if grace is None else grace
        if self.termination_seconds is None or seconds == 0 or not spec.get("nodeName"):
            self.remove("Pod", name)
        elif "deletionTimestamp" not in pod["metadata"]:
            ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
            terminating = {"deletionTimestamp": ends, "deletionGracePeriodSeconds": seconds}
            pod = self._change("Pod", "MODIFIED", {**pod, "metadata": pod["metadata"] | terminating})
            heapq.heappush(self._ends, (time.monotonic() + self.termination_seconds, name, uid))
        return pod

    def _stored(self, kind: str, request: FakeRequest) -> Object | None:
        stored = self.objects.get((kind, stored_name(kind, request.namespace, request.name)))
        return stored if stored and stored["metadata"].get("namespace", "") == request.namespace else None

    def _change(self, kind: str, type_: str, changed: Object) -> Object:
        """Give the object the next version and tell watches; objects that were handed out are never changed."""
        self.version += 1
        changed = copy.deepcopy({**changed, "metadata": changed["metadata"] | {"resourceVersion": str(self.version)}})
        if type_ != "DELETED":
            meta = changed["metadata"]
            self.objects[kind, stored_name(kind, meta.get("namespace", ""), meta["name"])] = changed
        self._changes.append(WatchedChange(self.version, kind, type_, changed))
        self._changed.notify_all()
        return changed


def stored_name(kind: str, namespace: str, name: str) -> str:
    """Return the name by which an object is stored: with the namespace if names are unique only there."""
    return f"{namespace}/{name}" if kind == EVICTION_REQUEST else name


def head(kind: str) -> Object:
    """Return kind and version of an object."""
    return {"kind": kind, "apiVersion": LIFECYCLE_VERSION if kind == EVICTION_REQUEST else "v1"}


def is_selected(item: Object, request: FakeRequest) -> bool:
    """Whether an object is in the namespace of a list or watch, and has what its selectors name."""
    if request.namespace and item["metadata"].get("namespace") != request.namespace:
        return False
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, request.query.get("labelSelector", "").split(",")):
        name, _, wanted = term.replace("==", "=").partition("=")
        if labels.get(name) != wanted:
            return False
    for term in filter(None, request.query.get("fieldSelector", "").split(",")):
        path, _, wanted = term.replace("==", "=").partition("=")
        value = item
        for part in path.removesuffix("!").split("."):
            value = value.get(part, {})
        if ((value or "") == wanted) == path.endswith("!"):
            return False
    return True


def _not_found(request: FakeRequest) -> FakeAnswer:
    return refusal(404, f'{request.resource.partition("/")[0]} "{request.name}" not found', about=request)


def _unmet(request: FakeRequest, stored: Object, wanted: Object) -> FakeAnswer | None:
    """Refuse what names another UID or resource version, in the words of the API server."""
    for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        is_ = stored["metadata"][field]
        if wanted.get(field, is_) != is_:
            return refusal(
                409,
                f'Operation cannot be fulfilled on pods "{request.name}": the {name} in the precondition '
                f"({wanted[field]}) does not match the {name} in record ({is_}). The object might have been deleted "
                "and then recreated",
            )
    return None
