"""semantics.md 12.10: decisions come out the same for every interleaving of the two streams."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.eviction import (
    EventType,
    NodeAggregate,
    NodeEvent,
    Origin,
    PodEvent,
    RuleParameters,
    apply_pod,
)
from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, UNREACHABLE, Node, Pod, Taint, Toleration
from tests.harness.whole_steps import apply_node

ORIGIN = Origin("t", 0, 0)
RULES = RuleParameters()
SECOND = 1_000_000

taints = st.lists(
    st.builds(
        Taint,
        st.sampled_from(["a", "b", NOT_READY, UNREACHABLE]),
        st.sampled_from(["", "x"]),
        st.just(NO_EXECUTE),
        st.sampled_from([None, 1, 2]),
    ),
    max_size=3,
    unique_by=lambda taint: taint.key,
)
tolerations = st.lists(
    st.builds(
        Toleration,
        st.sampled_from(["", "a", "b", NOT_READY, UNREACHABLE]),
        st.sampled_from(["Exists", "Equal"]),
        st.sampled_from(["", "x"]),
        st.just(NO_EXECUTE),
        st.sampled_from([None, 0, 3, 30, 300]),
    ),
    max_size=4,
)
ready = st.sampled_from(["True", "Unknown", None])
instants = st.lists(st.integers(0, 60), min_size=1, max_size=5, unique=True).map(sorted)


@st.composite
def node_streams(draw: st.DrawFn) -> list[NodeEvent]:
    events = []
    for version, at in enumerate(draw(instants), 1):
        deleted = draw(st.integers(0, 9)) == 0
        node = Node(
            "n", draw(st.sampled_from(["u1", "u1", "u1", "u2"])), str(version), tuple(draw(taints)), draw(ready)
        )
        events.append(
            NodeEvent(
                type=EventType.DELETED if deleted else EventType.MODIFIED, node=node, at_us=at * SECOND, origin=ORIGIN
            )
        )
    return events


@st.composite
def pod_streams(draw: st.DrawFn) -> list[PodEvent]:
    events = []
    for version, at in enumerate(draw(instants), 1):
        deleted = draw(st.integers(0, 9)) == 0
        name = draw(st.sampled_from(["web-0", "web-1"]))
        pod = Pod("ns", name, f"{name}-{draw(st.integers(0, 1))}", str(version), "n", tuple(draw(tolerations)))
        events.append(
            PodEvent(
                type=EventType.DELETED if deleted else EventType.MODIFIED, pod=pod, at_us=at * SECOND, origin=ORIGIN
            )
        )
    return events


def outcome(events: list[NodeEvent | PodEvent]) -> tuple[object, dict[str, object]]:
    """What is owed to each pod after all events."""
    aggregate = NodeAggregate("c", "n")
    for event in events:
        if isinstance(event, NodeEvent):
            apply_node(aggregate, event, RULES)
        else:
            apply_pod(aggregate, event, RULES)
    due = {uid: None if pod.eviction is None else pod.eviction.due for uid, pod in aggregate.pods.items()}
    return aggregate.node, dict(due)


@given(node_streams(), pod_streams(), st.data())
def test_deadlines_do_not_depend_on_how_the_streams_interleave(
    nodes: list[NodeEvent], pods: list[PodEvent], data: st.DataObject
) -> None:
    turns = data.draw(st.permutations([True] * len(nodes) + [False] * len(pods)))
    left, right = iter(nodes), iter(pods)
    mixed: list[NodeEvent | PodEvent] = [next(left) if turn else next(right) for turn in turns]
    in_time: list[NodeEvent | PodEvent] = sorted([*nodes, *pods], key=lambda event: event.at_us)
    expected = outcome(in_time)
    assert outcome([*nodes, *pods]) == expected
    assert outcome([*pods, *nodes]) == expected
    assert outcome(mixed) == expected
