"""When the timer of Kubernetes' own controller fires (semantics.md 6.6, 12.12), beside the model of that controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.upstream.taint_eviction import TaintEvictionController
from evictstream.models.eviction import RowKind, RuleParameters, row_key
from evictstream.models.eviction.backstop import built_in_goes_on_us, outruns_deadline_us
from evictstream.models.kubernetes import Node, Pod, Taint, Toleration
from evictstream.models.kubernetes.handed_over import in_spec
from evictstream.models.messages.vocabulary import DecisionKind
from tests.harness.examples import examples
from tests.models.eviction.scene import DELETED, NODE, SICK, SILENT, START_US, A, B, Scene, text, tolerate, us
from tests.models.eviction.test_built_in import FOREVER, ON, moved

ROW = row_key(RowKind.EVICTION, f"prod-eu-1/{NODE}", "pod-1")
MORE = 20


def late(seconds: int, key: str = "a") -> Toleration:
    """Of a pod that the policy has moved with `--more 20`."""
    return moved(key, seconds, max(seconds, 0) + MORE)


def timer(scene: Scene) -> float | None:
    """When the built-in controller evicts `pod-1`, in seconds of the stage; None if it has no eviction, or never."""
    pod = scene.aggregate.pods["pod-1"]
    if pod.eviction is None:
        return None
    at_us = built_in_goes_on_us(scene.aggregate.node, pod, scene.rules, until_us=None)
    return None if at_us is None else (at_us - START_US) / 1_000_000


def pod(at: float, *tolerations: Toleration) -> Callable[[Scene], object]:
    return lambda scene: scene.pod(at, *tolerations)


def node(at: float, *taints: Taint) -> Callable[[Scene], object]:
    return lambda scene: scene.node(at, *taints)


def again(at: float, *tolerations: Toleration) -> Callable[[Scene], object]:
    """The pod is made again under its name."""

    def make(scene: Scene) -> None:
        scene.pod(at, uid="pod-1", event_type=DELETED)
        scene.pod(at, *tolerations, uid="pod-2")
        scene.aggregate.pods["pod-1"] = scene.aggregate.pods["pod-2"]

    return make


@pytest.mark.parametrize(
    ("steps", "fires"),
    [
        pytest.param([pod(0, late(5)), node(0, A)], 25, id="22-five"),
        pytest.param([pod(0, late(6)), node(0, A)], 26, id="22-six"),
        pytest.param([pod(0, late(0)), node(0, A)], 20, id="22-none"),
        pytest.param([pod(0, late(15)), node(0, A)], 35, id="22-fifteen"),
        pytest.param([pod(0, late(6)), node(0, A), pod(2, late(20))], 26, id="25-longer"),
        pytest.param([pod(0, late(60)), node(0, A), pod(2, late(5))], 80, id="25-shorter"),
        pytest.param([pod(0, late(7)), node(0, A), pod(2, tolerate("a"))], None, id="25-forever"),
        pytest.param([pod(0, late(7)), node(0, A), again(3, late(7))], 30, id="25-made-again"),
        pytest.param([pod(0, late(7)), node(0, A), node(3)], None, id="25-taint-removed"),
        pytest.param([pod(0, late(8)), node(0, A), pod(1, late(200))], 28, id="26"),
        pytest.param([pod(0, late(8)), node(0, A), pod(1, late(200)), pod(2, late(300))], 28, id="edited-twice"),
        pytest.param([pod(0, late(8)), node(0, A), pod(1, late(200)), node(2), node(4, A)], 224, id="new-window"),
        pytest.param(
            [pod(0, late(8)), node(0, A), pod(1, tolerate("a")), pod(3, late(200))], 223, id="forever-and-back"
        ),
        pytest.param([pod(0, late(200)), node(0, A), pod(3, moved("a", 200)), pod(4, late(9))], 33, id="other-variant"),
        pytest.param([pod(0, tolerate("a", 60)), node(10, A), pod(30, moved("a", 60, 3660))], 70, id="moved-in-window"),
        pytest.param([pod(0, tolerate("a", 60)), node(10, A), pod(30, moved("a", 60))], None, id="handed-over"),
        pytest.param([pod(0, late(8)), node(0, A), pod(3, moved("a", 8, 86_408))], 28, id="more-raised"),
        pytest.param([pod(0, late(8), late(1, "b")), node(0, A), node(5, A, B)], 28, id="a-quicker-taint-comes"),
        pytest.param([pod(0, late(8), late(1, "b")), node(0, A, B), node(1, A)], 21, id="the-quicker-taint-goes"),
        pytest.param([pod(0, late(8), late(1, "b")), node(0, A), node(5, B)], 28, id="a-taint-for-a-taint"),
        pytest.param([pod(0, late(9, SICK.key), late(9, SILENT.key)), node(0, SICK), node(4, SILENT)], 29, id="outage"),
        pytest.param(
            [pod(0, late(9, SICK.key), late(9, SILENT.key)), node(0, SICK), node(4), node(4.1, SICK)],
            33.1,
            id="outage-with-a-gap",
        ),
        pytest.param([node(0, A), pod(7, late(8))], 35, id="pod-comes-later"),
        pytest.param([node(0, A), pod(0, tolerate("a")), pod(9, late(5))], 34, id="due-by-an-edit"),
    ],
)
def test_the_timer_is_set_once_in_a_window(steps: Sequence[Callable[[Scene], object]], fires: float | None) -> None:
    scene = Scene(ON)
    for step in steps:
        step(scene)
    assert timer(scene) == fires


def test_a_takeover_keeps_the_timer_and_fires_as_before() -> None:
    scene = Scene(ON)
    scene.pod(0, late(8))
    scene.node(0, A)
    scene.pod(1, late(200))
    scene.restart()
    assert not scene.decide_all(5).rows
    assert timer(scene) == 28
    scene.run_until(200)
    assert scene.actions[-1] == "Evict 200"
    assert timer(scene) == 28


def test_rows_of_before_have_the_timer_of_the_spec() -> None:
    scene = Scene(ON)
    scene.pod(0, late(8))
    scene.node(0, A)
    scene.table[ROW] = msgspec.msgpack.encode(msgspec.msgpack.decode(scene.table[ROW])[:-1])
    scene.restart()
    eviction = scene.aggregate.pods["pod-1"].eviction
    assert eviction is not None
    assert (eviction.built_in_us, timer(scene)) == (None, 28)
    scene.pod(1, late(200))
    assert timer(scene) == 28


@pytest.mark.parametrize(
    ("rules", "toleration"),
    [pytest.param(RuleParameters(), late(8), id="switched-off"), pytest.param(ON, moved("a", 8), id="handover")],
)
def test_rows_without_a_timer_are_as_short_as_before(rules: RuleParameters, toleration: Toleration) -> None:
    timed, scene = Scene(ON), Scene(rules)
    for each, it in ((timed, late(8)), (scene, toleration)):
        each.pod(0, it)
        each.node(0, A)
    assert len(msgspec.msgpack.decode(timed.table[ROW])) == len(msgspec.msgpack.decode(scene.table[ROW])) + 1


def test_decisions_say_when_the_timer_fires() -> None:
    scene = Scene(ON)
    scene.pod(0, late(8))
    scene.node(0, A)
    scene.pod(1, late(200))
    assert [(one.decision, one.built_in_at) for one in scene.decisions] == [
        (DecisionKind.SCHEDULED, text(28)),
        (DecisionKind.MOVED, text(28)),
    ]


def test_a_deadline_behind_the_timer_is_told_until_issued() -> None:
    scene = Scene(ON)
    scene.pod(0, late(8))
    scene.node(0, A)
    pod_state = scene.aggregate.pods["pod-1"]
    assert pod_state.eviction is not None
    assert outruns_deadline_us(pod_state.eviction) is None
    scene.pod(1, late(200))
    assert pod_state.eviction is not None
    assert outruns_deadline_us(pod_state.eviction) == us(28)
    scene.run_until(201)
    assert pod_state.eviction is not None
    assert outruns_deadline_us(pod_state.eviction) is None


TAINTS = [A, B, SICK, SILENT]
SECONDS = st.sampled_from([(3, 23), (5, 25), (8, 28), (9, FOREVER), (200, 220), (8, 86_408)])


@st.composite
def tolerations(draw: st.DrawFn) -> tuple[Toleration, ...]:
    """For each taint: moved by either variant, or without seconds; an untolerated pod is the built-in controller's."""
    return tuple(
        tolerate(each.key) if draw(st.integers(0, 4)) == 0 else moved(each.key, *draw(SECONDS)) for each in TAINTS
    )


CHANGES = st.one_of(st.lists(st.sampled_from(TAINTS), unique=True, max_size=3), tolerations(), st.just("restart"))


@settings(max_examples=examples(40), deadline=None)
@given(tolerations(), st.lists(st.tuples(st.integers(1, 7), CHANGES), max_size=12))
def test_the_timer_is_that_of_upstreams_controller(
    first: tuple[Toleration, ...], changes: list[tuple[int, list[Taint] | tuple[Toleration, ...] | str]]
) -> None:
    scene, controller, now = Scene(ON), TaintEvictionController(), 0
    versions = iter(range(1, 1000))

    def see_pod(it: tuple[Toleration, ...]) -> None:
        scene.pod(now, *it)
        controller.see_pod(Pod("payments", "web-0", "pod-1", str(next(versions)), NODE, in_spec(it)))

    def see_node(taints: list[Taint]) -> None:
        scene.node(now, *taints)
        controller.see_node(Node(NODE, "node-1", str(next(versions)), tuple(taints), "True"))

    see_node([])
    see_pod(first)
    controller.work(us(0))
    for seconds, change in changes:
        fires_us = controller.next_us()
        if fires_us is not None and fires_us <= us(now + seconds):
            break  # the pod is gone
        now += seconds
        scene.run_until(now - 0.5)
        if change == "restart":
            scene.restart()
        elif isinstance(change, tuple):
            see_pod(change)
        elif isinstance(change, list):
            see_node(change)
        controller.work(us(now))
        fires_us = controller.deadlines().get("payments/web-0")
        assert timer(scene) == (None if fires_us is None else (fires_us - START_US) / 1_000_000)
