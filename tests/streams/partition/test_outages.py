"""semantics.md 12.4 in a whole partition: what rows know of outages is what the oracle makes of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.demo.judgement import oracle_limits
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.kubernetes.shapes import EXCLUDE_DISRUPTION_LABEL
from evictstream.models.kubernetes.taints import NO_EXECUTE, NOT_READY, UNREACHABLE
from evictstream.streams.settings import Settings
from tests.faults.node_rows import check_nodes
from tests.harness.examples import examples
from tests.harness.virtual_service import VirtualService, violations

NOON_US = 1_795_262_400_000_000
LIMITS = oracle_limits(Settings())
TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": 300}
    for key in (NOT_READY, UNREACHABLE)
]


class Turn(NamedTuple):
    """Something happens to one of some nodes, so many seconds after what was before."""

    node: int
    after: float
    ready: str | None
    is_tainted: bool
    event_type: str = "MODIFIED"
    is_excluded: bool = False
    is_another: bool = False
    is_taken_over: bool = False


class View:
    """A partition that is told of nodes, with its rows."""

    def __init__(self) -> None:
        self.service = VirtualService()
        self.at_us = NOON_US
        self.uids: dict[int, str] = {}

    def turn(self, it: Turn) -> None:
        self.at_us += round(it.after * SECOND_US)
        if it.is_another or it.node not in self.uids:
            self.uids[it.node] = f"uid-{it.node}-{len(self.service.inputs)}"
        taints = [{"key": UNREACHABLE, "effect": NO_EXECUTE}] if it.is_tainted else []
        conditions = [] if it.ready is None else [{"type": "Ready", "status": it.ready}]
        labels = {EXCLUDE_DISRUPTION_LABEL: ""} if it.is_excluded else {}
        self.tell(
            it.event_type,
            {
                "kind": "Node",
                "metadata": self.metadata(f"n-{it.node}", self.uids[it.node]) | {"labels": labels},
                "spec": {"taints": taints},
                "status": {"conditions": conditions},
            },
        )
        if it.is_taken_over:
            self.service.restart()

    def pod(self, node: int) -> None:
        metadata = self.metadata(f"p-{node}", f"pod-{node}") | {"namespace": "shop"}
        self.tell(
            "ADDED",
            {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": f"n-{node}", "tolerations": TOLERATIONS}},
        )

    def metadata(self, name: str, uid: str) -> dict[str, Any]:
        return {"name": name, "uid": uid, "resourceVersion": str(1000 + len(self.service.inputs))}

    def tell(self, event_type: str, thing: dict[str, Any]) -> None:
        event = {"cluster": "lab", "type": event_type, "observedAt": instant_text(self.at_us), "object": thing}
        self.service.take(event, self.at_us)

    def check(self) -> None:
        """What the rows know of nodes is what was heard of them."""
        inputs = self.service.inputs
        positions = {0: dict.fromkeys(("nodes", "pods"), len(inputs))}
        assert list(check_nodes(self.service.rows, inputs, positions=positions, limits=LIMITS, partitions=1)) == []

    def evicted(self) -> dict[str, float]:
        """When the pods were evicted, by name: seconds after noon."""
        return {
            str(command["pod"]): (at_us - NOON_US) / SECOND_US
            for at_us, command in self.service.commands()
            if command["action"] == "Evict"
        }


def turns_of(
    nodes: st.SearchStrategy[int], ready: Sequence[str | None], *, most_is_tainted: bool
) -> st.SearchStrategy[Turn]:
    return st.builds(
        Turn,
        node=nodes,
        after=st.sampled_from([0, 0.1, 4, 5, 6, 30]),
        ready=st.sampled_from(ready),
        is_tainted=st.booleans() if most_is_tainted else st.just(value=False),
        event_type=st.sampled_from(["MODIFIED"] * 18 + ["ADDED", "DELETED"]),
        is_excluded=st.integers(1, 20).map(lambda drawn: drawn == 20),
        is_another=st.integers(1, 20).map(lambda drawn: drawn == 20),
        is_taken_over=st.booleans(),
    )


TURNS = st.one_of(
    turns_of(st.integers(0, 1), (*["True"] * 9, "Unknown"), most_is_tainted=False),
    turns_of(st.integers(1, 2), (*["Unknown"] * 6, "False", "True", None), most_is_tainted=True),
)
"""Of nodes that are mostly ready, and of nodes that mostly are not: gaps of both kinds are frequent."""


@given(st.lists(TURNS, min_size=25, max_size=40))
@settings(max_examples=examples(60), deadline=None)
def test_rows_know_of_outages_what_the_log_tells(turns: list[Turn]) -> None:
    view = View()
    for turn in turns:
        view.turn(turn)
        view.check()


def ready(node: int, after: float = 0) -> Turn:
    return Turn(node, after, "True", is_tainted=False)


def dead(node: int, after: float = 0, *, is_tainted: bool = True) -> Turn:
    return Turn(node, after, "Unknown", is_tainted=is_tainted)


def cleared(node: int, after: float = 0) -> Turn:
    return dead(node, after, is_tainted=False)


STORIES = {
    "restarted controller manager: gaps of 0.2 s, 10 s and 20 s": (
        [
            *map(ready, range(4)),
            *(dead(0, 10), dead(1), dead(2)),
            *(cleared(0, 100), cleared(1), cleared(2)),
            *(dead(0, 0.2), dead(1, 9.8), dead(2, 10)),
        ],
        {"p-0": 310, "p-1": 310, "p-2": 310},
    ),
    "full disruption, and what comes after it": (
        [
            *map(ready, range(4)),
            *(dead(0, 10), dead(1), dead(2)),
            *(cleared(3, 100), cleared(0), cleared(1), cleared(2)),
            *(ready(3, 60), dead(0, 1), dead(1, 10), dead(2, 10)),
        ],
        {"p-0": 471, "p-1": 481, "p-2": 491},
    ),
    "a gap that ends after the deadline": (
        [ready(0), dead(1, 10), cleared(1, 290), dead(1, 50)],
        {"p-1": 350},
    ),
    "the only node of a cluster": ([ready(0), dead(0, 10), cleared(0, 100), dead(0, 30)], {"p-0": 440}),
}


@pytest.mark.parametrize("with_takeovers", [False, True])
@pytest.mark.parametrize("story", STORIES)
def test_when_pods_of_dead_nodes_leave(story: str, with_takeovers: bool) -> None:  # noqa: FBT001
    turns, evicted = STORIES[story]
    view = View()
    for node in range(4):
        view.pod(node)
    for turn in turns:
        view.turn(turn._replace(is_taken_over=with_takeovers))
    view.service.advance(NOON_US + 700 * SECOND_US)
    assert view.evicted() == evicted
    view.check()
    assert violations(view.service) == []
