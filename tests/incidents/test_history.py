"""Recorded incidents under virtual time: the service's partition logic, judged by an oracle that shares no code.

It judges everything that went in and came out, and grants no time: what is owed comes in the very microsecond.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.incidents import INCIDENTS, events_of, incidents
from tests.harness.virtual_service import play, violations

FOLDERS = sorted(INCIDENTS.glob("*-no-evictor"))


@pytest.mark.parametrize("folder", incidents(FOLDERS))
def test_recorded_incident(folder: Path) -> None:
    """Right as it is; and with restarts command by command, field by field, as if nothing had happened."""
    events = events_of(folder)
    service, often, seldom = (play(events, restart_every) for restart_every in (0, 7, 40))
    assert sum(command["action"] == "Evict" for command in service.of("commands")) > 0
    assert often.commands() == seldom.commands() == service.commands()
    for one in (service, seldom):
        assert violations(one) == []
        assert one.of("dead-letters") == []
