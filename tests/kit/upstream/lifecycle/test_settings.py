from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from evictstream.kit.upstream.lifecycle import LifecycleSettings, SettingError

SECOND_US = 1_000_000
MAKE: Callable[..., LifecycleSettings] = LifecycleSettings  # the field is a parameter of the tests


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("monitor_period_us", 5 * SECOND_US, id="8.1 node monitor period 5 s"),
        pytest.param("monitor_grace_period_us", 50 * SECOND_US, id="8.1 node monitor grace period 50 s"),
        pytest.param("startup_grace_period_us", 60 * SECOND_US, id="8.1 node startup grace period 60 s"),
        pytest.param("eviction_rate", 0.1, id="8.1 node eviction rate 0.1"),
        pytest.param("secondary_eviction_rate", 0.01, id="8.1 secondary node eviction rate 0.01"),
        pytest.param("large_cluster_size_threshold", 50, id="8.1 large cluster size threshold 50"),
        pytest.param("unhealthy_zone_threshold", 0.55, id="8.1 unhealthy zone threshold 0.55"),
        pytest.param("reacts_in_same_round", True, id="#120816 since 1.29"),
    ],
)
def test_defaults(field: str, value: object) -> None:
    assert getattr(LifecycleSettings(), field) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("monitor_period_us", 0),
        ("monitor_period_us", -1),
        ("monitor_grace_period_us", -1),
        ("startup_grace_period_us", -1),
        ("large_cluster_size_threshold", -1),
        ("large_cluster_size_threshold", 2**31),
        ("eviction_rate", -0.1),
        ("eviction_rate", math.nan),
        ("eviction_rate", 1e39),
        ("secondary_eviction_rate", -math.inf),
        ("unhealthy_zone_threshold", -0.01),
        ("unhealthy_zone_threshold", 1.01),
        ("unhealthy_zone_threshold", math.nan),
    ],
)
def test_unusable_numbers_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(SettingError, match=field) as refusal:
        MAKE(**{field: value})
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("eviction_rate", 0.0),
        ("eviction_rate", math.inf),
        ("monitor_grace_period_us", 0),
        ("large_cluster_size_threshold", 2**31 - 1),
        ("unhealthy_zone_threshold", 0.0),
        ("unhealthy_zone_threshold", 1.0),
    ],
)
def test_numbers_at_the_limits_are_taken(field: str, value: float) -> None:
    assert getattr(MAKE(**{field: value}), field) == value
