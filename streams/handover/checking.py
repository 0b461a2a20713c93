"""`evictstream handover check`: what acts, what is there, and what every pod is to the policy."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from evictstream.streams.handover.acting import (
    ActingPolicy,
    FoundPolicy,
    edited_objects,
    found_policies,
    is_guard_there,
    namespace_labels,
    probe_policy,
    selector_expressions,
)
from evictstream.streams.handover.api_requests import ApiRequests
from evictstream.streams.handover.pod_states import HandoverState, NamespaceRules, state_of
from evictstream.streams.handover.policy_objects import OPT_OUT_LABEL

PROBE_NAMESPACE = "default"
"""Where a pod is created in a dry run, unless another namespace is asked for, or it is left out."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandoverReport:
    """What `check` has found.

    Attributes:
        acting: what the policy does in `probed`; None if nothing.
        probed: the namespace of the pod that was created in a dry run.
        policies: of this program, by their objects.
        is_guarded: whether the guard acts.
        rules: namespaces that the binding leaves out; without one it selects all.
        is_bound: whether there is a binding.
        namespaces: pods by state, for each namespace that has any.
        edited: the binding and objects of the guard that do something else than this program writes, by kind and name.
    """

    acting: ActingPolicy | None
    probed: str
    policies: Sequence[FoundPolicy]
    is_guarded: bool
    rules: NamespaceRules
    is_bound: bool
    namespaces: Mapping[str, collections.Counter[HandoverState]]
    edited: Sequence[str] = ()

    @property
    def totals(self) -> collections.Counter[HandoverState]:
        """Pods by state."""
        return sum(self.namespaces.values(), collections.Counter())

    def problems(self) -> list[str]:
        """Return what somebody has to do something about, for people."""
        found = []
        if not self.policies:
            found.append("there is no policy: `evictstream handover policy` prints one")
        elif not self.is_bound:
            found.append("the policy has no binding, so it is off")
        elif self.acting is None:
            found.append(
                f"the policy does not act in the namespace {self.probed}: it is left out there, its expressions fail,"
                " or this API server has not read it yet"
            )
        if len(self.policies) > 1:
            names = ", ".join(each.name for each in self.policies)
            found.append(f"there are several policies ({names}); delete all but one")
        for each in self.policies:
            if each.is_older:
                found.append(f"the policy {each.name} is older than this program: apply it once more")
            elif each.is_edited:
                found.append(f"the policy {each.name} was edited: it is not what this program writes")
        found += [f"the {each} was edited: it is not what this program writes" for each in self.edited]
        totals = self.totals
        if self.acting is not None and totals[HandoverState.TO_MOVE]:
            found.append(f"{totals[HandoverState.TO_MOVE]} pods are still to be moved: `evictstream handover move`")
        if totals[HandoverState.UNREADABLE]:
            found.append(f"{totals[HandoverState.UNREADABLE]} pods have an annotation that counts as absent")
        return found


def namespace_rules(requests: ApiRequests) -> tuple[NamespaceRules, bool]:
    """Read which namespaces the policy leaves out, and whether it is bound.

    Raises:
        KubernetesError, StoppedError: as `ApiRequests.get`.
    """
    expressions = selector_expressions(requests)
    rules = NamespaceRules(expressions=expressions or (), labels=namespace_labels(requests))
    return rules, expressions is not None


def probed_namespace(wanted: str | None, rules: NamespaceRules) -> str:
    """Return where to create a pod in a dry run: where the policy should act, if any namespace is such."""
    if wanted is not None:
        return wanted
    inside = [name for name in (PROBE_NAMESPACE, *sorted(rules.labels)) if rules.why_out(name) is None]
    return inside[0] if inside else PROBE_NAMESPACE


def check_handover(requests: ApiRequests, namespace: str | None, *, tell: Callable[[int], None]) -> HandoverReport:
    """Look at everything; writes nothing.

    Args:
        requests: to the cluster.
        namespace: only its pods; None for all.
        tell: called with the number of pods so far.

    Raises:
        KubernetesError: the API server does not answer, or refuses something.
        StoppedError: a signal has come.
    """
    rules, is_bound = namespace_rules(requests)
    probed = probed_namespace(namespace, rules)
    counts = collections.defaultdict[str, collections.Counter[HandoverState]](collections.Counter)
    acting = probe_policy(requests, probed)
    policies, is_guarded = found_policies(requests), is_guard_there(requests)
    edited = edited_objects(requests)
    for number, pod in enumerate(requests.pods(namespace, None)):
        counts[pod.namespace][state_of(pod, rules)] += 1
        tell(number)
    return HandoverReport(
        acting=acting,
        probed=probed,
        policies=policies,
        is_guarded=is_guarded,
        rules=rules,
        is_bound=is_bound,
        namespaces=dict(sorted(counts.items())),
        edited=edited,
    )


def opted_out(rules: NamespaceRules) -> list[str]:
    """Return the namespaces that have opted out."""
    return sorted(name for name, labels in rules.labels.items() if labels.get(OPT_OUT_LABEL) == "off")


def excluded(rules: NamespaceRules) -> list[str]:
    """Return the namespaces that the binding leaves out."""
    return sorted(name for name in rules.labels if rules.why_out(name) is HandoverState.EXCLUDED)
