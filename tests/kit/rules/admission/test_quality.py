"""pkg/apis/core/helper/qos/qos.go: what keeps a pod from being best-effort."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.admission import ResourceAmounts, is_best_effort


def requests(**amounts: str) -> ResourceAmounts:
    return ResourceAmounts(requests=amounts)


def limits(**amounts: str) -> ResourceAmounts:
    return ResourceAmounts(limits=amounts)


NOTHING = ResourceAmounts()


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([], True, id="no container"),
        pytest.param([NOTHING], True, id="admission_test.go: bestEffortPod"),
        pytest.param(
            [ResourceAmounts(requests={"cpu": "500m"}, limits={"cpu": "1000m"})],
            False,
            id="admission_test.go: burstablePod",
        ),
        pytest.param(
            [ResourceAmounts(requests={"cpu": "1000m"}, limits={"cpu": "1000m"})],
            False,
            id="admission_test.go: guaranteedPod",
        ),
        pytest.param([requests(memory="1Gi")], False, id="request of memory"),
        pytest.param([limits(memory="1")], False, id="limit alone"),
        pytest.param([NOTHING, requests(cpu="1n")], False, id="any container counts"),
        pytest.param([requests(cpu="0")], True, id="zero is no request"),
        pytest.param([requests(cpu="0m", memory="0.0Gi")], True, id="zero with suffix"),
        pytest.param([requests(cpu="0e5")], True, id="zero with exponent"),
        pytest.param([requests(cpu="0.001")], False, id="a fraction"),
        pytest.param([requests(cpu=".5")], False, id="a fraction without zero"),
        pytest.param([requests(cpu="+2")], False, id="with sign"),
        pytest.param([requests(cpu="-1")], True, id="below zero is no request"),
        pytest.param([requests(cpu="1e3")], False, id="with exponent"),
        pytest.param([requests(cpu="10")], False, id="ends in zero"),
        pytest.param([ResourceAmounts(requests={"ephemeral-storage": "1Gi"})], True, id="storage does not count"),
        pytest.param([ResourceAmounts(limits={"nvidia.com/gpu": "1"})], True, id="devices do not count"),
    ],
)
def test_containers(containers: list[ResourceAmounts], *, expected: bool) -> None:
    assert is_best_effort(containers) is expected


def test_resources_of_the_pod_count_instead_of_those_of_containers() -> None:
    assert is_best_effort([requests(cpu="1")], pod_level=NOTHING)
    assert not is_best_effort([NOTHING], pod_level=requests(cpu="1"))


@pytest.mark.parametrize(("reported", "expected"), [("BestEffort", True), ("Burstable", False), ("Guaranteed", False)])
def test_GetPodQOS_the_reported_class_counts_first(reported: str, *, expected: bool) -> None:  # noqa: N802 - the name upstream
    for containers in ([NOTHING], [requests(cpu="1")]):
        assert is_best_effort(containers, reported_class=reported) is expected
