"""PodTolerationRestriction: defaults and an allow list of tolerations per namespace (semantics.md 9.4).

Source: `plugin/pkg/admission/podtolerationrestriction/admission.go`. The API server runs it on create and update of
pods, but only if it is enabled.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from evictstream.kit.rules.admission.annotations import namespace_tolerations
from evictstream.kit.rules.admission.daemon_sets import MEMORY_PRESSURE
from evictstream.kit.rules.admission.origins import AddedBy, AdmittedToleration, plain, written
from evictstream.kit.rules.admission.supersets import first_not_allowed, merge
from evictstream.models.kubernetes.taints import NO_SCHEDULE
from evictstream.models.kubernetes.tolerations import EXISTS, Toleration, Tolerations

DEFAULT_TOLERATIONS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOW_LIST_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

MEMORY_PRESSURE_TOLERATION: Final = Toleration(key=MEMORY_PRESSURE, operator=EXISTS, effect=NO_SCHEDULE)


class Operation(enum.StrEnum):
    """The request to the API server: create or update of a pod."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"


class ClusterTolerations(msgspec.Struct, frozen=True):
    """The plugin's configuration file, in use where a namespace lacks the annotation.

    Attributes:
        default: tolerations that pods get.
        allowed: the allow list, `whitelist` in the file; an empty one allows everything.
    """

    default: Tolerations = ()
    allowed: Tolerations = ()


class Restricted(msgspec.Struct, frozen=True):
    """The outcome for one pod.

    Attributes:
        admitted: the tolerations that the pod has now, or would have had if it was refused.
        refused: the first toleration that is not allowed; None if the pod is accepted.
        message: the API server's own message, for which people search; empty if the pod is accepted.
    """

    admitted: tuple[AdmittedToleration, ...]
    refused: Toleration | None = None
    message: str = ""


NO_CLUSTER_TOLERATIONS: Final = ClusterTolerations()


def pod_toleration_restriction(
    admitted: Sequence[AdmittedToleration],
    annotations: Mapping[str, str],
    *,
    cluster: ClusterTolerations = NO_CLUSTER_TOLERATIONS,
    is_best_effort: bool,
    operation: Operation = Operation.CREATE,
) -> Restricted:
    """Merge defaults into a pod and compare the outcome with the allow list.

    - On create, the pod gets the defaults of the namespace, or the cluster's if the namespace has no such annotation.
      An empty annotation or list means "no defaults", also none of the cluster.
    - On create and update, a pod that is not best-effort tolerates memory pressure.
    - If one of these steps added something, the list is merged: tolerations that another one covers are dropped, also
      the pod's own.
    - On create and update, every toleration needs a superset in the allow list, if that is not empty. Tolerations that
      the plugin itself added are no exception.

    Args:
        admitted: the tolerations of the pod so far.
        annotations: of the namespace.
        cluster: the plugin's configuration.
        is_best_effort: see `evictstream.kit.rules.admission.quality`.
        operation: create or update.

    Raises:
        AnnotationError: an annotation that is needed is no list of tolerations; the API server refuses the pod.
    """
    extra: tuple[AdmittedToleration, ...] = ()
    if operation is Operation.CREATE:
        defaults = namespace_tolerations(annotations, DEFAULT_TOLERATIONS_ANNOTATION)
        if defaults is None:
            extra = written(cluster.default, AddedBy.CLUSTER_DEFAULTS)
        else:
            extra = written(defaults, AddedBy.NAMESPACE_DEFAULTS)
    if not is_best_effort:
        extra = (*extra, AdmittedToleration(MEMORY_PRESSURE_TOLERATION, AddedBy.MEMORY_PRESSURE))
    result = merge(admitted, extra) if extra else tuple(admitted)
    if not result:
        return Restricted(result)
    allowed, whose = namespace_tolerations(annotations, ALLOW_LIST_ANNOTATION), "namespace"
    if allowed is None:
        allowed, whose = cluster.allowed, "cluster"
    refused = first_not_allowed(plain(result), allowed)
    if refused is None:
        return Restricted(result)
    return Restricted(
        result,
        refused,
        f"pod tolerations (possibly merged with namespace default tolerations) conflict with its {whose} whitelist",
    )
