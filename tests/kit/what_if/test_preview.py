"""Previews of changes of a small cluster: who leaves, when, why, and how that is counted."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.kubectl import parse_taints
from evictstream.kit.rules.scheduling.node_affinity import ANYWHERE, NodePlacement
from evictstream.kit.rules.selectors import parse_selector
from evictstream.kit.what_if.change import NodeChoice, PlannedChange
from evictstream.kit.what_if.facts import NodeFacts, PodFacts
from evictstream.kit.what_if.places import PlaceToGo
from evictstream.kit.what_if.preview import PodFate, Preview, PreviewCluster, PreviewNode, preview
from evictstream.kit.what_if.totals import leaving_times, reasons_to_stay, total, totals_by, workload_of
from evictstream.models.eviction import Due, NodeAggregate, NothingDue, RuleParameters
from evictstream.models.eviction.state import MIRROR, TERMINATING, NodeState, Outage, PodState, TaintState
from evictstream.models.kubernetes import Taint, Toleration
from evictstream.models.kubernetes.tolerations import Tolerations

NOW = 1_000_000_000
S = 1_000_000
RULES = RuleParameters()
DOWN = Taint("down", "", "NoExecute")
SOME = (Toleration("down", "Exists", toleration_seconds=30),)
EVER = (Toleration("", "Exists"),)
N1 = NodeChoice(names=frozenset({"n-1"}))


def node(name: str, pods: dict[str, Tolerations], *taints: Taint, exempt: int = 0, zone: str = "a") -> PreviewNode:
    """Make a node that has had its taints, and its pods, for ten seconds."""
    found = NodeAggregate("lab", name)
    since = NOW - 10 * S
    states = tuple(TaintState(one, since, since, None) for one in taints if one.effect == "NoExecute")
    found.node = NodeState(uid=f"uid-{name}", version=1, taints=states)
    for pod, tolerations in pods.items():
        found.put_pod(
            PodState(
                uid=pod,
                address=f"shop/{pod}",
                version=1,
                tolerations=tolerations,
                since_us=since,
                tolerations_since_us=since,
                exemptions=exempt,
            )
        )
    labels = {"topology.kubernetes.io/zone": zone, "pool": name}
    return PreviewNode(found, NodeFacts(labels=labels, has_all_labels=True, taints=taints))


def cluster(*nodes: PreviewNode, **pods: PodFacts) -> PreviewCluster:
    uids = {uid: PodFacts("", ANYWHERE) for one in nodes for uid in one.aggregate.pods}
    return PreviewCluster(nodes={one.aggregate.name: one for one in nodes}, pods=uids | pods)


def change(*taints: str, cordon: bool = False, **seconds: int) -> PlannedChange:
    return PlannedChange(taints=parse_taints(taints), cordon=cordon, toleration_seconds=seconds)


def see(known: PreviewCluster, planned: PlannedChange, choice: NodeChoice = N1) -> Preview:
    return preview(known, planned, choice, at_us=NOW, rules=RULES)


@pytest.mark.parametrize(
    ("known", "planned", "fate", "seconds", "moved"),
    [
        pytest.param(node("n-1", {"p": ()}), change("down:NoExecute"), "LeavesAtOnce", 0, True, id="taint"),
        pytest.param(node("n-1", {"p": SOME}), change("down:NoExecute"), "LeavesLater", 30, True, id="tolerated"),
        pytest.param(node("n-1", {"p": EVER}), change("down:NoExecute"), "Stays", None, False, id="forever"),
        pytest.param(node("n-1", {"p": ()}), change("down:NoSchedule"), "Stays", None, False, id="another effect"),
        pytest.param(
            node("n-1", {"p": SOME}, DOWN), change("down:NoExecute"), "LeavesLater", 20, False, id="runs already"
        ),
        pytest.param(
            node("n-1", {"p": SOME}, DOWN), change("more:NoExecute"), "LeavesAtOnce", 0, True, id="a second taint"
        ),
        pytest.param(node("n-1", {"p": SOME}, DOWN), change("down-"), "Stays", None, True, id="taken away"),
        pytest.param(node("n-1", {"p": SOME}, DOWN), change("down:NoSchedule-"), "LeavesLater", 20, False, id="other"),
        pytest.param(node("n-1", {"p": SOME}, DOWN), change(down=60), "LeavesLater", 50, True, id="longer"),
        pytest.param(node("n-1", {"p": SOME}, DOWN), change(down=5), "LeavesAtOnce", 0, True, id="over already"),
        pytest.param(node("n-1", {"p": EVER}, DOWN), change(down=5), "Stays", None, False, id="no time to change"),
        pytest.param(node("n-1", {"p": ()}, DOWN), change(cordon=True), "LeavesAtOnce", 0, False, id="due already"),
        pytest.param(node("n-1", {"p": ()}), change(cordon=True), "Stays", None, False, id="cordon"),
        pytest.param(
            node("n-1", {"p": ()}, exempt=TERMINATING), change("down:NoExecute"), "Stays", None, False, id="terminating"
        ),
    ],
)
def test_what_becomes_of_a_pod(
    known: PreviewNode,
    planned: PlannedChange,
    fate: str,
    seconds: float | None,
    moved: bool,  # noqa: FBT001 - a table
) -> None:
    found = see(cluster(known), planned)
    (pod,) = found.outcomes
    assert (found.fate(pod), found.seconds(pod), found.is_moved(pod)) == (PodFate(fate), seconds, moved)


def test_what_is_known_stays_as_it_is() -> None:
    known = cluster(node("n-1", {"p": SOME}, DOWN))
    before = repr((known.nodes["n-1"].aggregate.node, known.nodes["n-1"].aggregate.pods, known.nodes["n-1"].facts))
    see(known, change("more:NoExecute", cordon=True, down=5))
    aggregate = known.nodes["n-1"].aggregate
    assert repr((aggregate.node, aggregate.pods, known.nodes["n-1"].facts)) == before


def test_a_node_beyond_a_limit_is_left_alone() -> None:
    known = node("n-1", {"p": (), "q": ()})
    known.aggregate.node = NodeState(uid="uid-n-1", version=1, is_undecidable=True)
    found = see(cluster(known), PlannedChange())
    assert [one.after for one in found.outcomes] == [NothingDue.UNDECIDABLE] * 2


@pytest.mark.parametrize(
    ("ready_since", "seconds"), [(NOW - 100 * S, 10), (NOW - 10 * S, 30), (None, 30)], ids=["before", "after", "never"]
)
def test_an_outage_goes_on_as_in_the_service(ready_since: int | None, seconds: int) -> None:
    """A health taint is put back 20 s after the controller manager took it off a dead node."""
    health = "node.kubernetes.io/unreachable"
    dead, other = node("n-1", {"p": (Toleration(health, "Exists", toleration_seconds=30),)}), node("n-2", {})
    for pod in dead.aggregate.pods.values():
        pod.since_us = NOW - 200 * S
    outage = Outage(NOW - 20 * S, NOW - 15 * S)
    dead.aggregate.node = NodeState(uid="uid-n-1", version=1, outage=outage)
    other.aggregate.node = NodeState(uid="uid-n-2", version=1, ready_since_us=ready_since)
    found = see(cluster(dead, other), change(f"{health}:NoExecute"))
    assert [one.after.deadline_us for one in found.outcomes if isinstance(one.after, Due)] == [NOW + seconds * S]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        pytest.param(NodeChoice(), ["n-1", "n-2", "n-3"], id="all"),
        pytest.param(N1, ["n-1"], id="name"),
        pytest.param(NodeChoice(zone="b"), ["n-2", "n-3"], id="zone"),
        pytest.param(NodeChoice(selector=parse_selector("pool in (n-1,n-3)")), ["n-1", "n-3"], id="selector"),
        pytest.param(NodeChoice(zone="b", selector=parse_selector("pool!=n-3")), ["n-2"], id="both"),
        pytest.param(NodeChoice(zone="c"), [], id="none"),
    ],
)
def test_which_nodes_are_chosen(choice: NodeChoice, names: list[str]) -> None:
    known = cluster(*(node(f"n-{one}", {f"p{one}": ()}, zone="a" if one == 1 else "b") for one in (1, 2, 3)))
    found = see(known, change("down:NoExecute"), choice)
    assert ([one.node for one in found.outcomes], found.chosen) == (names, len(names))


def test_nodes_with_unknown_labels_are_chosen_by_no_selector() -> None:
    trimmed = PreviewNode(node("n-2", {"q": ()}).aggregate, NodeFacts())
    known = cluster(node("n-1", {"p": ()}), trimmed)
    found = see(known, change("down:NoExecute"), NodeChoice(selector=parse_selector("!absent")))
    assert ([one.node for one in found.outcomes], found.unlabelled) == (["n-1"], 1)


def test_where_pods_could_go_counts_the_change_itself() -> None:
    known = cluster(
        node("n-1", {"p": (), "bound": (), "stays": EVER}),
        node("n-2", {}),
        bound=PodFacts("", NodePlacement((("pool", "n-1"),))),
    )
    found = {one.uid: one.place for one in see(known, change("down:NoExecute")).outcomes}
    assert found == {"p": PlaceToGo.SOMEWHERE, "bound": PlaceToGo.NOWHERE, "stays": None}
    both = see(known, change("down:NoExecute"), NodeChoice()).outcomes
    assert {one.uid: one.place for one in both} == {"p": PlaceToGo.NOWHERE, "bound": PlaceToGo.NOWHERE, "stays": None}


def test_a_cordon_says_who_could_not_be_drained() -> None:
    known = cluster(
        node("n-1", {"p": (), "bound": ()}),
        node("n-2", {}),
        bound=PodFacts("", NodePlacement((("pool", "n-1"),))),
    )
    found = see(known, change(cordon=True))
    assert {one.uid: one.place for one in found.outcomes} == {"p": PlaceToGo.SOMEWHERE, "bound": PlaceToGo.NOWHERE}
    counts = total(found)
    assert (counts.stays, counts.nowhere, counts.undrainable, found.changed) == (2, 0, 1, 1)


def test_totals() -> None:
    known = cluster(
        node("n-1", {"cart-1": (), "cart-2": SOME, "agent": EVER}, Taint("soft", "", "PreferNoSchedule")),
        node("n-2", {"lone": (), "mirror": ()}, exempt=MIRROR, zone="b"),
        **{"cart-1": PodFacts("Deployment/cart", ANYWHERE), "cart-2": PodFacts("Deployment/cart", ANYWHERE)},
        agent=PodFacts("DaemonSet/agent", ANYWHERE),
        mirror=PodFacts(None, None),
    )
    found = see(known, change("down:NoExecute"), NodeChoice())
    whole = total(found)
    assert (whole.pods, whole.at_once, whole.later, whole.stays, whole.nowhere) == (5, 1, 1, 3, 2)
    assert leaving_times(found) == {0: 1, 30: 1}
    assert reasons_to_stay(found) == {NothingDue.MIRROR: 2, NothingDue.TOLERATED: 1}
    by_workload = {name: (one.leaving, one.stays) for name, one in totals_by(found, workload_of).items()}
    assert by_workload == {
        "shop/Deployment/cart": (2, 0),
        None: (0, 1),
        "shop/(no controller)": (0, 1),
        "shop/DaemonSet/agent": (0, 1),
    }
    by_zone = {name: (one.leaving, one.stays) for name, one in totals_by(found, lambda one: one.zone).items()}
    assert by_zone == {"a": (2, 1), "b": (0, 2)}


def test_the_toleration_in_use_is_named() -> None:
    found = see(cluster(node("n-1", {"p": SOME, "q": EVER, "r": ()})), change("down=x:NoExecute"))
    reasons = {one.uid: (one.taint, one.toleration) for one in found.outcomes}
    taint = Taint("down", "x", "NoExecute")
    assert reasons == {"p": (taint, SOME[0]), "q": (taint, EVER[0]), "r": (taint, None)}
