"""`evictstream describe`: one pod, one node, and what is said of others."""

from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.kit.cli.descriptions import DescribedNode, print_node, print_pod
from evictstream.kit.see.evictions import SeenState
from evictstream.kit.see.nodes import listed_node
from evictstream.kit.see.pods import ListedPod, listed_pods
from evictstream.kit.see.stored_state import StoredNode
from evictstream.models.eviction import RuleParameters
from evictstream.models.instants import instant_text
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.cli.output import OutputFormat
from evictstream.streams.settings import Settings
from tests.harness.rows import NOON_US, SECOND_US, State
from tests.kit.see.test_evictions import SETTINGS, SILENCES, UNREACHABLE, read
from tests.streams.cli.running import run

AT_US = NOON_US + 60 * SECOND_US
ISSUED_AT = instant_text(NOON_US + 20 * SECOND_US)


@pytest.fixture
def node() -> StoredNode:
    """A tainted node with one pod that has to leave, one that has 300 s, and one that is only seen."""
    rows = State(SETTINGS)
    rows.node("lab", "n-1", UNREACHABLE)
    rows.pod("lab", "n-1", "slow", 300)
    rows.pod("lab", "n-1", "quick", 20)
    (node,) = read(rows).nodes()
    return node


def pods_of(node: StoredNode) -> list[ListedPod]:
    return listed_pods(node, AT_US, SILENCES, RuleParameters())


def test_a_pod_says_why_and_when(node: StoredNode, capsys: pytest.CaptureFixture[str]) -> None:
    quick, _ = pods_of(node)
    print_pod(quick, node.aggregate.node, AT_US, output=OutputFormat.TEXT, is_first=True)
    fields = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert fields["Pod"].strip() == "x/quick"
    assert "because of the taint node.kubernetes.io/unreachable:NoExecute" in fields["Now"]
    assert fields["Eviction"].strip() == "Due, TolerationExpires"
    assert fields["Gate/result"].strip() == "worker"
    assert fields["History"].strip() == "evictstream explain x/quick --cluster lab"


@pytest.mark.parametrize("is_queued", [False, True])
def test_what_an_executor_has_queued_owes_no_attempt(
    is_queued: bool,  # noqa: FBT001 - a case
    node: StoredNode,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quick, _ = pods_of(node)
    assert quick.eviction is not None
    issued = {"issued_at": ISSUED_AT, "unanswered_since": ISSUED_AT, "next_attempt_at": ISSUED_AT}
    eviction = msgspec.structs.replace(quick.eviction, state=SeenState.ISSUED, queued=is_queued, **issued)
    issued_pod = msgspec.structs.replace(quick, eviction=eviction)
    print_pod(issued_pod, node.aggregate.node, AT_US, output=OutputFormat.TEXT, is_first=True)
    names = {line.split(":", 1)[0] for line in capsys.readouterr().out.splitlines()}
    assert {"Unanswered", "Next attempt"} & names == {"Unanswered"} | (set() if is_queued else {"Next attempt"})


def test_a_node_lists_its_pods_by_urgency(node: StoredNode, capsys: pytest.CaptureFixture[str]) -> None:
    described = DescribedNode(node=listed_node(node, AT_US, SILENCES), pods_on_it=tuple(pods_of(node)))
    print_node(described, AT_US, output=OutputFormat.TEXT, is_first=True)
    lines = capsys.readouterr().out.splitlines()
    assert "Feed heard:   sends no heartbeats" in lines
    assert [line.split()[0] for line in lines[-3:]] == ["POD", "x/quick", "x/slow"]


def test_programs_get_the_same(node: StoredNode, capsys: pytest.CaptureFixture[str]) -> None:
    quick, _ = pods_of(node)
    print_pod(quick, node.aggregate.node, AT_US, output=OutputFormat.JSON, is_first=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["case"], found["eviction"]["state"]) == ("Due", "Due")


def test_a_running_service_describes_pods_and_nodes(settings: Settings) -> None:
    declare_topics(settings)
    rows = State(settings)
    rows.node("lab", "n-1", UNREACHABLE)
    rows.pod("lab", "n-1", "web-0")
    rows.write()

    def told(*arguments: str) -> tuple[int, str]:
        result = run(settings, "describe", *arguments)
        return result.returncode, (result.stdout + result.stderr).decode()

    code, text = told("pod", "web-0")
    assert (code, "Node:         n-1, since" in text) == (0, True)
    code, text = told("pod", "x/wab-0")
    assert (code, "the service has no pod x/wab-0; did you mean x/web-0?" in text) == (1, True)
