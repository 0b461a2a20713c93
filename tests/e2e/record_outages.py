"""Records what a restarted controller manager and a full disruption look like: `python -m tests.e2e.record_outages`.

Real etcd, kube-apiserver and kube-controller-manager without its evictor, with simulated kubelets. The folders in
`tests/incidents/outages` were made by it. Nothing else depends on it: a recording is never made again.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from evictstream.kit.recordings.trimming import trimmed
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.kubernetes.taints import HEALTH_KEYS
from tests.e2e.api_client import ApiClient, Object
from tests.e2e.control_plane import UNTHROTTLED, ControlPlane
from tests.e2e.hollow_nodes import ALL_PODS, HollowNodes
from tests.e2e.objects import NODES, pod, pods, tolerates

TARGET = Path(__file__).parents[1] / "incidents" / "outages"
TOLERATION_SECONDS = 40
NODE_MONITOR = (
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=10s",
    "--node-startup-grace-period=20s",
    "--node-eviction-rate=0.1",  # upstream's own
)
DEFAULT_TOLERATIONS = tuple(
    f"--default-{condition}-toleration-seconds={TOLERATION_SECONDS}" for condition in ("not-ready", "unreachable")
)
ZONES = {"z-a": ("a-0", "a-1", "a-2", "a-3", "a-4", "a-5"), "z-b": ("b-0", "b-1")}
NAMES = tuple(name for names in ZONES.values() for name in names)
SHORT_SECONDS = 15
WATCH_SECONDS = 3

Story = Callable[[ControlPlane, HollowNodes], None]


class Recorder:
    """Writes down what a feed would see."""

    def __init__(self, client: ApiClient) -> None:
        self.events: list[Object] = []
        self._client = client
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, args=each) for each in (("Node", NODES), ("Pod", ALL_PODS))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, kind: Kind, path: str) -> None:
        found, version = self._client.listing(path)
        for each in found:
            self._note("ADDED", kind, each)
        while not self._ending.is_set():
            for event in self._client.watch(path, version, seconds=WATCH_SECONDS):
                version = event["object"]["metadata"]["resourceVersion"]
                self._note(event["type"], kind, event["object"])

    def _note(self, event_type: str, kind: Kind, whole: Object) -> None:
        text = msgspec.Raw(json.dumps({"kind": kind, "apiVersion": "v1"} | whole).encode())
        seen = {"cluster": "lab", "type": event_type, "observedAt": instant_text(time.time_ns() // 1000)}
        self.events.append(seen | {"object": json.loads(bytes(trimmed(kind, text)))})


def restarted_controller_manager(plane: ControlPlane, nodes: HollowNodes) -> None:
    """Three of six nodes of a zone are dead: fewer than make a partial disruption, so each gets its taint back."""
    dead = {"a-0", "a-1", "a-2"}
    nodes.silence(dead)
    until(lambda: tainted(plane) == dead)
    time.sleep(3)
    plane.controller_manager.stop()
    plane.controller_manager.start()
    until(lambda: tainted(plane) != dead)
    until(lambda: tainted(plane) == dead)
    time.sleep(TOLERATION_SECONDS + 3)


def full_disruption(plane: ControlPlane, nodes: HollowNodes) -> None:
    """Two nodes are dead, then all are for some seconds; the two stay so."""
    dead = {"a-0", "a-1"}
    nodes.silence(dead)
    until(lambda: tainted(plane) == dead)
    nodes.silence(NAMES)
    until(lambda: not tainted(plane) & dead)
    time.sleep(8)
    nodes.revive(name for name in NAMES if name not in dead)
    until(lambda: tainted(plane) == dead)
    time.sleep(TOLERATION_SECONDS + 3)


def tainted(plane: ControlPlane) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in plane.client().items(NODES)
        if any(taint["effect"] == "NoExecute" for taint in node["spec"].get("taints") or ())
    }


def until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def record(name: str, story: Story) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(
            Path(folder),
            taint_eviction=False,
            apiserver_flags=DEFAULT_TOLERATIONS,
            controller_manager_flags=(*NODE_MONITOR, *UNTHROTTLED),
        ) as plane,
        HollowNodes(plane.client()) as nodes,
    ):
        for zone, names in ZONES.items():
            nodes.add(names, zone)
            nodes.wait_ready(names)
        short = [tolerates(key, SHORT_SECONDS) for key in sorted(HEALTH_KEYS)]
        for on_node in NAMES:
            plane.client().create(pods(), pod(f"{on_node}-default", on_node))
            plane.client().create(pods(), pod(f"{on_node}-short", on_node, tolerations=short))
        recorder = Recorder(plane.client())
        recorder.start()
        time.sleep(2)
        try:
            story(plane, nodes)
        finally:
            recorder.stop()
    in_order = sorted(recorder.events, key=lambda event: str(event["observedAt"]))
    (TARGET / name).mkdir(parents=True)
    lines = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in in_order)
    (TARGET / name / "events.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    STORIES = {"restarted-controller-manager": restarted_controller_manager, "full-disruption": full_disruption}
    for chosen in sys.argv[1:] or STORIES:
        record(chosen, STORIES[chosen])
