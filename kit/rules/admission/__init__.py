"""Where the tolerations of a pod come from: who adds which one, in which order (semantics.md 9).

Each rule takes the tolerations that a pod has so far, each with its origin, and returns the resulting ones.
`written` gives tolerations the origin of their author. In a cluster the DaemonSet controller comes first, then the
plugins of the API server: DefaultTolerationSeconds, then ExtendedResourceToleration
(`pkg/kubeapiserver/options/plugins.go`). PodTolerationRestriction, between them, needs annotations of namespaces and is
not played.
"""

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
from evictstream.kit.rules.admission.tracing import TracedToleration, trace

__all__ = [
    "DAEMON_TOLERATIONS",
    "DEFAULT_SECONDS",
    "HOST_NETWORK_TOLERATION",
    "AddedBy",
    "AdmittedToleration",
    "ResourceAmounts",
    "TracedToleration",
    "add_or_replace",
    "daemon_set_tolerations",
    "default_toleration_seconds",
    "extended_resource_tolerations",
    "is_best_effort",
    "is_extended_resource",
    "plain",
    "trace",
    "written",
]
