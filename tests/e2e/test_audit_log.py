"""The audit log of a real API server replays as a watch of the same minutes does."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import threading
import time
from pathlib import Path
from typing import Self

import pytest

from evictstream.kit.recordings import Entry, Flaw, Skipped, open_recordings
from evictstream.kit.recordings.audit_log import DRY_RUNS, REFUSED_REQUEST, WITHOUT_OBJECT
from evictstream.models.instants import instant_us
from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.control_plane import QUICK_NODE_MONITOR, SHORT_DEFAULT_TOLERATIONS, ControlPlane
from tests.e2e.hollow_nodes import ALL_PODS, HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint, tolerates
from tests.kit.replay.recorded import outcomes

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

NAMES = ("n-0", "n-1", "n-2")
MAINTENANCE = "lab/maintenance"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
PATIENCE_SECONDS = 40.0
AT_ONCE_US = 500_000
LATE_US = 500_000  # of a watch beside three servers and two hollow kubelets on two cores

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitManagedFields": True,
    "rules": [
        {"level": "RequestResponse", "resources": [{"group": "", "resources": ["nodes", "nodes/*", "pods", "pods/*"]}]},
        {"level": "None"},
    ],
}


class Watches:
    """Watches of nodes and pods, written down as a feed does."""

    def __init__(self, client: ApiClient) -> None:
        self.events: list[Object] = []
        self._client = client
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(path,)) for path in (NODES, ALL_PODS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, path: str) -> None:
        version = "0"
        while not self._ending.is_set():
            for event in self._client.watch(path, version, seconds=1):
                version = event["object"]["metadata"]["resourceVersion"]
                at = dt.datetime.now(dt.UTC).isoformat()
                with self._lock:
                    self.events.append({"cluster": "lab", "observedAt": at} | event)


def pods_without_node(name: str) -> Object:
    found = pod(name, "", tolerations=[tolerates(MAINTENANCE, 8)])
    del found["spec"]["nodeName"]
    return found


def wait_gone(client: ApiClient, *names: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while left := {each["metadata"]["name"] for each in client.items(ALL_PODS)} & set(names):
        assert time.monotonic() < until, left
        time.sleep(0.2)


def bad_minutes(client: ApiClient, nodes: HollowNodes) -> None:
    """Do to nodes and pods whatever an API server knows to do."""
    nodes.add(NAMES)
    nodes.wait_ready(NAMES)
    for name in NAMES:
        client.create(pods(), pod(f"plain-{name}", name))
        client.create(pods(), pod(f"soon-{name}", name, tolerations=[tolerates(MAINTENANCE, 2)]))
        client.create(pods(), pod(f"stays-{name}", name, tolerations=[tolerates(MAINTENANCE)]))
    for name in ("bound-0", "bound-1"):
        client.create(pods(), pods_without_node(name))
        target = {"apiVersion": "v1", "kind": "Node", "name": "n-1"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        client.create(f"{pods()}/{name}/binding", binding)
    client.create(pods(), pods_without_node("never-bound"))
    of_set = {"metadata": {"labels": {"app": "rs"}}, "spec": pod("rs", "n-0")["spec"]}
    chosen = {"replicas": 2, "selector": {"matchLabels": {"app": "rs"}}, "template": of_set}
    client.create(
        REPLICA_SETS, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs"}, "spec": chosen}
    )
    time.sleep(2)  # the hollow kubelets run them
    client.call("DELETE", f"{pods()}/plain-n-0?dryRun=All")
    with contextlib.suppress(RefusedError):
        client.delete(f"{pods()}/nobody")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "bound-0", "namespace": "default"}}
    client.create(f"{pods()}/bound-0/eviction", eviction)
    client.delete(f"{pods()}/soon-n-2")
    client.delete(f"{pods()}/plain-n-2", grace_seconds=0)
    client.delete(f"{pods()}/never-bound")
    client.patch(f"{pods()}/bound-1", {"metadata": {"finalizers": ["lab/keep"]}})
    wait_gone(client, "bound-0", "soon-n-2", "plain-n-2", "never-bound")
    client.patch(f"{NODES}/n-1", {"spec": {"taints": [taint(MAINTENANCE)]}})
    wait_gone(client, "plain-n-1", "soon-n-1")
    client.delete(f"{pods()}/bound-1")
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    client.call("DELETE", f"{REPLICA_SETS}/rs", options)  # the garbage collector deletes its pods
    time.sleep(3)
    client.patch(f"{pods()}/bound-1", {"metadata": {"finalizers": None}})
    wait_gone(client, "bound-1")
    client.call("DELETE", f"{pods()}?labelSelector=app%3Dstays-n-2")
    wait_gone(client, "stays-n-2")
    client.patch(f"{NODES}/n-1", {"spec": {"taints": None}})
    nodes.silence(["n-0", "n-2"])
    client.delete(f"{NODES}/n-2")
    wait_gone(client, "plain-n-2")
    time.sleep(1)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `audit.jsonl` and `events.jsonl`."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "policy.json").write_text(json.dumps(POLICY))
    audited = (f"--audit-policy-file={folder / 'policy.json'}", f"--audit-log-path={folder / 'audit.jsonl'}")
    with ControlPlane(
        folder / "plane",
        taint_eviction=True,
        apiserver_flags=(*SHORT_DEFAULT_TOLERATIONS, *audited),
        controller_manager_flags=QUICK_NODE_MONITOR,
    ) as plane:
        client = plane.client()
        with Watches(client) as watches, HollowNodes(client) as nodes:
            bad_minutes(client, nodes)
            time.sleep(2)
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in watches.events))
    return folder


State = tuple[str, bool, str, bool]


def lives(path: Path) -> dict[tuple[str, str], list[State]]:
    """What happened to each object, without what changes nothing: type, terminating, node, tainted.

    An object that is deleted at once terminates for some milliseconds before it goes, which no answer tells.
    """
    found: dict[tuple[str, str], list[tuple[int, State]]] = {}
    with open_recordings([str(path)]) as items:
        for item in items:
            assert not isinstance(item, Flaw), item
            if isinstance(item, Entry):
                assert item.observed_at_us is not None
                thing = json.loads(bytes(item.object))
                metadata, is_deleted = thing["metadata"], item.type == "DELETED"
                is_tainted = not is_deleted and bool(thing.get("spec", {}).get("taints"))
                is_terminating = is_deleted or "deletionTimestamp" in metadata
                state = ("DELETED" if is_deleted else "there", is_terminating, item.node_name, is_tainted)
                life = found.setdefault((metadata["name"], metadata["uid"]), [])
                if life and is_deleted and life[-1][1][1] and item.observed_at_us - life[-1][0] < AT_ONCE_US:
                    del life[-1]
                if not life or life[-1][1] != state:
                    life.append((item.observed_at_us, state))
    return {name: [state for _, state in life] for name, life in found.items()}


def test_an_audit_log_tells_the_lives_that_a_watch_sees(recorded: Path) -> None:
    watched, audited = lives(recorded / "events.jsonl"), lives(recorded / "audit.jsonl")
    assert len(watched) > len(NAMES) * 4
    assert audited == watched


def test_its_replay_evicts_as_that_of_a_watch_does(recorded: Path) -> None:
    watched, audited = outcomes([recorded / "events.jsonl"]), outcomes([recorded / "audit.jsonl"])
    assert audited.keys() == watched.keys()
    for pod_and_action, (deadline, _) in watched.items():
        assert abs(instant_us(deadline) - instant_us(audited[pod_and_action][0])) < LATE_US


def test_what_an_audit_log_does_not_say_is_left_out(recorded: Path) -> None:
    with open_recordings([str(recorded / "audit.jsonl")]) as items:
        reasons = {item.type for item in items if isinstance(item, Skipped)}
    assert {DRY_RUNS, REFUSED_REQUEST} <= reasons
    assert WITHOUT_OBJECT not in reasons
