"""Who would leave, when, who would stay, and where those who leave could go."""

import enum
import functools
from collections.abc import Iterator

import msgspec

from evictstream.kit.what_if.change import NodeChoice, PlannedChange, changed_aggregate, changed_facts, is_changed
from evictstream.kit.what_if.facts import UNKNOWN_POD, NodeFacts, PodFacts
from evictstream.kit.what_if.places import Places, PlaceToGo
from evictstream.models.eviction import Due, NodeAggregate, NothingDue, PodState, RuleParameters, decide
from evictstream.models.eviction.cluster import one_is_ready_since
from evictstream.models.eviction.decision import Coverages
from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.matching import first_match
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.vocabulary import Verdict

Decision = Due | NothingDue


class PodFate(enum.StrEnum):
    """What a decision means for a pod at an instant."""

    AT_ONCE = "LeavesAtOnce"
    LATER = "LeavesLater"
    STAYS = "Stays"


class PreviewNode(msgspec.Struct, frozen=True):
    """A node with its pods, as the service knows them, and as people ask for them."""

    aggregate: NodeAggregate
    facts: NodeFacts


class PreviewCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster.

    Attributes:
        nodes: existing nodes, by name.
        pods: facts by UID; those of others are not known.
    """

    nodes: dict[str, PreviewNode]
    pods: dict[str, PodFacts]


class PodOutcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What would become of a pod on a chosen node.

    Attributes:
        address: `<namespace>/<name>`.
        workload: its controller, empty without one, None if that is not known.
        zone: of its node, None if that is not known.
        before: the decision without the change.
        after: the decision with it.
        taint: the one that decides; of a pod that stays the first `NoExecute` taint of its node, if there is one.
        toleration: the one in use for `taint`.
        place: where it could go, None for a pod that stays on a node that is not cordoned.
    """

    address: str
    uid: str
    node: str
    zone: str | None
    workload: str | None
    before: Decision
    after: Decision
    taint: Taint | None
    toleration: Toleration | None
    place: PlaceToGo | None

    @property
    def namespace(self) -> str:
        """Of the pod."""
        return self.address.partition("/")[0]


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do.

    Attributes:
        at_us: when the change is thought to be seen, microseconds since 1970.
        chosen: nodes that were chosen.
        changed: those of them that would be other than before.
        unlabelled: nodes whose labels are not all known, so that no selector can choose them.
        outcomes: of the pods on chosen nodes, by node and UID.
    """

    at_us: int
    chosen: int
    changed: int
    unlabelled: int
    outcomes: list[PodOutcome]

    def fate(self, outcome: PodOutcome) -> PodFate:
        """Say what becomes of a pod."""
        return fate_of(outcome.after, self.at_us)

    def is_moved(self, outcome: PodOutcome) -> bool:
        """Tell whether the change makes a difference to a pod: it leaves at another time, or only with or without."""
        return leaves_us(outcome.before, self.at_us) != leaves_us(outcome.after, self.at_us)

    def seconds(self, outcome: PodOutcome) -> float | None:
        """Return after how many seconds a pod has to leave; None if it stays."""
        at_us = leaves_us(outcome.after, self.at_us)
        return None if at_us is None else (at_us - self.at_us) / SECOND_US


def fate_of(decision: Decision, at_us: int) -> PodFate:
    """Say what a decision means at an instant."""
    leaves = leaves_us(decision, at_us)
    if leaves is None:
        return PodFate.STAYS
    return PodFate.LATER if leaves > at_us else PodFate.AT_ONCE


def leaves_us(decision: Decision, at_us: int) -> int | None:
    """Return when a pod has to leave, not before `at_us`; None if it stays."""
    if isinstance(decision, NothingDue):
        return None
    # An untolerated pod is due now, whichever of node and pod was seen first.
    return at_us if decision.verdict is Verdict.UNTOLERATED else max(decision.deadline_us, at_us)


def preview(
    cluster: PreviewCluster, change: PlannedChange, choice: NodeChoice, *, at_us: int, rules: RuleParameters
) -> Preview:
    """Work out what a change would do to the pods of the chosen nodes.

    Args:
        cluster: as it is known; stays as it is.
        change: what would be done.
        choice: to which nodes, and to the pods of which nodes.
        at_us: when it would be seen, microseconds since 1970.
        rules: parameters of the rules.
    """
    chosen = {name for name, node in cluster.nodes.items() if choice.chooses(name, node.facts)}
    after = {
        name: changed_facts(node.facts, change) if name in chosen else node.facts
        for name, node in cluster.nodes.items()
    }
    places = Places(after.items(), comparison_operators=rules.comparison_operators)
    outcomes = list[PodOutcome]()
    has_ready_since = functools.partial(one_is_ready_since, [node.aggregate for node in cluster.nodes.values()])
    for name in sorted(chosen):
        aggregate = cluster.nodes[name].aggregate
        changed = changed_aggregate(
            aggregate, after[name], change, at_us=at_us, rules=rules, has_ready_since=has_ready_since
        )
        outcomes += _outcomes(cluster, aggregate, changed, after[name], places, rules, is_cordoned=change.cordon)
    return Preview(
        at_us=at_us,
        chosen=len(chosen),
        changed=sum(is_changed(cluster.nodes[name].facts, after[name]) for name in chosen),
        unlabelled=sum(not node.facts.has_all_labels for node in cluster.nodes.values()),
        outcomes=outcomes,
    )


def changed_nodes(
    cluster: PreviewCluster, change: PlannedChange, choice: NodeChoice, *, at_us: int, rules: RuleParameters
) -> Iterator[NodeAggregate]:
    """Give all nodes of the cluster as they would be known once the change was seen; arguments as for `preview`."""
    has_ready_since = functools.partial(one_is_ready_since, [node.aggregate for node in cluster.nodes.values()])
    for name, node in cluster.nodes.items():
        if not choice.chooses(name, node.facts):
            yield node.aggregate
            continue
        facts = changed_facts(node.facts, change)
        yield changed_aggregate(
            node.aggregate, facts, change, at_us=at_us, rules=rules, has_ready_since=has_ready_since
        )


def _outcomes(
    cluster: PreviewCluster,
    aggregate: NodeAggregate,
    changed: NodeAggregate,
    facts: NodeFacts,
    places: Places,
    rules: RuleParameters,
    *,
    is_cordoned: bool,
) -> Iterator[PodOutcome]:
    covered_before: Coverages = {}
    covered: Coverages = {}
    for uid in sorted(aggregate.pods):
        pod = changed.pods[uid]
        pod_facts = cluster.pods.get(uid, UNKNOWN_POD)
        after = decide(changed.node, pod, rules, covered)
        is_asked = isinstance(after, Due) or (is_cordoned and not pod.exemptions)
        taint, toleration = _reason(changed, pod, after, rules)
        yield PodOutcome(
            address=pod.address,
            uid=uid,
            node=aggregate.name,
            zone=facts.zone,
            workload=pod_facts.workload,
            before=decide(aggregate.node, aggregate.pods[uid], rules, covered_before),
            after=after,
            taint=taint,
            toleration=toleration,
            place=places.place_for(pod.tolerations, pod_facts.placement) if is_asked else None,
        )


def _reason(
    aggregate: NodeAggregate, pod: PodState, decision: Decision, rules: RuleParameters
) -> tuple[Taint | None, Toleration | None]:
    if isinstance(decision, Due):
        return decision.taint, decision.toleration
    if decision is not NothingDue.TOLERATED or aggregate.node is None:
        return None, None
    taint = aggregate.node.taints[0].taint
    return taint, first_match(pod.tolerations, taint, comparison_operators=rules.comparison_operators)
