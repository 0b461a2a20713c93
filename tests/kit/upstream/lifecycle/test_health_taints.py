from __future__ import annotations

import pytest

from evictstream.kit.upstream.lifecycle import NOT_READY_TAINT, UNREACHABLE_TAINT, HealthStep, health_step
from evictstream.models.kubernetes import Taint
from tests.kit.upstream.lifecycle.scene import NOT_READY, UNREACHABLE


@pytest.mark.parametrize(
    ("status", "taints", "step"),
    [
        pytest.param("True", [], "clear", id="7.2 step 3: ready"),
        pytest.param("True", [NOT_READY_TAINT], "clear", id="7.2 step 3: ready, not-ready goes"),
        pytest.param("True", [UNREACHABLE_TAINT], "clear", id="7.2 step 3: ready, unreachable goes"),
        pytest.param("True", [NOT_READY_TAINT, UNREACHABLE_TAINT], "clear", id="7.2 step 3: ready, both go"),
        pytest.param("False", [], "queue", id="7.2 step 2: False, no taint"),
        pytest.param("False", [NOT_READY_TAINT], "keep", id="7.2 step 2: False, tainted already"),
        pytest.param("False", [UNREACHABLE_TAINT], "swap", id="TestSwapUnreachableNotReadyTaints"),
        pytest.param("False", [NOT_READY_TAINT, UNREACHABLE_TAINT], "swap", id="7.2 step 2: False, both: the old goes"),
        pytest.param("Unknown", [], "queue", id="7.2 step 2: Unknown, no taint"),
        pytest.param("Unknown", [UNREACHABLE_TAINT], "keep", id="7.2 step 2: Unknown, tainted already"),
        pytest.param("Unknown", [NOT_READY_TAINT], "swap", id="7.2 step 2: Unknown, the same the other way round"),
        pytest.param("Unknown", [UNREACHABLE_TAINT, NOT_READY_TAINT], "swap", id="7.2 step 2: Unknown, both"),
        pytest.param("", [], "nothing", id="processTaintBaseEviction: no such case"),
        pytest.param("Maybe", [NOT_READY_TAINT], "nothing", id="processTaintBaseEviction: foreign status"),
        pytest.param(
            "False", [Taint(UNREACHABLE, "", "NoSchedule")], "queue", id="TaintExists: NoSchedule is another taint"
        ),
        pytest.param("False", [Taint(NOT_READY, "", "NoSchedule")], "queue", id="TaintExists: effect counts"),
        pytest.param("False", [Taint(NOT_READY, "v", "NoExecute", 7)], "keep", id="TaintExists: value does not count"),
        pytest.param("Unknown", [Taint("lab/k", "", "NoExecute")], "queue", id="7.2 taints of others do not count"),
    ],
)
def test_step(status: str, taints: list[Taint], step: str) -> None:
    assert health_step(status, taints) is HealthStep(step)
