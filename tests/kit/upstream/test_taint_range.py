"""Failing zones while rounds are slow: the fewest and the most taints and evictions, and why they lie apart.

Fed is an outage as it could be recorded: all nodes are ready, then some fall silent at once and stay so. Grace period
and tolerations are as short as in the recorded incidents.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import (
    INSTANT,
    ClusterChange,
    Condition,
    LifecycleClock,
    LifecycleSettings,
    NodeLifecycle,
    RequestPace,
    WatchedNode,
    WatchedPod,
    plausible_paces,
)
from evictstream.models.kubernetes import NO_EXECUTE, Pod, Toleration
from tests.harness.examples import examples
from tests.kit.upstream.taint_range import TaintRange, taint_range

SECOND_US = 1_000_000
FAILS_S = 2
UNTIL_S = 70
FIVE_SECONDS = (Toleration("node.kubernetes.io/unreachable", "Exists", "", NO_EXECUTE, 5),)


class Outage(NamedTuple):
    """Nodes and silent nodes of each zone, pods on each node, `--node-eviction-rate`."""

    zones: tuple[tuple[int, int], ...]
    pods: int = 10
    rate: float = 0.1

    def names(self) -> dict[str, bool]:
        """List all nodes, and whether each falls silent."""
        return {
            f"z{zone}-n{number}": number < silent
            for zone, (size, silent) in enumerate(self.zones)
            for number in range(size)
        }

    def play(self, pace: RequestPace) -> list[ClusterChange]:
        lifecycle = NodeLifecycle(LifecycleSettings(monitor_grace_period_us=10 * SECOND_US, eviction_rate=self.rate))
        clock = LifecycleClock(lifecycle, 0, pace)
        names = self.names()
        for name in names:
            labels = {"topology.kubernetes.io/zone": name.partition("-")[0]}
            clock.put_node(WatchedNode(name, labels=labels, conditions=(Condition("Ready", "True"),)), 0)
            for number in range(self.pods):
                clock.put_pod(WatchedPod("lab", f"{name}-{number}", name), 0)
        changes: list[ClusterChange] = []
        for second in range(UNTIL_S + 1):
            for name, is_silent in names.items():
                if second < FAILS_S or not is_silent:
                    lifecycle.renew_lease(name, second * SECOND_US)
            changes += clock.advance(second * SECOND_US)
        return changes

    def range(self, *paces: RequestPace, until_s: int = UNTIL_S) -> TaintRange:
        pods = [
            Pod("lab", f"{name}-{number}", f"uid-{name}-{number}", "1", name, FIVE_SECONDS)
            for name in self.names()
            for number in range(self.pods)
        ]
        return taint_range(self.play, pods, until_s * SECOND_US, paces or None)


FAST = 100.0
PROTECTED = ((10, 6), (10, 0))
DEAD = ((10, 10), (10, 0))


@pytest.mark.parametrize(
    ("outage", "taints", "evictions"),
    [
        pytest.param(
            Outage(PROTECTED, rate=FAST),
            (0, 6),
            (0, 60),
            id="6 of 10 silent, fast rate: protected too late, all go",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Outage(PROTECTED),
            (0, 2),
            (0, 20),
            id="6 of 10 silent, 0.1 per second: one per 10 s of the round",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Outage(((6, 6),), rate=FAST), (0, 6), (0, 60), id="a cluster of 6, all silent: taints of the round stay"
        ),
        pytest.param(
            Outage(((6, 6), (6, 6), (6, 6)), rate=FAST),
            (0, 18),
            (0, 180),
            id="3 zones of 6, all silent: every zone full",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Outage(((18, 18),), rate=FAST),
            (0, 18),
            (0, 180),
            id="18 of 18 silent: three waves of 8 workers",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Outage(((18, 18),)),
            (0, 4),
            (0, 40),
            id="18 of 18 silent, 0.1 per second: a round of 30 s",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Outage(PROTECTED, pods=0, rate=FAST), (0, 6), (0, 0), id="no pods: an answer of 0.25 s is slow enough"
        ),
        pytest.param(
            Outage(((10, 5), (10, 0)), rate=FAST),
            (5, 5),
            (50, 50),
            id="5 of 10 silent: normal, no range",
            marks=pytest.mark.slow,
        ),
        pytest.param(Outage(((10, 2), (2, 0)), rate=FAST), (2, 2), (20, 20), id="2 of 10 silent: normal, no range"),
        pytest.param(
            Outage(DEAD, rate=FAST),
            (10, 10),
            (100, 100),
            id="a whole zone, another one well: at full rate, no range",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Outage(((60, 40), (1, 0)), pods=2, rate=FAST),
            (1, 40),
            (2, 80),
            id="40 of 60 silent, a large zone: the secondary rate comes too late",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_fewest_and_most(outage: Outage, taints: tuple[int, int], evictions: tuple[int, int]) -> None:
    found = outage.range()
    assert (found.taints, found.evictions) == (taints, evictions)


def test_an_instant_alone_gives_no_range() -> None:
    found = Outage(PROTECTED, rate=FAST).range(INSTANT)
    assert [outcome.pace for outcome in found.outcomes] == [INSTANT]
    assert (found.taints, found.evictions) == ((0, 0), (0, 0))


@pytest.mark.parametrize(
    ("until_s", "taints", "evictions"),
    [
        pytest.param(19, 0, 0, id="before the round at 20 s"),
        pytest.param(22, 10, 0, id="tainted, and tolerated for 5 s"),
        pytest.param(29, 10, 100, id="after the toleration"),
    ],
)
def test_what_comes_after_the_end_does_not_count(until_s: int, taints: int, evictions: int) -> None:
    unlimited = RequestPace(requests_per_second=math.inf, pass_offset_us=6_000)
    found = Outage(DEAD, rate=FAST).range(unlimited, until_s=until_s).outcomes[-1]
    assert (len(found.tainted), len(found.evicted)) == (taints, evictions)


def test_surely_evicted_pods_are_those_of_every_pace() -> None:
    found = Outage(((4, 2), (6, 4)), pods=1, rate=FAST).range()
    assert sorted(found.surely_evicted) == ["lab/z0-n0-0", "lab/z0-n1-0"]
    assert sorted(found.possibly_evicted - found.surely_evicted) == [f"lab/z1-n{number}-0" for number in range(4)]


OUTAGES = st.builds(
    Outage,
    st.lists(
        st.integers(1, 9).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size))), min_size=1, max_size=3
    ).map(tuple),
    st.integers(0, 6),
    st.sampled_from([1.0, 3.0, 100.0]),
)


PACES = st.sampled_from(plausible_paces())


@given(OUTAGES, PACES)
@hypothesis_settings(deadline=None, max_examples=examples(20))
def test_slow_rounds_only_add_taints_and_evictions(outage: Outage, pace: RequestPace) -> None:
    """Zones at full rate are done in time; of the others, an instant taints no node that a slow round spares."""
    found = outage.range(pace)
    instant, slow = found.outcomes[0], found.outcomes[-1]
    assert instant.pace == INSTANT
    assert instant.tainted <= slow.tainted
    assert instant.evicted <= slow.evicted
    assert found.taints == (len(instant.tainted), len(slow.tainted))


@given(
    OUTAGES, st.lists(st.sampled_from(plausible_paces()), min_size=1, max_size=2), st.sampled_from(plausible_paces())
)
@hypothesis_settings(deadline=None, max_examples=examples(8))
def test_one_more_pace_never_narrows_the_range(outage: Outage, paces: list[RequestPace], more: RequestPace) -> None:
    narrow, wide = outage.range(*paces), outage.range(*paces, more)
    assert wide.taints[0] <= narrow.taints[0] <= narrow.taints[1] <= wide.taints[1]
    assert wide.surely_evicted <= narrow.surely_evicted <= narrow.possibly_evicted <= wide.possibly_evicted


@given(st.integers(9, 18), st.integers(1, 300_000), st.integers(100_000, 300_000))
@hypothesis_settings(deadline=None, max_examples=examples(15))
def test_longer_by_a_pass_never_taints_fewer(size: int, node_us: int, more_us: int) -> None:
    """Without a limit of the client only the round's duration decides; below 100 ms, so does when passes begin."""
    outage = Outage(((size, size),), pods=0, rate=FAST)
    unlimited = RequestPace(requests_per_second=math.inf, answer_us=0)
    paces = [dataclasses.replace(unlimited, node_us=each) for each in (node_us, node_us + more_us)]
    _, short, long = outage.range(*paces).outcomes
    assert len(short.tainted) <= len(long.tainted)
