"""Whether the kubelet of a node admits a pod, as far as taints decide (semantics.md 5).

The kubelet checks a pod on arrival, and every pod of the node after its own restart. It ignores taints that are added
later. Sources: `generalFilter` and `Admit` in `pkg/kubelet/lifecycle/predicate.go`, and
`pkg/kubelet/types/pod_update.go` for static pods.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from evictstream.kit.rules.scheduling.filtering import TAINT_TOLERATION
from evictstream.models.kubernetes.matching import first_untolerated
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint
from evictstream.models.kubernetes.tolerations import Toleration

SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
_API_SERVER: Final = "api"

UNTOLERATED_MESSAGE: Final = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


class AdmissionVerdict(msgspec.Struct, frozen=True, gc=False):
    """Whether the kubelet admits a pod.

    Attributes:
        admitted: whether the kubelet admits the pod; otherwise the pod fails.
        reason: `status.reason` of the failed pod, empty if it is admitted.
        message: of the kubelet about the failed pod, empty if it is admitted.
        taint: the first untolerated `NoExecute` taint, None if the pod is admitted.
    """

    admitted: bool
    reason: str = ""
    message: str = ""
    taint: Taint | None = None


_ADMITTED: Final = AdmissionVerdict(admitted=True)


def kubelet_admission(
    tolerations: Sequence[Toleration],
    taints: Sequence[Taint],
    *,
    is_static: bool = False,
    ran_before_restart: bool = False,
    not_evict_pod_on_kubelet_restart: bool = False,
    comparison_operators: bool = False,
) -> AdmissionVerdict:
    """Decide by the `NoExecute` taints; `NoSchedule` and the seconds of tolerations do not matter.

    Args:
        tolerations: of the pod, in pod order.
        taints: of the node, in node order.
        is_static: the pod comes from a file or an address and not from the API server; such pods are exempt.
        ran_before_restart: the kubelet had started the pod before it was itself restarted.
        not_evict_pod_on_kubelet_restart: the gate `NotEvictPodOnKubeletRestart`, with which such pods are exempt.
        comparison_operators: whether `Gt` and `Lt` compare.
    """
    if is_static or (not_evict_pod_on_kubelet_restart and ran_before_restart):
        return _ADMITTED
    taint = first_untolerated(tolerations, taints, (NO_EXECUTE,), comparison_operators=comparison_operators)
    if taint is None:
        return _ADMITTED
    return AdmissionVerdict(admitted=False, reason=TAINT_TOLERATION, message=UNTOLERATED_MESSAGE, taint=taint)


def is_static_pod(annotations: Mapping[str, str]) -> bool:
    """Return whether the annotations say that the kubelet has a pod from a file or an address, not the API server.

    Args:
        annotations: `metadata.annotations`. Without the annotation `kubernetes.io/config.source`, which the kubelet
            sets itself, a pod is not static.
    """
    return annotations.get(SOURCE_ANNOTATION, _API_SERVER) != _API_SERVER
