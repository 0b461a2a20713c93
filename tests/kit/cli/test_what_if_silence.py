"""`evictstream what-if --silent` on a recorded incident, right before it began."""

from __future__ import annotations

import json

import pytest

from tests.kit.cli.test_what_if import INCIDENT, NOWHERE
from tests.streams.cli.running import run

BEFORE = "2026-11-21T11:19:10Z"
GATE = "NodeControllerLeaseCircuitBreaker"


def silent(*arguments: str) -> dict[str, object]:
    result = run(NOWHERE, "what-if", INCIDENT, "--at", BEFORE, "--silent", "-o", "json", *arguments)
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.slow
def test_a_whole_zone_surely_loses_its_pods() -> None:
    found = silent("--zone", "z-a")
    assert found["tainted"] == {"fewest": 6, "most": 6}
    assert found["evicted"] == {"fewest": 60, "most": 60}
    assert len(found["surelyEvicted"]) == 60  # type: ignore[arg-type]


def test_a_zone_that_may_be_protected_is_a_range() -> None:
    found = silent("--nodes", "n-000,n-003,n-006,n-009", "--for", "70")
    assert found["tainted"] == {"fewest": 0, "most": 2}
    assert (found["surelyEvicted"], found["pods"]) == ([], 56)


def test_flags_of_the_controller_manager_are_taken() -> None:
    found = silent("--zone", "z-a", "--for", "50", "--node-monitor-grace-period", "40s", "--node-eviction-rate", "1e9")
    assert found["flags"] == {"--node-monitor-grace-period": "40s", "--node-eviction-rate": 1e9}
    assert found["tainted"]["most"] == 6  # type: ignore[index]
    assert found["labelsNotKnown"] == 0


@pytest.mark.parametrize("turn", ["true", "false"])
def test_gate_of_the_controller_manager_is_taken(turn: str) -> None:
    found = silent("--zone", "z-a", "--for", "40", "--feature-gates", f"{GATE}={turn}")
    assert found["flags"] == {"--feature-gates": f"{GATE}={turn}"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--cordon", "--nodes", "n-000"], "cannot be combined with another change", id="another change"),
        pytest.param([], "no nodes are selected", id="no nodes"),
        pytest.param(["--node-monitor-period", "5"], "is not a duration", id="no unit"),
        pytest.param(["--node-monitor-period", "10ms"], "is shorter than 1s", id="too short"),
        pytest.param(["--node-eviction-rate", "-1"], "--node-eviction-rate must", id="negative"),
        pytest.param(["--unhealthy-zone-threshold", "nan"], "--unhealthy-zone-threshold must", id="no number"),
        pytest.param(["--feature-gates", "DRADeviceTaints=false"], "decides nothing here", id="another gate"),
        pytest.param(["--feature-gates", f"{GATE}=off"], "is neither true nor false", id="gate without a truth"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: list[str], problem: str) -> None:
    named = () if problem == "no nodes are selected" else ("--zone", "z-a")
    result = run(NOWHERE, "what-if", INCIDENT, "--silent", *named, *arguments)
    assert (result.returncode, problem.encode() in result.stderr) == (2, True)


def test_flags_of_the_controller_manager_need_silence() -> None:
    result = run(NOWHERE, "what-if", INCIDENT, "--cordon", "--zone", "z-a", "--kube-api-qps", "50")
    assert (result.returncode, b"--kube-api-qps needs --silent" in result.stderr) == (2, True)
