from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import (
    LifecycleSettings,
    ZoneState,
    is_excluded_from_disruption,
    reduced_rate,
    zone_key,
    zone_rate,
    zone_state,
)

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
GA_ZONE = "topology.kubernetes.io/zone"
GA_REGION = "topology.kubernetes.io/region"


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        pytest.param({}, "", id="Test_GetZoneKey: has no zone or region keys"),
        pytest.param(None, "", id="GetZoneKey: no labels at all"),
        pytest.param(
            {BETA_ZONE: "zone1", BETA_REGION: "region1"},
            "region1:\x00:zone1",
            id="Test_GetZoneKey: has beta zone and region keys",
        ),
        pytest.param(
            {GA_ZONE: "zone1", GA_REGION: "region1"},
            "region1:\x00:zone1",
            id="Test_GetZoneKey: has GA zone and region keys",
        ),
        pytest.param(
            {GA_ZONE: "zone1", GA_REGION: "region1", BETA_ZONE: "zone1", BETA_REGION: "region1"},
            "region1:\x00:zone1",
            id="Test_GetZoneKey: has both beta and GA zone and region keys",
        ),
        pytest.param(
            {GA_ZONE: "zone1", GA_REGION: "region1", BETA_ZONE: "zone2", BETA_REGION: "region2"},
            "region2:\x00:zone2",
            id="Test_GetZoneKey: has both beta and GA zone and region keys, beta labels take precedent",
        ),
        pytest.param({GA_ZONE: "zone1"}, ":\x00:zone1", id="GetZoneKey: zone only"),
        pytest.param({GA_REGION: "region1"}, "region1:\x00:", id="GetZoneKey: region only"),
        pytest.param(
            {BETA_ZONE: "zone2", GA_REGION: "region1"}, "region1:\x00:zone2", id="8.2 each label by itself: mixed"
        ),
        pytest.param(
            {BETA_ZONE: "", GA_ZONE: "zone1", GA_REGION: "region1"},
            "region1:\x00:",
            id="8.2 an empty beta zone wins",
        ),
        pytest.param(
            {BETA_REGION: "", GA_REGION: "region1", GA_ZONE: "zone1"},
            ":\x00:zone1",
            id="8.2 an empty beta region wins",
        ),
        pytest.param(
            {BETA_REGION: "", BETA_ZONE: "", GA_REGION: "region1", GA_ZONE: "zone1"},
            "",
            id="8.2 both empty: the common zone",
        ),
        pytest.param({GA_REGION: "", GA_ZONE: ""}, "", id="8.2 both empty by stable labels: the common zone"),
        pytest.param({"zone": "zone1"}, "", id="8.2 other labels do not count"),
    ],
)
def test_zone_key(labels: dict[str, str] | None, key: str) -> None:
    assert zone_key(labels) == key


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, False, id="Test_isNodeExcludedFromDisruptionChecks: no labels"),
        pytest.param(None, False, id="Test_isNodeExcludedFromDisruptionChecks: a name like master-abc is not enough"),
        pytest.param(
            {"node.kubernetes.io/exclude-disruption": ""},
            True,
            id="Test_isNodeExcludedFromDisruptionChecks: empty value",
        ),
        pytest.param({"node.kubernetes.io/exclude-disruption": "false"}, True, id="8.3 any value, even false"),
        pytest.param({"node-role.kubernetes.io/control-plane": ""}, False, id="8.3 the role does not count"),
    ],
)
def test_exclusion_from_disruption_checks(labels: dict[str, str] | None, *, expected: bool) -> None:
    assert is_excluded_from_disruption(labels) is expected


FULL = ZoneState.FULL_DISRUPTION
PARTIAL = ZoneState.PARTIAL_DISRUPTION
NORMAL = ZoneState.NORMAL


@pytest.mark.parametrize(
    ("not_ready", "ready", "threshold", "state"),
    [
        pytest.param(0, 0, 0.55, NORMAL, id="ComputeZoneState: no nodes"),
        pytest.param(0, 1, 0.55, NORMAL, id="ComputeZoneState: one node, ready"),
        pytest.param(1, 0, 0.55, FULL, id="ComputeZoneState: one node, not ready"),
        pytest.param(2, 0, 0.55, FULL, id="ComputeZoneState: full comes before few"),
        pytest.param(50, 0, 0.55, FULL, id="ComputeZoneState: all of many"),
        pytest.param(1, 1, 0.55, NORMAL, id="ComputeZoneState: one of two"),
        pytest.param(2, 1, 0.55, NORMAL, id="TestMonitorNodeHealth: two not ready are never partial"),
        pytest.param(3, 1, 0.55, PARTIAL, id="ComputeZoneState: three of four"),
        pytest.param(3, 2, 0.55, PARTIAL, id="TestMonitorNodeHealth: three of five exceed the threshold"),
        pytest.param(3, 3, 0.55, NORMAL, id="ComputeZoneState: half"),
        pytest.param(11, 9, 0.55, PARTIAL, id="8.3 32-bit floats: 11 of 20"),
        pytest.param(10, 10, 0.55, NORMAL, id="8.3 10 of 20"),
        pytest.param(55, 45, 0.55, PARTIAL, id="8.3 32-bit floats: 55 of 100"),
        pytest.param(54, 46, 0.55, NORMAL, id="8.3 54 of 100"),
        pytest.param(110, 90, 0.55, PARTIAL, id="8.3 32-bit floats: 110 of 200"),
        pytest.param(3, 7, 0.3, PARTIAL, id="8.3 32-bit floats: 3 of 10 at 0.3"),
        pytest.param(7, 3, 0.7, PARTIAL, id="8.3 32-bit floats: 7 of 10 at 0.7"),
        pytest.param(3, 997, 0.0, PARTIAL, id="8.3 threshold 0: three are enough"),
        pytest.param(2, 998, 0.0, NORMAL, id="8.3 threshold 0: two are not"),
        pytest.param(999, 1, 1.0, NORMAL, id="8.3 threshold 1: never partial"),
    ],
)
def test_zone_state(not_ready: int, ready: int, threshold: float, state: ZoneState) -> None:
    assert zone_state(["Unknown"] * not_ready + ["True"] * ready, threshold) == (not_ready, state)


@pytest.mark.parametrize(
    ("status", "is_ready"),
    [
        pytest.param("True", True, id="ComputeZoneState: True"),
        pytest.param("False", False, id="ComputeZoneState: False"),
        pytest.param("Unknown", False, id="ComputeZoneState: Unknown"),
        pytest.param(None, False, id="ComputeZoneState: no condition"),
        pytest.param("", False, id="ComputeZoneState: empty status"),
        pytest.param("true", False, id="ComputeZoneState: case counts"),
    ],
)
def test_only_true_counts_as_ready(status: str | None, *, is_ready: bool) -> None:
    assert zone_state([status], 0.55) == ((0, NORMAL) if is_ready else (1, FULL))


@pytest.mark.parametrize(
    ("size", "rate"),
    [
        pytest.param(0, 0.0, id="ReducedQPSFunc: none"),
        pytest.param(19, 0.0, id="ReducedQPSFunc: smaller than the threshold"),
        pytest.param(20, 0.0, id="ReducedQPSFunc: as large as the threshold is not large"),
        pytest.param(21, 0.01, id="ReducedQPSFunc: larger than the threshold"),
        pytest.param(5000, 0.01, id="ReducedQPSFunc: much larger"),
    ],
)
def test_reduced_rate(size: int, rate: float) -> None:
    assert reduced_rate(size, LifecycleSettings(large_cluster_size_threshold=20)) == rate


@pytest.mark.parametrize(
    ("state", "size", "rate"),
    [
        pytest.param(ZoneState.INITIAL, 3, 0.1, id="8.4 new works as normal"),
        pytest.param(NORMAL, 3, 0.1, id="8.4 normal"),
        pytest.param(NORMAL, 51, 0.1, id="8.4 normal and large"),
        pytest.param(PARTIAL, 50, 0.0, id="8.4 partial, not larger than the default threshold of 50"),
        pytest.param(PARTIAL, 51, 0.01, id="8.4 partial and large"),
        pytest.param(FULL, 3, 0.1, id="8.4 full while some other zone is not (HealthyQPSFunc)"),
        pytest.param(FULL, 51, 0.1, id="8.4 full and large"),
    ],
)
def test_rate_of_a_zone(state: ZoneState, size: int, rate: float) -> None:
    assert zone_rate(state, size, LifecycleSettings()) == rate


@given(st.lists(st.sampled_from(["True", "False", "Unknown", None]), max_size=40), st.floats(0, 1))
def test_node_order_is_irrelevant_and_recovery_never_worsens_a_zone(
    statuses: list[str | None], threshold: float
) -> None:
    not_ready, state = zone_state(statuses, threshold)
    assert zone_state(reversed(statuses), threshold) == (not_ready, state)
    severity = [NORMAL, PARTIAL, FULL]
    for index, status in enumerate(statuses):
        if status != "True":
            better = [*statuses[:index], "True", *statuses[index + 1 :]]
            assert severity.index(zone_state(better, threshold)[1]) <= severity.index(state)
