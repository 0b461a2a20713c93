"""Whether a pod is best-effort, the lowest of Kubernetes' three classes of service.

Source: `pkg/apis/core/helper/qos/qos.go`. Only what PodTolerationRestriction needs is here: best-effort or not.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

BEST_EFFORT: Final = "BestEffort"

_COUNTED: Final = ("cpu", "memory")
# A suffix or exponent never makes zero positive, so the digits before it decide.
_POSITIVE: Final = re.compile(r"\+?(?=[0-9.]*[1-9])[0-9]*\.?[0-9]*(?:[a-zA-Z].*)?", re.ASCII)


class ResourceAmounts(msgspec.Struct, frozen=True):
    """Requests and limits of one container, or of the pod as a whole; amounts as texts such as `500m`."""

    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}


def is_best_effort(
    containers: Iterable[ResourceAmounts],
    *,
    pod_level: ResourceAmounts | None = None,
    reported_class: str = "",
) -> bool:
    """Return whether a pod is best-effort: no request and no limit above zero for CPU or memory anywhere.

    Args:
        containers: of the pod, init containers too; ephemeral containers have no resources.
        pod_level: `spec.resources`; where it is set, it counts instead of the containers.
        reported_class: `status.qosClass`; where it is set, it counts instead of all of them.
    """
    if reported_class:
        return reported_class == BEST_EFFORT
    counted = containers if pod_level is None else (pod_level,)
    return not any(
        _POSITIVE.fullmatch(amounts.get(name, "0"))
        for entry in counted
        for amounts in (entry.requests, entry.limits)
        for name in _COUNTED
    )
