"""Silent nodes in random orders, as upstream goes through them: none gives more or less than the range says."""

from __future__ import annotations

import functools
import random

import pytest

from evictstream.kit.upstream.lifecycle import (
    INSTANT,
    Condition,
    LifecycleSettings,
    RequestPace,
    WatchedNode,
    WatchedPod,
)
from evictstream.kit.upstream.silence import play_silence
from evictstream.kit.upstream.silence_range import orders, silence_range
from evictstream.models.kubernetes import UNREACHABLE, Pod
from evictstream.models.kubernetes.tolerations import Toleration
from tests.kit.upstream.taint_range import taint_range

PACES = (INSTANT, RequestPace(), RequestPace(answer_us=250_000, burst=1))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_every_order_lies_within_the_range(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - chance from a seed, to be had again
    nodes = [
        WatchedNode(f"{zone}-{number}", labels={"topology.kubernetes.io/zone": zone}, conditions=_READY)
        for zone in "ab"
        for number in range(chance.randint(2, 7))
    ]
    silent = frozenset(node.name for node in nodes if chance.random() < 0.6)
    pods = [
        Pod("shop", f"{name}-{number}", f"{name}-{number}", "1", name, _tolerating(chance.choice([0, 10, 60])))
        for name in sorted(silent)
        for number in range(chance.choice([0, 1, 9]))
    ]
    until_us = chance.choice([70, 150]) * 1_000_000
    play = functools.partial(
        play_silence,
        pods=[WatchedPod(pod.namespace, pod.name, pod.node_name) for pod in pods],
        silent=silent,
        until_us=until_us,
        settings=LifecycleSettings(eviction_rate=chance.choice([0.1, 1.0])),
    )
    plays = [functools.partial(play, order, pace=pace) for pace in PACES for order in orders(nodes, silent, pods)]
    found = silence_range(plays, [node for node in nodes if node.name in silent], pods, until_us=until_us)
    for _ in range(2):
        order = chance.sample(nodes, len(nodes))
        one = taint_range(lambda pace, order=order: play(order, pace=pace), pods, until_us, PACES)  # type: ignore[misc]
        assert found.taints[0] <= one.taints[0] <= one.taints[1] <= found.taints[1]
        assert found.evictions[0] <= one.evictions[0] <= one.evictions[1] <= found.evictions[1]
        assert found.surely_evicted <= one.surely_evicted
        assert one.possibly_evicted <= found.possibly_evicted


_READY = (Condition("Ready", "True"),)


def _tolerating(seconds: int) -> tuple[Toleration, ...]:
    return (Toleration(UNREACHABLE, "Exists", "", "NoExecute", seconds),)
