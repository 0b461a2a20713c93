"""What the policy makes of any tolerations is read back as what was there, on a real API server.

Two thousand pods of each variant are created, and patched under the other one. Expected is the list as it was given.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Final

import pytest

from evictstream.models.kubernetes.handed_over import handed_over
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations, read_tolerations
from evictstream.streams.handover.policy_expressions import MOST_SECONDS
from tests.e2e.api_client import Object
from tests.e2e.handover.admission import HEALTH_KEYS, MORE, Admission, annotation_of, pod_with, spec_of, timed

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

PODS: Final = 2_000
SEED: Final = 40
KEYS: Final = ("a", "a.b", "b/a", "example.com/k", "example.com/k2", *HEALTH_KEYS, "x" * 63)
VALUES: Final = ("", "v", "v2", "A.b_c-1", "300", "y" * 63)
EDGES: Final = (0, 1, 5, 299, 300, 3600, 3900, 86_400, -1, -300, -(2**63), -(2**63) + 1)
FAR: Final = (MOST_SECONDS - 1, MOST_SECONDS, MOST_SECONDS + 1, 9_223_372_036, 9_223_372_037, 18_446_744_074, 2**63 - 1)


def tolerations(chance: random.Random) -> Iterator[Object]:
    """Yield tolerations of a pod, in every shape that the API server takes."""
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 8, 12, 60))):
        yield toleration(chance)


def toleration(chance: random.Random) -> Object:
    found: Object = {}
    is_wildcard = chance.random() < 0.1
    if not is_wildcard:
        found["key"] = chance.choice(KEYS)
    elif chance.random() < 0.3:
        found["key"] = chance.choice(("", None))
    if is_wildcard or chance.random() < 0.5:
        found["operator"] = "Exists"
        if chance.random() < 0.1:
            found["value"] = chance.choice(("", None))
    else:
        operator = chance.choice(("Equal", "Equal", "", None, "absent"))
        if operator != "absent":
            found["operator"] = operator
        if chance.random() < 0.8:
            found["value"] = chance.choice(VALUES)
    effect = chance.choice(("NoExecute", "NoExecute", "NoExecute", "NoSchedule", "PreferNoSchedule", "", None))
    if effect is not None or chance.random() < 0.3:
        found["effect"] = effect
    if effect == "NoExecute" and chance.random() < 0.8:
        found["tolerationSeconds"] = chance.choice(EDGES + FAR) if chance.random() < 0.5 else chance.randrange(100_000)
    elif chance.random() < 0.1:
        found["tolerationSeconds"] = None
    names = list(found)
    chance.shuffle(names)
    return {name: found[name] for name in names}


def with_defaults(given: list[Object]) -> Tolerations:
    """Return tolerations with those that Kubernetes adds for dead nodes."""
    read = read_tolerations(json.dumps(given).encode())
    added = [timed(key, 300) for key in HEALTH_KEYS if not any(map(lambda one: covers(one, key), read))]  # noqa: C417
    return read + read_tolerations(json.dumps(added).encode())


def covers(one: Toleration, key: str) -> bool:
    """Whether the admission plugin sees a toleration for a dead node in it."""
    return one.effect in ("NoExecute", "") and (one.key == key or (not one.key and one.operator == "Exists"))


def plain(found: Tolerations) -> list[tuple[str, str, str, str, int | None]]:
    """Return what counts: those that are cut to 31 years are so for ever after."""
    return [
        (
            one.key,
            one.operator,
            one.value,
            one.effect,
            None if one.toleration_seconds is None else min(one.toleration_seconds, MOST_SECONDS),
        )
        for one in found
    ]


def read_back(pod: Object) -> list[tuple[str, str, str, str, int | None]]:
    spec = read_tolerations(json.dumps(spec_of(pod)).encode())
    handed = handed_over(spec, annotation_of(pod))
    assert not handed.is_unreadable
    return plain(handed.tolerations)


def has_seconds_left(pod: Object) -> bool:
    """Whether the spec has seconds that the policy should have taken: of the first of their identity."""
    seen = []
    for one in spec_of(pod):
        identity = [one.get(name) for name in ("key", "operator", "value", "effect")]
        if identity not in seen and one.get("effect") == "NoExecute" and "tolerationSeconds" in one:
            return True
        seen.append(identity)
    return False


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(MORE, None, id="backstop-then-handover"), pytest.param(None, 20, id="handover-then-backstop")],
)
def test_any_tolerations_are_read_back(before: int | None, after: int | None, any_admission: Admission) -> None:
    chance = random.Random(f"{SEED} {before}")  # noqa: S311 - no secret
    any_admission.use(before)
    expected = {}
    for _ in range(PODS):
        given = list(tolerations(chance))
        pod = any_admission.create(pod_with(given))
        expected[pod["metadata"]["name"]] = plain(with_defaults(given))
        assert read_back(pod) == expected[pod["metadata"]["name"]], given
        assert before is not None or not has_seconds_left(pod), given
    any_admission.use(after)
    for name, seconds in expected.items():
        assert read_back(any_admission.patch(name, {})) == seconds
    assert len(expected) == PODS
