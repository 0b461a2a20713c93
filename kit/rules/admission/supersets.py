"""When one toleration covers another one, and lists that are merged by that rule (semantics.md 9.4).

Source: `pkg/util/tolerations/tolerations.go`.
"""

from collections.abc import Iterable, Sequence

from evictstream.kit.rules.admission.origins import AdmittedToleration
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.kubernetes.tolerations import EQUAL, EXISTS, Toleration


def is_superset(wide: Toleration, narrow: Toleration) -> bool:
    """Return whether one toleration tolerates at least what another one does.

    Equal ones do. Otherwise all of these:

    - the keys are equal, or the wide one has none and the operator `Exists`;
    - the effects are equal, or the wide one has none;
    - a wide one for `NoExecute` with seconds: the other one has seconds, and not more;
    - the wide one has the operator `Exists`, or it is `Equal` (or empty) with the same value and the other one's
      operator is `Equal`, spelled out. With `Gt`, `Lt` or anything else it covers only its equal.
    """
    if wide == narrow:
        return True
    if narrow.key != wide.key and not (wide.key == "" and wide.operator == EXISTS):
        return False
    if wide.effect not in ("", narrow.effect):
        return False
    if wide.effect == NO_EXECUTE and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in ("", EQUAL):
        return narrow.operator == EQUAL and narrow.value == wide.value
    return wide.operator == EXISTS


def first_not_allowed(tolerations: Iterable[Toleration], allowed: Sequence[Toleration]) -> Toleration | None:
    """Find the first toleration without a superset in an allow list.

    Args:
        tolerations: of the pod.
        allowed: the allow list; an empty one allows everything.

    Returns:
        The toleration, or None if all are allowed.
    """
    if not allowed:
        return None
    for toleration in tolerations:
        if not any(is_superset(wide, toleration) for wide in allowed):
            return toleration
    return None


def merge(first: Sequence[AdmittedToleration], second: Sequence[AdmittedToleration]) -> tuple[AdmittedToleration, ...]:
    """Join two lists and drop what another toleration covers; of equal ones the first stays.

    The order of the rest is kept. A toleration is also dropped if another one of its own list covers it.
    """
    joined = (*first, *second)
    kept: list[AdmittedToleration] = []
    for index, entry in enumerate(joined):
        toleration = entry.toleration
        if any(is_superset(other.toleration, toleration) for other in kept):
            continue
        if any(
            other.toleration != toleration and is_superset(other.toleration, toleration)
            for other in joined[index + 1 :]
        ):
            continue
        kept.append(entry)
    return tuple(kept)
