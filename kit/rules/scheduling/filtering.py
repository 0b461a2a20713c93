"""Whether the scheduler may put a pod on a node, as far as taints and cordons decide (semantics.md 5).

Sources: `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go` and
`pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go`. Other plugins (resources, affinity, volumes)
may still refuse the node; they are not modelled.
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from evictstream.models.kubernetes.matching import first_match
from evictstream.models.kubernetes.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE, Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.kubernetes.verdict import TaintCoverage

HARD_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
"""Effects that make a node impossible for a pod that does not tolerate the taint."""

TAINT_TOLERATION: Final = "TaintToleration"
"""Name of the plugin that filters by taints."""
NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
"""Name of the plugin that filters by cordons."""

UNTOLERATED_REASON: Final = "node(s) had untolerated taint(s)"
UNSCHEDULABLE_REASON: Final = "node(s) were unschedulable"

UNSCHEDULABLE_TAINT: Final = Taint(UNSCHEDULABLE, "", NO_SCHEDULE)
"""The taint that a pod must tolerate to land on a cordoned node, whether or not the node has it."""


class FilterCode(enum.StrEnum):
    """The answer of a filter about a node."""

    SUCCESS = "Success"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """The pod cannot land there, and evicting other pods cannot help."""


class FilterVerdict(msgspec.Struct, frozen=True, gc=False):
    """Whether a pod may land on a node, and what decided it.

    Attributes:
        code: the verdict.
        plugin: name of the plugin that refused, empty if none did.
        reason: text in the events of the pod, empty if no plugin refused.
        taint: the first untolerated one, None if no plugin refused.
        coverage: the taints that were checked, in node order, each with the toleration that covers it. In a refusal
            the taint that decided is the last one.
    """

    code: FilterCode
    plugin: str = ""
    reason: str = ""
    taint: Taint | None = None
    coverage: tuple[TaintCoverage, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the pod may land on the node."""
        return self.code == FilterCode.SUCCESS


def filter_node(
    tolerations: Sequence[Toleration],
    taints: Iterable[Taint],
    *,
    unschedulable: bool = False,
    comparison_operators: bool = False,
) -> FilterVerdict:
    """Decide whether a pod may land on a node; the first plugin that refuses gives the reason, cordon before taints.

    Args:
        tolerations: of the pod, in pod order; their seconds do not matter.
        taints: of the node, in node order.
        unschedulable: `node.spec.unschedulable`, set by cordon.
        comparison_operators: whether `Gt` and `Lt` compare.
    """
    cordon = filter_cordon(tolerations, unschedulable=unschedulable, comparison_operators=comparison_operators)
    if not cordon.fits:
        return cordon
    verdict = filter_taints(tolerations, taints, comparison_operators=comparison_operators)
    return msgspec.structs.replace(verdict, coverage=cordon.coverage + verdict.coverage)


def filter_taints(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], *, comparison_operators: bool = False
) -> FilterVerdict:
    """Decide by the taints alone: an untolerated `NoSchedule` or `NoExecute` refuses the pod."""
    coverage = []
    for taint in taints:
        if taint.effect not in HARD_EFFECTS:
            continue
        toleration = first_match(tolerations, taint, comparison_operators=comparison_operators)
        coverage.append(TaintCoverage(taint, toleration))
        if toleration is None:
            return _refusal(TAINT_TOLERATION, UNTOLERATED_REASON, tuple(coverage))
    return FilterVerdict(FilterCode.SUCCESS, coverage=tuple(coverage))


def filter_cordon(
    tolerations: Sequence[Toleration], *, unschedulable: bool, comparison_operators: bool = False
) -> FilterVerdict:
    """Decide by the cordon alone: it refuses a pod that does not tolerate `UNSCHEDULABLE_TAINT`.

    Args:
        tolerations: of the pod, in pod order.
        unschedulable: `node.spec.unschedulable`.
        comparison_operators: whether `Gt` and `Lt` compare; they never match this taint, which has no value.
    """
    if not unschedulable:
        return FilterVerdict(FilterCode.SUCCESS)
    toleration = first_match(tolerations, UNSCHEDULABLE_TAINT, comparison_operators=comparison_operators)
    coverage = (TaintCoverage(UNSCHEDULABLE_TAINT, toleration),)
    if toleration is None:
        return _refusal(NODE_UNSCHEDULABLE, UNSCHEDULABLE_REASON, coverage)
    return FilterVerdict(FilterCode.SUCCESS, coverage=coverage)


def _refusal(plugin: str, reason: str, coverage: tuple[TaintCoverage, ...]) -> FilterVerdict:
    return FilterVerdict(
        FilterCode.UNSCHEDULABLE_AND_UNRESOLVABLE,
        plugin=plugin,
        reason=reason,
        taint=coverage[-1].taint,
        coverage=coverage,
    )
