"""semantics.md 12.4: while one node stays Ready, an outage goes on over any gap without a health taint."""

from __future__ import annotations

import collections
import itertools

import msgspec
import pytest

from evictstream.models.eviction import NodeAggregate, RuleParameters, node_slices
from evictstream.models.eviction.cluster import Cluster, one_is_ready_since
from evictstream.models.eviction.node_rows import node_value, read_node_value
from evictstream.models.eviction.state import DeletionMemory, NodeLeft, NodeState, Outage
from evictstream.models.eviction.taint_history import advance_ready
from evictstream.models.kubernetes import Node, Taint
from evictstream.models.kubernetes.shapes import EXCLUDE_DISRUPTION_LABEL
from evictstream.models.messages.events import NodeEvent
from tests.models.eviction.scene import ADDED, CLUSTER, DELETED, MODIFIED, ORIGIN, SILENT, us

DEAD, ALIVE, OTHER = "n-dead", "n-alive", "n-other"


class Nodes:
    """The nodes of one cluster; events in seconds."""

    def __init__(self, rules: RuleParameters | None = None) -> None:
        self.cluster = Cluster(CLUSTER)
        self.rules = rules or RuleParameters()
        self.versions = itertools.count(100)

    def see(
        self,
        at: float,
        name: str,
        ready: str | None = "True",
        *taints: Taint,
        event_type: object = MODIFIED,
        uid: str | None = None,
        version: int | None = None,
        excluded: bool = False,
    ) -> None:
        aggregate = self.cluster.nodes.get(name) or self.cluster.new_node(name)
        labels = {EXCLUDE_DISRUPTION_LABEL: ""} if excluded else {}
        seen = Node(name, uid or name, str(version or next(self.versions)), taints, ready, labels)
        event = NodeEvent(type=event_type, node=seen, at_us=us(at), origin=ORIGIN)  # type: ignore[arg-type]
        collections.deque(node_slices(aggregate, event, self.rules, self.cluster.has_ready_since), maxlen=0)
        self.cluster.nodes[name] = aggregate

    def dies(self, at: float, name: str = DEAD) -> None:
        self.see(at, name, "Unknown", SILENT)

    def outage(self, name: str = DEAD) -> float | None:
        """When the node's outage began."""
        node = self.cluster.nodes[name].node
        return None if node is None or node.outage is None else (node.outage.since_us - us(0)) / 1_000_000


def gap(nodes: Nodes, begin: float = 100, end: float = 130) -> None:
    nodes.see(begin, DEAD, "Unknown")
    nodes.dies(end)


def test_an_outage_goes_on_while_another_node_stays_ready() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.see(50, ALIVE)
    gap(nodes)
    assert nodes.outage() == 10


def test_one_instant_without_a_ready_node_begins_another_outage() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.see(100, DEAD, "Unknown")
    nodes.see(110, ALIVE, "Unknown")
    nodes.see(110.001, ALIVE)
    nodes.dies(130)
    assert nodes.outage() == 130


def test_one_node_has_to_stay_ready_all_the_time() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.see(50, OTHER)
    nodes.see(60, ALIVE, "False")
    gap(nodes)
    assert nodes.outage() == 130


@pytest.mark.parametrize(
    ("ready", "outage"),
    [pytest.param("True", None, id="Ready"), pytest.param(None, None, id="Ready not reported")],
)
def test_a_gap_ends_where_the_node_is_not_dead(ready: str | None, outage: float | None) -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.see(100, DEAD, "Unknown")
    nodes.see(120, DEAD, ready)
    assert nodes.outage() == outage
    nodes.dies(130)
    assert nodes.outage() == 130


def test_a_cluster_of_one_node_is_in_full_disruption() -> None:
    nodes = Nodes()
    nodes.dies(10)
    gap(nodes)
    assert nodes.outage() == 130


def test_no_nodes_are_not_ready() -> None:
    assert not Cluster(CLUSTER).has_ready_since(us(10))


def test_each_of_two_dead_nodes_of_three_goes_on() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.dies(12, OTHER)
    nodes.see(100, DEAD, "Unknown")
    nodes.see(100, OTHER, "Unknown")
    nodes.dies(100.2)
    nodes.dies(110.2, OTHER)
    assert (nodes.outage(), nodes.outage(OTHER)) == (10, 12)


def test_a_node_that_does_not_count_proves_nothing() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE, excluded=True)
    nodes.dies(10)
    gap(nodes)
    assert nodes.outage() == 130


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"event_type": DELETED}, id="deleted"),
        pytest.param({"event_type": ADDED}, id="another version in a listing"),
        pytest.param({"uid": "another"}, id="registered again"),
        pytest.param({"excluded": True}, id="counts no more"),
        pytest.param({"ready": None}, id="Ready not reported"),
        pytest.param({"ready": "False"}, id="not Ready"),
    ],
)
def test_what_ends_the_proof(change: dict[str, object]) -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.see(50, ALIVE, **change)  # type: ignore[arg-type]
    nodes.see(60, ALIVE, uid="another" if "uid" in change else None)
    gap(nodes)
    assert nodes.outage() == 130


def test_a_known_version_in_a_listing_ends_nothing() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE, version=7)
    nodes.dies(10)
    nodes.see(50, ALIVE, event_type=ADDED, version=7)
    gap(nodes)
    assert nodes.outage() == 10


@pytest.mark.parametrize(
    ("taints", "outage"), [pytest.param((SILENT,), 120, id="tainted"), pytest.param((), 130, id="in its gap")]
)
def test_a_listing_of_the_dead_node_bridges_no_long_gap(taints: tuple[Taint, ...], outage: float) -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE)
    nodes.dies(10)
    nodes.see(100, DEAD, "Unknown")
    nodes.see(120, DEAD, "Unknown", *taints, event_type=ADDED)
    nodes.dies(130)
    assert nodes.outage() == outage


def test_without_a_gap_setting_each_taint_begins_an_outage() -> None:
    nodes = Nodes(RuleParameters(outage_gap_us=0))
    nodes.see(0, ALIVE)
    nodes.dies(10)
    gap(nodes)
    assert nodes.outage() == 130


@pytest.mark.parametrize(
    ("before", "is_ready", "is_listed", "after"),
    [
        pytest.param(None, True, False, 9, id="becomes ready"),
        pytest.param(5, True, False, 5, id="stays ready"),
        pytest.param(5, True, True, 9, id="listed"),
        pytest.param(5, False, False, None, id="not ready"),
        pytest.param(None, False, True, None, id="not ready, listed"),
    ],
)
def test_since_when_a_node_is_ready(before: int | None, is_ready: bool, is_listed: bool, after: int | None) -> None:  # noqa: FBT001
    assert advance_ready(before, is_ready=is_ready, is_listed=is_listed, at_us=9) == after


def test_a_row_keeps_since_when_a_node_is_ready() -> None:
    node = NodeState(uid="u", version=7, outage=Outage(5, 6), ready_since_us=4)
    assert read_node_value(b"k", node_value(node, ())) == (node, {})


def test_a_row_keeps_how_deleted_nodes_were() -> None:
    node = NodeState(uid="u", version=7, is_unready=True)
    earlier = {"v": DeletionMemory(5, 99), "w": DeletionMemory(6, 99, left=NodeLeft(9, "a", is_unhealthy=True))}
    assert read_node_value(b"k", node_value(node, earlier.items())) == (node, earlier)


def test_rows_of_an_earlier_version_make_no_node_ready() -> None:
    node = NodeState(uid="u", version=7, ready_since_us=4)
    *fields, _, _ = msgspec.msgpack.decode(node_value(node, ()))
    found, _ = read_node_value(b"k", msgspec.msgpack.encode(fields))
    assert found == NodeState(uid="u", version=7)
    aggregate = NodeAggregate(CLUSTER, ALIVE)
    aggregate.node = found
    cluster = Cluster(CLUSTER)
    cluster.add(aggregate)
    assert not cluster.has_ready_since(us(10))


def test_the_first_ready_node_ends_the_look() -> None:
    nodes = Nodes()
    for number in range(5):
        nodes.see(number, f"n-{number}", "True" if number == 1 else "Unknown")
    looked = iter(nodes.cluster.nodes.values())
    assert one_is_ready_since(looked, us(10))
    assert [node.name for node in looked] == ["n-2", "n-3", "n-4"]


def test_a_known_version_that_tells_the_label_ends_the_proof() -> None:
    nodes = Nodes()
    nodes.see(0, ALIVE, version=7)
    nodes.dies(10)
    nodes.see(50, ALIVE, version=7, excluded=True)
    gap(nodes)
    assert nodes.outage() == 130
