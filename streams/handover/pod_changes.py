"""Moves pods under the policy, and restores them: one request for each pod, counted by what came of it."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import msgspec

from evictstream.models.kubernetes.handed_over import spec_seconds
from evictstream.models.kubernetes.shapes import NULL, TOLERATIONS_ANNOTATION
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.streams.handover.api_requests import DRY_RUN, ApiRequests, StoppedError
from evictstream.streams.handover.pod_states import ClusterPod, HandoverState, NamespaceRules, decode_pod, state_of
from evictstream.streams.kubernetes.answers import ApiAnswer

MOST_EXAMPLES: Final = 20
"""Pods that could not be changed, by name; all of them are counted."""

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_INVALID: Final = 422
_MOST_CONFLICTS: Final = 4
"""Of one pod: something else writes it all the time."""

NOT_MOVED: Final = "notMoved"
"""Of pods that have no annotation: there is nothing to restore."""

_ANNOTATION_PATH: Final = f"/metadata/annotations/{TOLERATIONS_ANNOTATION.replace('/', '~1')}"


class ChangeOutcome(enum.StrEnum):
    """What came of a request for one pod."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    GONE = "gone"
    FAILED = "failed"


@dataclasses.dataclass(kw_only=True)
class ChangeReport:
    """What was done.

    Attributes:
        outcomes: pods by what came of their request.
        left: pods that were not asked for, by what they are.
        failures: the first pods that were refused, each with the reason.
        loosened: pods whose seconds are out of the spec, and that are not restored yet: no timer runs for them.
        is_whole: whether all pods were looked at.
    """

    outcomes: collections.Counter[ChangeOutcome] = dataclasses.field(default_factory=collections.Counter)
    left: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    failures: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    loosened: int = 0
    is_whole: bool = False

    @property
    def asked(self) -> int:
        """Pods for which a request was sent."""
        return sum(self.outcomes.values())

    def fail(self, pod: ClusterPod, reason: str) -> ChangeOutcome:
        """Note a pod that could not be changed."""
        if len(self.failures) < MOST_EXAMPLES:
            self.failures.append((f"{pod.namespace}/{pod.name}", reason))
        return ChangeOutcome.FAILED


class PodChange(Protocol):
    """How one pod is changed."""

    def why_not(self, pod: ClusterPod) -> str | None:
        """Return why a pod is left as it is; None if it is to be changed."""

    def apply(self, pod: ClusterPod, report: ChangeReport) -> ChangeOutcome:
        """Send the request for a pod.

        Raises:
            KubernetesError: the API server does not answer.
            StoppedError: a signal has come.
        """


def change_pods(
    requests: ApiRequests,
    pods: Iterable[ClusterPod],
    change: PodChange,
    report: ChangeReport,
    *,
    tell: Callable[[ChangeReport], None],
) -> None:
    """Change pods at the rate of `requests`, until all are done or a signal comes; `report` is right at any moment.

    Raises:
        KubernetesError: the API server does not answer, or refuses to list pods.
    """
    try:
        for pod in pods:
            requests.check_signal()
            tell(report)
            why = change.why_not(pod)
            if why is not None:
                report.left[why] += 1
                continue
            requests.pace()
            report.outcomes[change.apply(pod, report)] += 1
    except StoppedError:
        return
    report.is_whole = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MovePods:
    """An empty patch, which makes the policy look at the pod: only seconds change.

    Attributes:
        requests: where it is sent.
        rules: namespaces that the policy leaves out.
        is_dry_run: whether nothing is to be written.
    """

    requests: ApiRequests
    rules: NamespaceRules
    is_dry_run: bool

    def why_not(self, pod: ClusterPod) -> str | None:
        """Return why a pod is left as it is."""
        state = state_of(pod, self.rules)
        # What seems to be too much is tried: how much the API server computes depends on the length of keys too.
        return None if state in (HandoverState.TO_MOVE, HandoverState.TOO_MANY) else state

    def apply(self, pod: ClusterPod, report: ChangeReport) -> ChangeOutcome:
        """Send it."""
        query = DRY_RUN if self.is_dry_run else {}
        answer = _without_conflict(
            lambda: self.requests.ask("PATCH", pod.path, query, body={}, kind="merge-patch+json")
        )
        if answer.status == _NOT_FOUND:
            return ChangeOutcome.GONE
        if not answer.is_done:
            return report.fail(pod, _reason(answer))
        found = decode_pod(answer.body)
        return ChangeOutcome.CHANGED if state_of(found, self.rules) is HandoverState.MOVED else ChangeOutcome.UNCHANGED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoosenPods:
    """Seconds of a backstop out of the spec, before pods of tainted nodes are restored; what is in force stays.

    A timer of the built-in controller that runs is not set again when seconds become fewer, and is ended when they are
    taken off. Without this step it would evict the pods of tainted nodes so late as the backstop would.

    Attributes:
        requests: where it is sent.
        nodes: returns those that have a `NoExecute` taint.
    """

    requests: ApiRequests
    nodes: Callable[[], frozenset[str]]

    def why_not(self, pod: ClusterPod) -> str | None:
        """Return why a pod is left as it is: no timer runs for it, or none that could be late."""
        node = pod.spec.node_name if pod.spec else None
        if node not in self.nodes():
            return HandoverState.OVER
        return _why_not_looser(pod)

    def apply(self, pod: ClusterPod, report: ChangeReport) -> tuple[ChangeOutcome, ClusterPod]:
        """Send it, and return the pod as it is then; if it has changed meanwhile, what it is now."""
        return _patched_as_read(self.requests, pod, loosening_patch, _why_not_looser, report, is_dry_run=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestorePods:
    """Seconds into the spec and the annotation away, in one patch of exactly the pod that was read.

    Attributes:
        requests: where it is sent.
        is_dry_run: whether nothing is to be written.
    """

    requests: ApiRequests
    is_dry_run: bool

    def why_not(self, pod: ClusterPod) -> str | None:
        """Return why a pod is left as it is: it has no annotation, or is terminating."""
        if pod.metadata is not None and pod.metadata.deletion_timestamp is not None:
            return HandoverState.OVER
        return None if pod.annotation() != NULL else NOT_MOVED

    def apply(self, pod: ClusterPod, report: ChangeReport) -> ChangeOutcome:
        """Send it; if the pod has changed meanwhile, what it is now."""
        is_dry_run = self.is_dry_run
        return _patched_as_read(self.requests, pod, restoring_patch, self.why_not, report, is_dry_run=is_dry_run)[0]


def restoring_patch(pod: ClusterPod) -> list[dict[str, Any]]:
    """Return the JSON patch that restores a pod, if it still is as it was read.

    The seconds in force are written where the spec has others. Those that the policy has cut to 31 years stay cut: with
    what they were the built-in controller would evict at once.
    """
    changes = [
        {"op": "add", "path": f"/spec/tolerations/{place}/tolerationSeconds", "value": one.toleration_seconds}
        for place, one in enumerate(pod.handed().tolerations)
        if one.toleration_seconds != spec_seconds(one)
    ]
    return [*_tests(pod), *changes, {"op": "remove", "path": _ANNOTATION_PATH}]


def loosening_patch(pod: ClusterPod) -> list[dict[str, Any]]:
    """Return the JSON patch that writes what a backstop has moved as the other variant does."""
    tolerations = pod.handed().tolerations
    changes = [
        {"op": "remove", "path": f"/spec/tolerations/{place}/tolerationSeconds"}
        for place, one in enumerate(tolerations)
        if _has_backstop(one)
    ]
    entries = [_entry(one) for one in tolerations if one.built_in_seconds is not msgspec.UNSET]
    text = msgspec.json.encode(entries).decode()
    return [*_tests(pod), *changes, {"op": "replace", "path": _ANNOTATION_PATH, "value": text}]


def _tests(pod: ClusterPod) -> list[dict[str, Any]]:
    metadata = pod.metadata
    assert metadata is not None  # noqa: S101 - every pod of a list has it
    return [
        {"op": "test", "path": "/metadata/uid", "value": metadata.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
    ]


def _why_not_looser(pod: ClusterPod) -> str | None:
    if pod.is_over():
        return HandoverState.OVER
    return None if any(map(_has_backstop, pod.handed().tolerations)) else NOT_MOVED


def _has_backstop(one: Toleration) -> bool:
    return isinstance(one.built_in_seconds, int)


def _entry(one: Toleration) -> dict[str, Any]:
    """Return the entry of a toleration without seconds in the spec, in the policy's order."""
    identity = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    return {**{name: text for name, text in identity.items() if text}, "tolerationSeconds": one.toleration_seconds}


def _patched_as_read(
    requests: ApiRequests,
    pod: ClusterPod,
    patch: Callable[[ClusterPod], list[dict[str, Any]]],
    why_not: Callable[[ClusterPod], str | None],
    report: ChangeReport,
    *,
    is_dry_run: bool,
) -> tuple[ChangeOutcome, ClusterPod]:
    """Patch exactly the pod that was read; if it has changed meanwhile, read it once more. Return what it is then."""
    query = DRY_RUN if is_dry_run else {}
    left = _MOST_CONFLICTS
    while True:
        answer = requests.ask("PATCH", pod.path, query, body=patch(pod), kind="json-patch+json")
        left -= 1
        if answer.is_done:
            found = decode_pod(answer.body)
            return ChangeOutcome.UNCHANGED if why_not(found) is None else ChangeOutcome.CHANGED, found
        if answer.status == _NOT_FOUND:
            return ChangeOutcome.GONE, pod
        if not left or answer.status not in (_CONFLICT, _INVALID):
            return report.fail(pod, _reason(answer)), pod
        now = requests.get(pod.path, ClusterPod)
        if now is None:
            return ChangeOutcome.GONE, pod
        if why_not(now) is not None:
            return ChangeOutcome.UNCHANGED, now
        if _version(pod) == _version(now):  # no test of the patch has failed: the pod itself is refused
            return report.fail(pod, _reason(answer)), pod
        pod = now


def _without_conflict(send: Callable[[], ApiAnswer]) -> ApiAnswer:
    """Send again while something else writes the pod at the same moment; the patch has no version to be out of date."""
    answer = send()
    for _ in range(_MOST_CONFLICTS - 1):
        if answer.status != _CONFLICT:
            break
        answer = send()
    return answer


def _version(pod: ClusterPod) -> tuple[str | None, str | None]:
    metadata = pod.metadata
    return (None, None) if metadata is None else (metadata.uid, metadata.resource_version)


def _reason(answer: ApiAnswer) -> str:
    said = answer.said()
    return f"{answer.status}: {said.message or said.reason or 'no reason given'}"
