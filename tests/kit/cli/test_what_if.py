"""`evictstream what-if` on a recorded incident: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evictstream.models.instants import instant_us
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.settings import Settings
from tests.harness.reading import TopicReader
from tests.harness.workers import WorkerProcess
from tests.models.steering.test_brakes import record
from tests.models.steering.test_policies import policy_record
from tests.streams.cli.running import run, wait_until

INCIDENT = "examples/incidents/zone-outage-part-recovers-no-evictor/events.jsonl.gz"
NOWHERE = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1", "partitions": 3})
UNREACHABLE = "node.kubernetes.io/unreachable"


def foreseen(*arguments: str) -> Any:
    result = run(NOWHERE, "what-if", INCIDENT, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_zone_is_tainted() -> None:
    found = foreseen("--taint", "maintenance:NoExecute", "--zone", "z-b")
    assert found["nodes"] == {"chosen": 6, "changed": 6, "labelsNotKnown": 0}
    assert (found["total"]["leaveAtOnce"], found["total"]["leaveLater"]) == (60, 24)
    assert found["leavingBySeconds"] == {"0": 60, "5": 12, "20": 12}
    assert {one["couldGo"] for one in found["pods"]} == {"Somewhere"}
    assert found["byZone"][0]["name"] == "z-b"
    assert len(found["pods"]) == 84


def test_all_zones_are_tainted_so_nobody_could_go_anywhere() -> None:
    found = foreseen("--taint", "maintenance:NoExecute", "--selector", "kubernetes.io/os=linux")
    places = {(one["pod"].partition("-")[0], one["couldGo"]) for one in found["pods"]}
    assert {("web", "Nowhere"), ("api", "ForAWhile"), ("queue", "ForAWhile")} <= places
    assert found["total"]["nowhereToGo"] == found["total"]["leaveAtOnce"] + found["total"]["leaveLater"]


def test_a_taint_is_taken_away_at_an_instant() -> None:
    arguments = ("--remove-taint", UNREACHABLE, "--zone", "z-a", "--at", "2026-11-21T11:19:50Z")
    found = foreseen(*arguments)
    assert (found["nodes"]["changed"], found["total"]["spared"], found["at"]) == (3, 30, "2026-11-21T11:19:50.000000Z")
    assert found["stayingByReason"] == {"NoTaint": 84}


def test_other_tolerations_without_naming_nodes() -> None:
    found = foreseen("--toleration-seconds", f"{UNREACHABLE}=600")
    assert found["nodes"] == {"chosen": 18, "changed": 0, "labelsNotKnown": 0}
    assert found["total"]["moved"] == found["total"]["leaveLater"] == 30


def test_without_a_change_it_shows_what_leaves_anyway() -> None:
    text = run(NOWHERE, "what-if", INCIDENT, "--zone", "z-b").stdout.decode()
    assert "without the change" not in text
    found = json.loads(run(NOWHERE, "what-if", INCIDENT, "-o", "json").stdout)
    assert found["nodes"]["changed"] == found["total"]["moved"] == 0
    assert found["total"]["leaveAtOnce"] + found["total"]["leaveLater"] > 0


def test_a_table_for_people() -> None:
    result = run(NOWHERE, "what-if", INCIDENT, "--taint", "maintenance:NoExecute", "--zone", "z-b")
    assert result.returncode == 0
    text = result.stdout.decode()
    assert "maintenance:NoExecute, not tolerated" in text
    assert "and 34 more; -o json has all" in text


def test_policies_say_when_pods_are_evicted(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: calm\nsettle: 10s\n---\nname: watch\nobserve: true\nfor: {nodes: [n-007]}\n")
    change = ("--taint", "maintenance:NoExecute", "--nodes", "n-001,n-007", "--policy", str(path), "--for", "60")
    found = foreseen(*change)
    at = instant_us(found["at"])
    told = {
        (one["node"], one["seconds"], one["heldBy"] or (instant_us(one["issuedAt"]) - at) / 1e6)
        for one in found["pods"]
    }
    watched = "policy/watch/1/observe"
    assert {one for one in told if one[0] == "n-001"} == {("n-001", 0, 10), ("n-001", 5, 10), ("n-001", 20, 20)}
    assert {one for one in told if one[0] == "n-007"} == {("n-007", seconds, watched) for seconds in (0, 5, 20)}
    lines = run(NOWHERE, "what-if", INCIDENT, *change).stdout.decode().splitlines()
    assert "have to leave within 60 s     28" in lines
    assert any(line.split()[:7] == ["lab/web-n-001-0", "n-001", "at", "once", "after", "10.0", "s"] for line in lines)
    refused = run(NOWHERE, "what-if", INCIDENT, "--silent", "--zone", "z-a", "--policy", str(path))
    assert (refused.returncode, b"omit --silent" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("--cordon",), 2, b"no nodes are selected", id="no nodes"),
        pytest.param(("--taint", "a", "--zone", "z-a"), 2, b"invalid taint spec", id="no taint"),
        pytest.param(("--taint", "a:NoExecute-", "--zone", "z-a"), 2, b"use --remove-taint", id="a removal"),
        pytest.param(
            ("--taint", "a:NoExecute", "--remove-taint", "a", "--zone", "z-a"), 2, b"both modify and remove", id="both"
        ),
        pytest.param(("--cordon", "--selector", "a in"), 2, b"no label selector", id="no selector"),
        pytest.param(("--cordon", "--zone", "z-a", "--at", "soon"), 2, b"is not a time", id="no instant"),
        pytest.param(("--toleration-seconds", "a"), 2, b"KEY=SECONDS", id="no seconds"),
        pytest.param(("--cordon", "--nodes", "n-000,n-x"), 1, b"no such node: n-x", id="an unknown node"),
        pytest.param(("--cordon", "--zone", "z"), 1, b"known zones: z-a, z-b, z-c", id="an unknown zone"),
        pytest.param(("--cordon", "--zone", "z-a", "--at", "2020-01-01T00:00:00Z"), 1, b"no cluster", id="before"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], code: int, said: bytes) -> None:
    result = run(NOWHERE, "what-if", INCIDENT, *arguments)
    assert (result.returncode, said in result.stderr) == (code, True), result.stderr


def event(cluster: str | None, name: str) -> bytes:
    metadata = {"name": name, "uid": f"{cluster}-{name}", "resourceVersion": "1", "labels": {}}
    node = {"kind": "Node", "apiVersion": "v1", "metadata": metadata}
    found = {"type": "ADDED", "observedAt": "2026-11-21T10:00:00Z", "object": node}
    return json.dumps(found if cluster is None else found | {"cluster": cluster}).encode() + b"\n"


def test_several_clusters_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(event("a", "n-1") + event("b", "n-1"))
    result = run(NOWHERE, "what-if", str(file), "--cordon", "--nodes", "n-1")
    assert (result.returncode, b"several clusters: a, b" in result.stderr) == (2, True)
    arguments = ("what-if", str(file), "--cordon", "--nodes", "n-1", "--cluster")
    assert json.loads(run(NOWHERE, *arguments, "b", "-o", "json").stdout)["cluster"] == "b"
    assert b"known clusters: a, b" in run(NOWHERE, *arguments, "c").stderr


def test_a_file_that_names_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(event(None, "n-1"))
    arguments = ("what-if", str(file), "--cordon", "--nodes", "n-1", "-o", "json")
    assert b"does not name its cluster" in run(NOWHERE, *arguments).stderr
    assert json.loads(run(NOWHERE, *arguments, "--cluster", "b").stdout)["cluster"] == "b"


def test_a_line_that_is_none_is_said(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(event("a", "n-1") + b"nonsense\n")
    result = run(NOWHERE, "what-if", str(file), "--cordon", "--nodes", "n-1", "-o", "json")
    assert (result.returncode, b"line 2" in result.stderr) == (1, True)
    assert json.loads(result.stdout)["unreadable"] == 1


def test_lists_of_kubectl(tmp_path: Path) -> None:
    born = {"resourceVersion": "7", "creationTimestamp": "2026-11-20T10:00:00Z"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": born | {"name": name, "uid": name},
            "spec": {"unschedulable": name == "n-2"},
            "status": {"nodeInfo": {}},
        }
        for name in ("n-1", "n-2")
    ]
    owner = {"kind": "ReplicaSet", "name": "cart-5d7", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": born
        | {"name": "p", "namespace": "shop", "uid": "p", "labels": {"pod-template-hash": "5d7"}}
        | {"ownerReferences": [owner]},
        "spec": {"nodeName": "n-1", "containers": []},
    }
    file = tmp_path / "now.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, pod]}, indent=4))
    arguments = ("what-if", str(file), "--cluster", "lab", "--nodes", "n-1", "--taint", "down:NoExecute")
    found = json.loads(run(NOWHERE, *arguments, "-o", "json").stdout)
    (foreseen_pod,) = found["pods"]
    names = ("workload", "fate", "couldGo")
    assert [foreseen_pod[name] for name in names] == ["Deployment/cart", "LeavesAtOnce", "Nowhere"]
    assert found["listed"] == {"objects": 3, "at": found["at"], "isAssumed": True}
    text = run(NOWHERE, *arguments).stdout.decode()
    assert "listed objects, assumed of 2026-11-20T10:00:00.000000Z" in text


@pytest.mark.kafka
def test_the_running_service(settings: Settings, tmp_path: Path) -> None:
    """Its rows say when, and the input topics where: as the recording says that was imported, trimmed on the way."""
    declare_topics(settings)
    asked = ("what-if", "--taint", "maintenance:NoExecute", "--zone", "z-b", "-o", "json")
    found = run(settings, *asked)
    assert (found.returncode, b"there are no clusters" in found.stderr) == (1, True), found.stderr
    assert run(settings, "import", INCIDENT, "--pace", "fast", "--restamp").returncode == 0
    with WorkerProcess(settings, tmp_path) as worker:
        worker.wait_ready()
        wait_until(lambda: len(json.loads(run(settings, *asked).stdout or "{}").get("pods", ())) == 84)
        assert worker.stop() == 0
    ends = written(settings)
    live, recorded = json.loads(run(settings, *asked).stdout), foreseen(*asked[1:5])
    assert live["nodes"] == recorded["nodes"]
    assert live["byZone"] == recorded["byZone"]
    assert (live["unreadable"], live["total"]) == (0, recorded["total"])
    assert pods_of(live) == pods_of(recorded)
    assert written(settings) == ends, "nothing is written"

    for arguments, code, said in (
        (("--nodes", "n-x"), 1, b"no such node: n-x"),
        (("--zone", "z-b", "--at", "2020-01-01T00:00:00Z"), 2, b"has only the current state"),
    ):
        result = run(settings, "what-if", "--cordon", *arguments)
        assert (result.returncode, said in result.stderr) == (code, True), result.stderr

    with open_producer(settings, delivery_seconds=30.0) as producer:
        producer.send(settings.brakes_topic, key=b"b-1", value=record("b-1")).get(30)
        for name, spec in (("slow", {"limit": {"evictions": 1}}), ("late", {"patienceSeconds": 9})):
            value = policy_record(name, spec=spec)
            producer.send(settings.policies_topic, key=name.encode(), value=value).get(30)
    told = run(settings, *asked).stderr
    assert b"brake b-1 of anna holds evictions here (storm)" in told
    assert (b"policy slow of" in told, b"policy late of" in told) == (True, False)

    policy = tmp_path / "p.yaml"
    policy.write_text("name: calm\nsettle: 10s\n")
    pods = json.loads(run(settings, *asked, "--policy", str(policy)).stdout)["pods"]
    assert {one["heldBy"] for one in pods} == {"b-1"}, "the brake of the service counts as well"


def pods_of(found: Any) -> list[tuple[object, ...]]:
    names = ("pod", "podUid", "node", "zone", "workload", "fate", "seconds", "couldGo")
    return sorted(tuple(one[name] for name in names) for one in found["pods"])


def written(settings: Settings) -> dict[str, int]:
    counts = {}
    for topic in (*settings.input_topics, settings.commands_topic, settings.decisions_topic, settings.changelog_topic):
        reader = TopicReader(settings, topic)
        counts[topic] = len(reader.to_end())
        reader.close()
    return counts
