"""Observers are never in the group of one that acts, whatever groups and clusters are called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions, group_of
from evictstream.streams.kubernetes.access import ClusterAccess

NAMES = st.text(st.characters(exclude_characters="/\0"), min_size=1) | st.sampled_from(
    ["a", "a-observe", "observe", "executor", "a-executor-a", "-", "*"]
)


def named(group: str, cluster: str, mode: ExecutorMode) -> str:
    return group_of(ClusterOrder(name=cluster, access=ClusterAccess(), mode=mode), ExecutionOptions(group=group))


@given(group=NAMES, cluster=NAMES, other_group=NAMES, other_cluster=NAMES)
def test_no_observers_group_is_one_that_acts(group: str, cluster: str, other_group: str, other_cluster: str) -> None:
    observers = named(group, cluster, ExecutorMode.OBSERVE)

    for mode in (ExecutorMode.DELETE, ExecutorMode.EVICT):
        assert named(other_group, other_cluster, mode) != observers
        assert named(group, cluster, mode) != observers


@given(group=NAMES, cluster=NAMES, other=NAMES)
def test_clusters_share_no_group(group: str, cluster: str, other: str) -> None:
    for mode in ExecutorMode:
        assert (named(group, cluster, mode) == named(group, other, mode)) is (cluster == other)


def test_all_that_act_on_a_cluster_are_in_one_group() -> None:
    assert named("app-executor", "c1", ExecutorMode.DELETE) == "app-executor-c1"
    assert named("app-executor", "c1", ExecutorMode.EVICT) == "app-executor-c1"
