"""Kubelets on paper: nodes that renew their leases, and run and end pods, without any container.

A hollow kubelet does three things of a real one. It renews the node's lease and posts the node's status, from which the
controller manager knows that the node lives. It calls pods bound to the node running and ready. And it removes a pod
that is terminating once its grace period is over, which nothing else does.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import heapq
import http.client
import itertools
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.objects import LEASES, NODES, node

BEAT_SECONDS = 1.0
"""Between two renewals of a lease: a fifth of the quick node monitor's patience, as upstream's 10 s are of 50 s."""

STATUS_SECONDS = 10.0
"""Between two posts of a status that has not changed: each is a watch event of the node, as in a real cluster."""

WATCH_SECONDS = 1
"""A watch is asked for anew so often, because ending waits for it."""

RETRY_SECONDS = 0.2
CALLS_AT_ONCE = 8
ALL_PODS = "/api/v1/pods"


class HollowNodes:
    """Nodes of a cluster. Use as a context manager: its threads end with it; an API server may go and come back."""

    def __init__(self, client: ApiClient, *, beat_seconds: float = BEAT_SECONDS) -> None:
        """`client` is one that may do everything."""
        self._client = client
        self._beat_seconds = beat_seconds
        self._zones: dict[str, str] = {}
        self._up: set[str] = set()
        self._ending = threading.Event()
        # Two pools, so that no heartbeat waits behind thousands of pods that end at once.
        self._heartbeats = ThreadPoolExecutor(CALLS_AT_ONCE)
        self._calls = ThreadPoolExecutor(CALLS_AT_ONCE)
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._beat, self._follow, self._remove)
        ]
        # Pods that are to be removed, by time; those of a node that is down wait until it is up again.
        self._order = itertools.count()
        self._due: list[tuple[float, int, Object]] = []
        self._terminating: set[str] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        self._heartbeats.shutdown()
        self._calls.shutdown(cancel_futures=True)

    def add(self, names: Iterable[str], zone: str = "z-a") -> None:
        """Register nodes, and let them live. Pods on a node are run only if they come after it."""
        names = list(names)
        list(self._heartbeats.map(lambda name: self._register(name, zone), names))
        self._zones |= dict.fromkeys(names, zone)
        self._up.update(names)

    def silence(self, names: Iterable[str]) -> None:
        """Let nodes die, as seen from the control plane: no heartbeats, and pods that terminate stay."""
        self._up.difference_update(names)

    def revive(self, names: Iterable[str]) -> None:
        """Let silent nodes go on."""
        names = list(names)
        self._up.update(names)
        self._beat_once(names, with_status=True)

    def of_zone(self, zone: str) -> list[str]:
        """Return the nodes of a zone."""
        return [name for name, its in self._zones.items() if its == zone]

    def wait_ready(self, names: Iterable[str], seconds: float = 30.0) -> None:
        """Wait until nodes carry no taints of the node lifecycle controller."""
        waited, until = set(names), time.monotonic() + seconds
        while True:
            found = {each["metadata"]["name"]: each["spec"].get("taints") for each in self._client.items(NODES)}
            left = sorted(name for name in waited if name not in found or found[name])
            if not left:
                return
            assert time.monotonic() < until, f"not ready: {left}"
            time.sleep(0.1)

    def _register(self, name: str, zone: str) -> None:
        self._client.create(NODES, node(name, zone))
        metadata = {"name": name, "namespace": "kube-node-lease"}
        with contextlib.suppress(RefusedError):  # a node of that name lived before
            self._client.create(LEASES, {"metadata": metadata, "spec": _lease(name)})
        self._post_status(name)

    def _beat(self) -> None:
        posted = time.monotonic()
        while not self._ending.wait(self._beat_seconds):
            is_due = time.monotonic() - posted >= STATUS_SECONDS
            posted = time.monotonic() if is_due else posted
            self._beat_once(sorted(self._up), with_status=is_due)

    def _beat_once(self, names: Iterable[str], *, with_status: bool) -> None:
        def beat(name: str) -> None:
            with contextlib.suppress(OSError, RefusedError):  # down, or the node has been deleted: the next beat comes
                self._client.patch(f"{LEASES}/{name}", {"spec": _lease(name)})
                if with_status:
                    self._post_status(name)

        list(self._heartbeats.map(beat, names))

    def _post_status(self, name: str) -> None:
        now = f"{_now():%Y-%m-%dT%H:%M:%SZ}"
        healthy = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
        conditions = [
            {"type": kind, "status": status, "reason": "Hollow", "lastHeartbeatTime": now, "lastTransitionTime": now}
            for kind, status in healthy.items()
        ]
        size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        status = {"capacity": size, "allocatable": size, "conditions": conditions}
        self._client.patch(f"{NODES}/{name}/status", {"status": status})

    def _follow(self) -> None:
        """List and watch pods; whatever breaks that begins it anew."""
        while not self._ending.is_set():
            try:
                found, version = self._client.listing(ALL_PODS)
                for each in found:
                    self._see(each)
                while not self._ending.is_set():
                    for event in self._client.watch(ALL_PODS, version, seconds=WATCH_SECONDS):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "DELETED":
                            self._see(event["object"])
            except (OSError, http.client.HTTPException, RefusedError, ValueError, KeyError):  # an ERROR has no version
                self._ending.wait(RETRY_SECONDS)

    def _see(self, pod: Object) -> None:
        metadata, status = pod["metadata"], pod.get("status", {})
        if pod["spec"].get("nodeName") not in self._zones:
            return
        if "deletionTimestamp" in metadata:
            with self._lock:
                if metadata["uid"] not in self._terminating:
                    self._terminating.add(metadata["uid"])
                    due = time.monotonic() + metadata.get("deletionGracePeriodSeconds", 0)
                    heapq.heappush(self._due, (due, next(self._order), pod))
        elif status.get("phase") == "Pending" and not self._ending.is_set():
            self._calls.submit(self._run, pod)

    def _run(self, pod: Object) -> None:
        if pod["spec"]["nodeName"] in self._up:
            now = f"{_now():%Y-%m-%dT%H:%M:%SZ}"
            ready = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("Initialized", "Ready")]
            change = {"status": {"phase": "Running", "startTime": now, "conditions": ready}}
            with contextlib.suppress(OSError, RefusedError):
                self._client.patch(f"{_path(pod)}/status", {"metadata": {"uid": pod["metadata"]["uid"]}} | change)

    def _remove(self) -> None:
        while not self._ending.wait(0.02):
            with self._lock:
                now = time.monotonic()
                due = []
                while self._due and self._due[0][0] <= now:
                    due.append(heapq.heappop(self._due)[2])
            for pod in due:
                self._calls.submit(self._remove_one, pod)

    def _remove_one(self, pod: Object) -> None:
        if pod["spec"]["nodeName"] in self._up:
            try:
                self._client.delete(_path(pod), uid=pod["metadata"]["uid"], grace_seconds=0)
            except RefusedError as error:
                if error.status in {404, 409}:  # gone, or another pod has the name
                    return
            except OSError:
                pass
            else:
                return
        with self._lock:
            heapq.heappush(self._due, (time.monotonic() + RETRY_SECONDS, next(self._order), pod))


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _lease(name: str) -> Object:
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": f"{_now():%Y-%m-%dT%H:%M:%S.%f}Z"}


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
