"""semantics.md 12.4: the two health taints tell of one thing."""

from __future__ import annotations

import pytest

from evictstream.models.eviction.state import Outage, TaintState
from evictstream.models.eviction.taint_history import advance_outage
from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, UNREACHABLE, Taint

GAP = 5
NOW = 100
SICK = TaintState(Taint(NOT_READY, "", NO_EXECUTE), 1, 1, None)
SILENT = TaintState(Taint(UNREACHABLE, "", NO_EXECUTE), 1, 1, None)
OTHER = TaintState(Taint("maintenance", "", NO_EXECUTE), 1, 1, None)


@pytest.mark.parametrize(
    ("known", "taints", "ready", "result"),
    [
        pytest.param(None, [], "True", None, id="healthy"),
        pytest.param(None, [OTHER], "False", None, id="taints of people make no outage"),
        pytest.param(None, [], "False", None, id="no outage before the taint"),
        pytest.param(None, [SICK], "False", Outage(NOW), id="starts with the taint"),
        pytest.param(None, [SILENT], "True", Outage(NOW), id="starts with the taint whatever Ready says"),
        pytest.param(Outage(10), [SICK], "False", Outage(10), id="goes on"),
        pytest.param(Outage(10), [SILENT, SICK], "Unknown", Outage(10), id="swap, both for some milliseconds"),
        pytest.param(Outage(10), [SILENT], "Unknown", Outage(10), id="swap in one update"),
        pytest.param(Outage(10), [SICK], "True", Outage(10), id="Ready alone does not end it"),
        pytest.param(Outage(10), [], "False", Outage(10, NOW), id="gap begins, not ready"),
        pytest.param(Outage(10), [OTHER], "Unknown", Outage(10, NOW), id="gap begins, unknown, other taint"),
        pytest.param(Outage(10), [], "True", None, id="ends: ready"),
        pytest.param(Outage(10), [], None, None, id="ends: Ready not reported"),
        pytest.param(Outage(10, NOW - GAP), [SICK], "False", Outage(10), id="gap of just the limit"),
        pytest.param(Outage(10, NOW - GAP - 1), [SICK], "False", Outage(NOW), id="longer gap is a fresh start"),
        pytest.param(Outage(10, NOW - 1), [], "False", Outage(10, NOW - 1), id="gap goes on from its beginning"),
        pytest.param(Outage(10, NOW - GAP - 1), [], "False", None, id="gap too long already"),
        pytest.param(Outage(10, NOW - 1), [], "True", None, id="ready within the gap"),
        pytest.param(Outage(10, NOW - 1), [], None, None, id="Ready not reported within the gap"),
    ],
)
def test_outage(known: Outage | None, taints: list[TaintState], ready: str | None, result: Outage | None) -> None:
    assert advance_outage(known, taints, ready, at_us=NOW, gap_us=GAP) == result
