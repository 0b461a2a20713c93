"""ExtendedResourceToleration: a pod that requests a device tolerates the taint of its name (semantics.md 9.3).

Sources: `plugin/pkg/admission/extendedresourcetoleration/admission.go`, `pkg/apis/core/helper/helpers.go`. The API
server runs it on create and update of pods, but only if it is enabled.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from evictstream.kit.rules.admission.origins import AddedBy, AdmittedToleration, add_or_replace
from evictstream.kit.rules.validation.labels import label_key_errors
from evictstream.models.kubernetes.taints import NO_SCHEDULE
from evictstream.models.kubernetes.tolerations import EXISTS, Toleration

_QUOTA_PREFIX: Final = "requests."
_OWN_DOMAIN: Final = "kubernetes.io/"


def is_extended_resource(name: str) -> bool:
    """Return whether a resource is an extended one.

    It has a domain of its own (a `/`, and not Kubernetes' domain anywhere in the name), does not begin with
    `requests.`, and with that prefix, as quotas write it, is a legal qualified name.
    """
    if "/" not in name or _OWN_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key_errors(_QUOTA_PREFIX + name)


def extended_resource_tolerations(
    admitted: Sequence[AdmittedToleration], requested: Iterable[str]
) -> tuple[AdmittedToleration, ...]:
    """Add `{key: <resource>, operator: Exists, effect: NoSchedule}` for each extended resource, sorted by name.

    A toleration that the pod has already is not added again. A wider one, even one for everything, prevents nothing.

    Args:
        admitted: the tolerations of the pod so far.
        requested: names of all resources that containers and init containers request, in any order, with repetitions;
            amounts do not count. Ephemeral containers request nothing.
    """
    result = tuple(admitted)
    # Go sorts strings by bytes, which for UTF-8 is the order of code points, as here.
    for name in sorted({name for name in requested if is_extended_resource(name)}):
        toleration = Toleration(key=name, operator=EXISTS, effect=NO_SCHEDULE)
        result = add_or_replace(result, toleration, AddedBy.EXTENDED_RESOURCE)
    return result
