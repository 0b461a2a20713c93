"""What a fleet publishes, read by somebody who has only the schemas: possible at any moment, at rest as in `status`.

`Stranger` imports nothing of evictstream. It keeps the newest value of each key, and adds up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from kafka import KafkaConsumer, TopicPartition

from evictstream.streams.settings import Settings
from tests.guarantees.conftest import StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.streams.cli.running import run

SCHEMAS = Path(__file__).parents[2] / "models" / "messages" / "schemas"
ILL = taint("node.kubernetes.io/unreachable")
SUMMED = ("open", "scheduled", "due", "issued", "retrying", "failing", "held")
NODES, PODS = 6, 30
PATIENCE_SECONDS = 40.0

Totals = dict[str, int]


class Stranger:
    """A consumer of the three topics, from their beginning."""

    def __init__(self, servers: str, prefix: str, partitions: int) -> None:
        topics = {
            f"{prefix}fleet": "fleet-level",
            f"{prefix}clusters": "fleet-cluster",
            f"{prefix}workloads": "fleet-workload",
        }
        self._consumer = KafkaConsumer(
            bootstrap_servers=servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_id=None,
        )
        self._consumer.assign([TopicPartition(topic, number) for topic in topics for number in range(partitions)])
        self._checks = {
            topic: jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_text()))
            for topic, name in topics.items()
        }
        self.newest: dict[str, dict[bytes, dict[str, Any]]] = {topic: {} for topic in topics}
        self.sequences: dict[bytes, list[int]] = {}  # by key of the fleet's topic
        self._fleet = f"{prefix}fleet"
        self._workloads = f"{prefix}workloads"

    def poll(self) -> None:
        """Take in what has come."""
        for records in self._consumer.poll(timeout_ms=200, max_records=10_000).values():
            for record in records:
                if record.value is None:
                    self.newest[record.topic].pop(record.key, None)
                    continue
                value = json.loads(record.value)
                self._checks[record.topic].validate(value)
                self.newest[record.topic][record.key] = value
                if record.topic == self._fleet:
                    check_sums(value)
                    self.sequences.setdefault(record.key, []).append(value["sequence"])

    def totals(self) -> Totals:
        """Add up all clusters; zones are in them."""
        whole = [value for value in self.newest[self._fleet].values() if "zone" not in value]
        counts = {name: sum(value["evictions"][name] for value in whole) for name in SUMMED}
        nodes = {name: sum(value["nodes"][name] for value in whole) for name in ("healthy", "unhealthy", "unknown")}
        return {"clusters": len(whole), "pods": sum(value["pods"] for value in whole), **nodes, **counts}

    def losses(self) -> dict[str, tuple[int, int]]:
        """By the key of an owner, its bound and its leaving pods; of the records that count, if all is told."""
        levels = {value["cluster"]: value for value in self.newest[self._fleet].values() if "zone" not in value}
        found = {}
        for key, value in self.newest[self._workloads].items():
            level = levels.get(value["cluster"])
            assert value["pods"]["held"] <= value["pods"]["leaving"] <= value["pods"]["bound"]
            assert ("losesAllAt" in value) == (value["pods"]["leaving"] == value["pods"]["bound"])
            check_steps(value)
            if level is not None and value["sequence"] >= level["workloadsFrom"]:
                found[key.decode()] = value["pods"]["bound"], value["pods"]["leaving"]
        return found

    def zones(self, count: str) -> dict[str, tuple[int, int]]:
        """By cluster, a count of its evictions, and the sum over its zones."""
        found: dict[str, tuple[int, int]] = {}
        for value in self.newest[self._fleet].values():
            whole, zones = found.get(value["cluster"], (0, 0))
            more = value["evictions"][count]
            found[value["cluster"]] = (whole, zones + more) if "zone" in value else (whole + more, zones)
        return found

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()


def check_sums(level: dict[str, Any]) -> None:
    """A level is possible by itself."""
    counts = level["evictions"]
    assert counts["open"] == counts["scheduled"] + counts["due"] + counts["issued"] + counts["retrying"]
    assert counts["scheduled"] == counts["later"] + sum(bucket["evictions"] for bucket in counts["deadlines"])
    assert counts["open"] <= level["pods"] <= NODES * PODS
    assert sum(level["nodes"][name] for name in ("healthy", "unhealthy", "unknown")) <= NODES


def check_steps(workload: dict[str, Any]) -> None:
    """The pods of an owner grow fewer step by step, to those that stay or are held."""
    pods, steps = workload["pods"], workload.get("steps", [])
    instants = [each for step in steps for each in (step["at"], step.get("until")) if each]
    assert instants == sorted(set(instants))
    left = [pods["bound"], *(step["left"] for step in steps)]
    assert left == sorted(set(left), reverse=True)
    assert left[-1] == pods["bound"] - pods["leaving"] + pods["held"]
    if not pods["held"]:
        assert instants[0] == workload["firstDeadline"]
        assert workload.get("losesAllAt", instants[-1]) == instants[-1]


def status(settings: Settings) -> Totals:
    """What `evictstream status` says of the fleet."""
    result = run(settings, "status", "-o", "json")
    assert result.returncode == 0, result.stderr
    whole = [one for one in json.loads(result.stdout)["items"] if one["scope"] == "fleet"]
    if not whole:
        return {}
    (one,) = whole
    counts = {name: one["evictions"][name] for name in SUMMED}
    nodes = {name: one["nodes"][name] for name in ("healthy", "unhealthy", "unknown")}
    return {"clusters": one["clusters"], "pods": one["pods"], **nodes, **counts}


def wait_for(stranger: Stranger, condition: Callable[[Totals], bool], what: str) -> Totals:
    """Read until a condition holds of the totals."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition(totals := stranger.totals()):
        assert time.monotonic() < until, f"not seen: {what}: {totals}"
        stranger.poll()
    return totals


def owned(feed: Feed, node: int, pod: int) -> None:
    """A pod of one of two owners: `web` has pods on all nodes, and `only-N` on one."""
    name = "web" if pod % 2 else f"only-{node}"
    owners = [{"kind": "ReplicaSet", "name": name, "uid": name, "controller": True}]
    seconds = 4 + pod % 8
    feed.pod(f"n{node}", f"p{node}-{pod}", tolerates(seconds, key=str(ILL["key"])), ownerReferences=owners)


def fill(feed: Feed) -> None:
    """Healthy nodes, with pods that tolerate an outage for 4 to 11 seconds."""
    for number in range(NODES):
        feed.node(f"n{number}", labels=in_zone(number))
        for pod in range(PODS):
            owned(feed, number, pod)
    feed.signal("HEARTBEAT", topics=(feed.settings.nodes_topic,), clusterLabels={"of": feed.cluster})
    feed.signal("HEARTBEAT", topics=(feed.settings.pods_topic,))


def see_nodes(feed: Feed, count: int, *taints: dict[str, object]) -> None:
    """The first nodes have these taints now."""
    for number in range(count):
        feed.node(f"n{number}", *taints, labels=in_zone(number))
    feed.flush()


def in_zone(number: int) -> dict[str, str]:
    """Every second node is in one of two zones."""
    return {"topology.kubernetes.io/zone": f"z{number % 2}"}


def losses_of(cluster: str, ill: int) -> dict[str, tuple[int, int]]:
    """What the owners of a cluster lose while its first nodes are ill."""
    lost = {f"{cluster}/lab/ReplicaSet/only-{node}": (PODS // 2, PODS // 2) for node in range(ill)}
    return lost | ({f"{cluster}/lab/ReplicaSet/web": (NODES * PODS // 2, ill * PODS // 2)} if ill else {})


def test_strangers_to_the_code_count_as_status_does(service: Settings, start_worker: StartWorker) -> None:
    """Three consumers: one from the start, one that begins in the middle of the storm, one that begins at the end."""
    service = service.model_copy(update={"publish_workloads": True})
    first = start_worker(service, "first").wait_ready()
    ill = NODES - 1
    with ExitStack() as stack:
        north, south = (stack.enter_context(Feed(service, name)) for name in ("north", "south"))

        def stranger() -> Stranger:
            found = Stranger(str(service.bootstrap_servers), service.topic_prefix, service.partitions)
            stack.callback(found.close)
            return found

        early = stranger()
        fill(north)
        fill(south)
        wait_for(early, lambda found: found["healthy"] == 2 * NODES and found["open"] == 0, "all nodes")
        assert status(service)["clusters"] == 2

        see_nodes(north, ill, ILL)
        see_nodes(south, ill, ILL)
        wait_for(early, lambda found: found["open"] > 0, "the storm")
        middle = stranger()
        assert status(service)["open"] > 0
        wait_for(early, lambda found: found["issued"] > 0, "the first issued")
        first.kill()
        second = start_worker(service, "second").wait_ready()
        all_issued = dict.fromkeys(SUMMED, 0) | dict.fromkeys(("open", "issued"), 2 * ill * PODS)
        expected = all_issued | {
            "clusters": 2,
            "pods": 2 * NODES * PODS,
            "healthy": 2,
            "unhealthy": 2 * ill,
            "unknown": 0,
        }
        late = stranger()
        for each in (early, middle, late):
            wait_for(each, lambda found: found == expected, "all issued")
            wait_for(each, lambda _: each.zones("issued") == dict.fromkeys(("north", "south"), (150, 150)), "zones")  # noqa: B023
        for each in (early, middle, late):
            losses = losses_of("north", ill) | losses_of("south", ill)
            wait_for(each, lambda _: each.losses() == losses, "all owners")  # noqa: B023
        assert status(service) == expected

        north.signal("FORGET", topics=(service.nodes_topic,))
        see_nodes(south, ill)
        expected = status_of_one = dict.fromkeys(expected, 0) | {"clusters": 1, "pods": NODES * PODS, "healthy": NODES}
        for each in (early, middle, late):
            wait_for(each, lambda found: found == status_of_one, "one healthy cluster")
            wait_for(each, lambda _: each.losses() == {}, "nothing leaves")  # noqa: B023
        assert status(service) == expected
        named = early.newest[service.clusters_topic]
        assert {key: value["labels"] for key, value in named.items()} == {b"south": {"of": "south"}}
        for sequences in early.sequences.values():
            assert sequences == sorted(set(sequences))
    assert second.stop() == 0
