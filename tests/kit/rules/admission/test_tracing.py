"""What a stored pod tells of the origin of its tolerations, by the rules of semantics.md 9."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.admission import AddedBy, trace
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, Toleration

DEFAULT = Toleration(NOT_READY, "Exists", "", NO_EXECUTE, 300)
DAEMON = Toleration(UNREACHABLE, "Exists", "", NO_EXECUTE)
NETWORK = Toleration("node.kubernetes.io/network-unavailable", "Exists", "", NO_SCHEDULE)
PRESSURE = Toleration("node.kubernetes.io/memory-pressure", "Exists", "", NO_SCHEDULE)
GPU = Toleration("nvidia.com/gpu", "Exists", "", NO_SCHEDULE)


def traced(toleration: Toleration, **circumstances: object) -> tuple[AddedBy, bool]:
    (found,) = trace((toleration,), **circumstances)  # type: ignore[arg-type] # of each test its own
    assert found.toleration == toleration
    return found.origin, found.is_certain


@pytest.mark.parametrize("key", [NOT_READY, UNREACHABLE])
def test_300_s_for_an_unhealthy_node_may_be_the_default(key: str) -> None:
    assert traced(Toleration(key, "Exists", "", NO_EXECUTE, 300)) == (
        AddedBy.DEFAULT_TOLERATION_SECONDS,
        False,
    )


def test_other_seconds_count_as_default_only_where_configured() -> None:
    mine = Toleration(NOT_READY, "Exists", "", NO_EXECUTE, 60)
    assert traced(mine) == (AddedBy.WRITTEN, False)
    assert traced(mine, not_ready_seconds=60) == (AddedBy.DEFAULT_TOLERATION_SECONDS, False)
    assert traced(mine, unreachable_seconds=60) == (AddedBy.WRITTEN, False)


def test_what_a_daemon_set_adds_is_certainly_its_own() -> None:
    assert traced(DAEMON, is_daemon=True) == (AddedBy.DAEMON_SET, True)
    assert traced(DAEMON) == (AddedBy.WRITTEN, False)


def test_the_network_of_the_node_belongs_to_it() -> None:
    assert traced(NETWORK, is_daemon=True) == (AddedBy.WRITTEN, False)
    assert traced(NETWORK, is_daemon=True, host_network=True) == (AddedBy.DAEMON_SET, True)


def test_memory_pressure_is_possible_only_if_not_best_effort() -> None:
    assert traced(PRESSURE) == (AddedBy.WRITTEN, False)
    assert traced(PRESSURE, is_best_effort=False) == (AddedBy.MEMORY_PRESSURE, False)
    assert traced(PRESSURE, is_best_effort=False, is_daemon=True) == (AddedBy.DAEMON_SET, True)


def test_a_device_is_possible_only_if_asked_for() -> None:
    assert traced(GPU) == (AddedBy.WRITTEN, False)
    assert traced(GPU, requested=["cpu", "nvidia.com/gpu"]) == (AddedBy.EXTENDED_RESOURCE, False)


def test_order_is_kept() -> None:
    found = trace((GPU, DEFAULT, PRESSURE))
    assert [entry.toleration for entry in found] == [GPU, DEFAULT, PRESSURE]
