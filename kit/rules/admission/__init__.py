"""Where the tolerations of a pod come from: who adds which one, in which order (semantics.md 9).

Each rule takes the tolerations that a pod has so far, each with its origin, and returns those that it has afterwards.
`written` gives tolerations the origin of their author. In a cluster the DaemonSet controller comes first, then the
plugins of the API server in this order: DefaultTolerationSeconds, PodTolerationRestriction, ExtendedResourceToleration
(`pkg/kubeapiserver/options/plugins.go`).
"""

from evictstream.kit.rules.admission.annotations import AnnotationError, namespace_tolerations
from evictstream.kit.rules.admission.daemon_sets import (
    DAEMON_TOLERATIONS,
    HOST_NETWORK_TOLERATION,
    daemon_set_tolerations,
)
from evictstream.kit.rules.admission.default_seconds import DEFAULT_SECONDS, default_toleration_seconds
from evictstream.kit.rules.admission.extended_resources import (
    extended_resource_tolerations,
    is_extended_resource,
)
from evictstream.kit.rules.admission.origins import (
    AddedBy,
    AdmittedToleration,
    add_or_replace,
    plain,
    written,
)
from evictstream.kit.rules.admission.quality import ResourceAmounts, is_best_effort
from evictstream.kit.rules.admission.restriction import (
    ALLOW_LIST_ANNOTATION,
    DEFAULT_TOLERATIONS_ANNOTATION,
    MEMORY_PRESSURE_TOLERATION,
    ClusterTolerations,
    Operation,
    Restricted,
    pod_toleration_restriction,
)
from evictstream.kit.rules.admission.supersets import first_not_allowed, is_superset, merge
from evictstream.kit.rules.admission.tracing import TracedToleration, trace

__all__ = [
    "ALLOW_LIST_ANNOTATION",
    "DAEMON_TOLERATIONS",
    "DEFAULT_SECONDS",
    "DEFAULT_TOLERATIONS_ANNOTATION",
    "HOST_NETWORK_TOLERATION",
    "MEMORY_PRESSURE_TOLERATION",
    "AddedBy",
    "AdmittedToleration",
    "AnnotationError",
    "ClusterTolerations",
    "Operation",
    "ResourceAmounts",
    "Restricted",
    "TracedToleration",
    "add_or_replace",
    "daemon_set_tolerations",
    "default_toleration_seconds",
    "extended_resource_tolerations",
    "first_not_allowed",
    "is_best_effort",
    "is_extended_resource",
    "is_superset",
    "merge",
    "namespace_tolerations",
    "plain",
    "pod_toleration_restriction",
    "trace",
    "written",
]
