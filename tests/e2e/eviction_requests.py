"""A control plane that serves EvictionRequests, and a controller with a responder, which Kubernetes 1.37 lacks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.binaries import CONTROL_PLANE

REQUESTS: Final = "/apis/lifecycle.k8s.io/v1alpha1/evictionrequests"

GATE_FLAGS: Final = ("--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true")
"""For the API server."""

LOOK_SECONDS: Final = 0.2


def knows_requests() -> bool:
    """Whether the control plane that is built has the gate; an earlier one refuses to start with it."""
    return tuple(int(part) for part in CONTROL_PLANE.version().removeprefix("v").split(".")[:2]) >= (1, 37)


def requests_of(client: ApiClient) -> dict[str, Object]:
    """Return all requests by the names of their pods."""
    return {one["spec"]["target"]["pod"]["name"]: one for one in client.items(REQUESTS)}


class RequestController:
    """Sees each generation of each request, and evicts the pods of those that are wanted, if it acts.

    Attributes:
        seen: intents by name of the pod, in the order in which they were seen.
        acts: whether it evicts.
    """

    def __init__(self, client: ApiClient, *, acts: bool) -> None:
        self.seen: dict[str, list[str]] = {}
        self.acts = acts
        self._client = client
        self._stopped = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Act meanwhile."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            for pod, request in requests_of(self._client).items():
                with contextlib.suppress(RefusedError):  # it has changed, or is gone
                    self._see(pod, request)

    def _see(self, pod: str, request: Object) -> None:
        meta, intent = request["metadata"], request["spec"]["intent"]
        path = f"/apis/lifecycle.k8s.io/v1alpha1/namespaces/{meta['namespace']}/evictionrequests/{meta['name']}"
        if request.get("status", {}).get("observedGeneration") != meta["generation"]:
            status = {"observedGeneration": meta["generation"]}
            self._client.patch(f"{path}/status", {"metadata": {"uid": meta["uid"]}, "status": status})
            self.seen.setdefault(pod, []).append(intent)
        if self.acts and intent == "Eviction":
            about = {"name": pod, "namespace": meta["namespace"]}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
            self._client.create(f"/api/v1/namespaces/{meta['namespace']}/pods/{pod}/eviction", eviction)
