"""DefaultTolerationSeconds: 300 s for pods that say nothing about unhealthy nodes (semantics.md 9.1).

Source: `plugin/pkg/admission/defaulttolerationseconds/admission.go`. The API server runs it by default, on create
and on update of pods, not of their subresources.
"""

from collections.abc import Sequence
from typing import Final

from evictstream.kit.rules.admission.origins import AddedBy, AdmittedToleration
from evictstream.models.kubernetes.taints import NO_EXECUTE, NOT_READY, UNREACHABLE
from evictstream.models.kubernetes.tolerations import EXISTS, Toleration

DEFAULT_SECONDS: Final = 300
"""Default of the flags `default-not-ready-toleration-seconds` and `default-unreachable-toleration-seconds`."""


def default_toleration_seconds(
    admitted: Sequence[AdmittedToleration],
    *,
    not_ready_seconds: int = DEFAULT_SECONDS,
    unreachable_seconds: int = DEFAULT_SECONDS,
) -> tuple[AdmittedToleration, ...]:
    """Append the missing tolerations for `not-ready` and `unreachable`, in this order.

    A toleration counts if its key is the key of the taint or empty, and its effect is `NoExecute` or empty. Operator,
    value and seconds do not matter, so a toleration that matches nothing counts too.

    Args:
        admitted: the tolerations of the pod so far.
        not_ready_seconds: seconds of the first one, flag `default-not-ready-toleration-seconds`.
        unreachable_seconds: seconds of the second one, flag `default-unreachable-toleration-seconds`.
    """
    added = [
        AdmittedToleration(
            Toleration(key=key, operator=EXISTS, effect=NO_EXECUTE, toleration_seconds=seconds),
            AddedBy.DEFAULT_TOLERATION_SECONDS,
        )
        for key, seconds in ((NOT_READY, not_ready_seconds), (UNREACHABLE, unreachable_seconds))
        if not any(_counts(entry.toleration, key) for entry in admitted)
    ]
    return (*admitted, *added)


def _counts(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", NO_EXECUTE)
