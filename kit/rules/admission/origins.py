"""A toleration with its origin: the author, a controller or a plugin (semantics.md 9)."""

import enum
from collections.abc import Iterable

import msgspec

from evictstream.models.kubernetes.tolerations import Toleration, Tolerations, is_same_toleration


class AddedBy(enum.StrEnum):
    """What added a toleration to a pod; the values are the names in Kubernetes' documentation."""

    WRITTEN = "written"
    """The author of the pod, or of the template it was made from."""

    DEFAULT_TOLERATION_SECONDS = "DefaultTolerationSeconds"
    DAEMON_SET = "DaemonSet controller"
    EXTENDED_RESOURCE = "ExtendedResourceToleration"

    MEMORY_PRESSURE = "PodTolerationRestriction, not best-effort"


class AdmittedToleration(msgspec.Struct, frozen=True, gc=False):
    """One toleration of a pod with its origin.

    Attributes:
        toleration: as it is on the pod.
        origin: what added it. A toleration that was there before a plugin would add its equal keeps its origin.
    """

    toleration: Toleration
    origin: AddedBy


def written(tolerations: Iterable[Toleration], origin: AddedBy = AddedBy.WRITTEN) -> tuple[AdmittedToleration, ...]:
    """Give all tolerations one origin, by default the author of the pod."""
    return tuple(AdmittedToleration(toleration, origin) for toleration in tolerations)


def plain(admitted: Iterable[AdmittedToleration]) -> Tolerations:
    """Return the tolerations alone, in pod order."""
    return tuple(entry.toleration for entry in admitted)


def add_or_replace(
    admitted: tuple[AdmittedToleration, ...], added: Toleration, origin: AddedBy
) -> tuple[AdmittedToleration, ...]:
    """Add a toleration to a pod as controllers and plugins do.

    Each toleration with the same identity is replaced in its place, which wipes or changes its seconds (#92960). If
    there is none, the new one is appended. A toleration that was equal already keeps its origin.

    Source: `pkg/apis/core/v1/helper/helpers.go`, `AddOrUpdateTolerationInPodSpec`. Its early return for an equal one
    never happens, because it compares a pointer with a value; so of several with one identity all are replaced.
    """
    entry = AdmittedToleration(added, origin)
    if not any(is_same_toleration(added, other.toleration) for other in admitted):
        return (*admitted, entry)
    return tuple(
        entry if is_same_toleration(added, other.toleration) and other.toleration != added else other
        for other in admitted
    )
