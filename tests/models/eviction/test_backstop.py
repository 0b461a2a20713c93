"""semantics.md 12.12: which holds outlast the time that Kubernetes' own controller waits."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.backstop import Outlasted, built_in_goes_on_us, outlasted_by
from evictstream.models.kubernetes import Taint, Toleration
from evictstream.models.steering.brakes import Brakes
from tests.models.eviction.scene import CLUSTER, A, B, Scene, text, tolerate, us
from tests.models.eviction.test_built_in import ON, moved
from tests.models.steering.test_brakes import read, record
from tests.models.steering.test_policies import policy_record, read_policies

NEVER = None


@pytest.mark.parametrize(
    ("taints", "tolerations", "until", "goes_on"),
    [
        pytest.param([A], [moved("a", 60, 3660)], NEVER, 3660, id="backstop"),
        pytest.param([A], [moved("a", 60, 3660)], 3661, 3660, id="hold-ends-after-it"),
        pytest.param([A], [moved("a", 60, 3660)], 3660, None, id="hold-ends-with-it"),
        pytest.param([A], [moved("a", 60)], NEVER, None, id="handover"),
        pytest.param([A], [tolerate("a", 60)], NEVER, None, id="not-moved"),
        pytest.param([A, B], [moved("a", 60, 3660), moved("b", 30)], NEVER, 3660, id="the-other-by-handover"),
        pytest.param([A, B], [moved("a", 60, 3660), tolerate("b", 90)], NEVER, 90, id="the-other-not-moved"),
        pytest.param([A], [moved("a", 60, 9_223_372_037)], NEVER, None, id="overflows-to-never"),
    ],
)
def test_a_hold_is_outlasted_by_what_the_spec_has(
    taints: list[Taint], tolerations: list[Toleration], until: int | None, goes_on: int | None
) -> None:
    scene = Scene()
    scene.pod(0, *tolerations)
    scene.node(0, *taints)
    pod, until_us = scene.aggregate.pods["pod-1"], None if until is None else us(until)
    found = built_in_goes_on_us(scene.aggregate.node, pod, RuleParameters(), until_us=until_us)
    assert found == (None if goes_on is None else us(goes_on))


def test_pods_that_terminate_or_are_nowhere_are_outlasted_by_nothing() -> None:
    scene = Scene()
    scene.pod(0, moved("a", 60, 3660))
    pod = scene.aggregate.pods["pod-1"]
    assert built_in_goes_on_us(scene.aggregate.node, pod, ON, until_us=None) is None
    scene.node(0, A)
    assert built_in_goes_on_us(scene.aggregate.node, pod, ON, until_us=None) == us(3660)
    scene.pod(1, moved("a", 60, 3660), terminating=True)
    assert built_in_goes_on_us(scene.aggregate.node, pod, ON, until_us=None) is None


def by_brakes(scene: Scene, brakes: Brakes, at: float) -> dict[str, Outlasted]:
    return outlasted_by(lambda cluster: brakes.of_cluster(cluster, us(at)), [scene.aggregate], us(at), ON)


@pytest.mark.parametrize(
    ("brake", "outlasted"),
    [
        pytest.param({}, (3630, 3), id="all"),
        pytest.param({"endsAt": text(3659), "spreadSeconds": 0}, (3630, 1), id="ends-behind-the-first"),
        pytest.param({"endsAt": text(3630), "spreadSeconds": 0}, None, id="ends-with-the-first"),
        pytest.param({"endsAt": text(3600), "spreadSeconds": 100_000}, (3630, 3), id="spreads-behind-all"),
        pytest.param({"endsAt": text(20)}, None, id="ends-before-deadlines"),
        pytest.param({"clusters": [CLUSTER]}, (3630, 3), id="this-cluster"),
        pytest.param({"clusters": ["other"]}, None, id="another-cluster"),
        pytest.param({"taints": ["b"]}, None, id="another-taint"),
        pytest.param({"namespaces": ["shop"]}, None, id="another-namespace"),
    ],
)
def test_a_brake_counts_what_it_outlasts(brake: dict[str, Any], outlasted: tuple[int, int] | None) -> None:
    scene = Scene(ON)
    scene.node(0, A)
    scene.pod(0, moved("a", 60, 3660), uid="slow", name="slow")
    scene.pod(0, moved("a", 30, 3630), uid="quick", name="quick")
    scene.pod(0, moved("a", 90, 3690), uid="slower", name="slower")
    scene.pod(0, moved("a", 10), uid="by-handover", name="by-handover")
    scene.pod(0, tolerate("a", 10), uid="not-moved", name="not-moved")
    scene.pod(0, moved("b", 10, 3610), uid="no-taint", name="no-taint")
    brakes = read(record("b1", **brake), appended_us=us(0))
    assert by_brakes(scene, brakes, 1) == (
        {} if outlasted is None else {"b1": Outlasted(us(outlasted[0]), outlasted[1])}
    )


def test_what_has_left_is_outlasted_by_nothing() -> None:
    scene = Scene(ON)
    scene.pod(0, moved("a", 60, 3660))
    scene.node(0, A)
    scene.run_until(60)
    scene.pod(61, moved("a", 60, 3660), terminating=True)
    assert by_brakes(scene, read(record("b1"), appended_us=us(0)), 62) == {}


def window(begins: str, ends: str) -> dict[str, str]:
    """Of a stage that begins at 02:15:53."""
    return {"begins": begins, "ends": ends, "zone": "UTC"}


@pytest.mark.parametrize(
    ("spec", "outlasted"),
    [
        pytest.param({"observe": True}, True, id="observe"),
        pytest.param({"settleSeconds": 3600}, False, id="settles-before"),
        pytest.param({"settleSeconds": 3661}, True, id="settles-after"),
        pytest.param({"hold": {"outsideOf": [window("02:00", "02:16")]}}, True, id="window-closes-before-the-deadline"),
        pytest.param({"hold": {"outsideOf": [window("02:30", "04:00")]}}, False, id="window-opens-before-the-backstop"),
        pytest.param({"limit": {"evictions": 1, "inSeconds": 86_400}}, False, id="limit"),
        pytest.param({"patienceSeconds": 86_400}, False, id="patience"),
        pytest.param({"observe": True, "for": {"namespaces": ["shop"]}}, False, id="another-namespace"),
    ],
)
def test_a_policy_counts_what_it_outlasts(spec: dict[str, Any], outlasted: bool) -> None:  # noqa: FBT001 - a case
    scene = Scene(ON)
    scene.node(0, A)
    scene.pod(0, moved("a", 60, 3660))
    policies = read_policies(policy_record(spec=spec), appended_us=us(0))
    found = outlasted_by(policies.of_cluster, [scene.aggregate], us(1), ON)
    assert found == ({"policy/p": Outlasted(us(3660), 1)} if outlasted else {})
