"""semantics.md 12.4: recorded gaps without a health taint, of a restarted controller manager and a full disruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE
from tests.harness.incidents import events_of
from tests.harness.virtual_service import VirtualService, play, violations

RECORDED = Path(__file__).with_name("outages")
RESTARTED, DISRUPTED = RECORDED / "restarted-controller-manager", RECORDED / "full-disruption"
SECONDS = {"default": 40, "short": 15}
LONG_GAP_US = 5 * SECOND_US

Spell = tuple[int, int | None]


def tainted_spells(folder: Path) -> dict[str, list[Spell]]:
    """Give from when to when each node had a health taint; of the last, no end."""
    spells: dict[str, list[Spell]] = {}
    for event in events_of(folder):
        if event["object"]["kind"] == "Node":
            known = spells.setdefault(event["object"]["metadata"]["name"], [])
            taints = event["object"].get("spec", {}).get("taints") or ()
            is_tainted = any(taint["key"] in HEALTH_KEYS and taint["effect"] == NO_EXECUTE for taint in taints)
            is_open = bool(known) and known[-1][1] is None
            if is_tainted and not is_open:
                known.append((instant_us(event["observedAt"]), None))
            elif is_open and not is_tainted:
                known[-1] = known[-1][0], instant_us(event["observedAt"])
    return {node: found for node, found in spells.items() if found}


def evicted(service: VirtualService) -> dict[str, tuple[int, int]]:
    """Give the deadline of each pod that was evicted, and when that was."""
    found: dict[str, tuple[int, int]] = {}
    for at_us, command in service.commands():
        if command["action"] == "Evict":
            found.setdefault(str(command["pod"]), (instant_us(str(command["deadline"])), at_us))
    return found


def expected(folder: Path, *, begins_with: int) -> dict[str, tuple[int, int]]:
    """Work out the same: seconds count from the first taint (0) or the last (-1), but nothing leaves without one."""
    found = {}
    for node, spells in tainted_spells(folder).items():
        for name, seconds in SECONDS.items():
            first_us = spells[0][0] + seconds * SECOND_US
            if spells[0][1] is not None and first_us < spells[0][1]:  # it was due before the gap
                found[f"{node}-{name}"] = first_us, first_us
            else:
                deadline_us = spells[begins_with][0] + seconds * SECOND_US
                found[f"{node}-{name}"] = deadline_us, max(deadline_us, spells[-1][0])
    return found


def long_gaps(folder: Path) -> set[str]:
    return {
        node
        for node, spells in tainted_spells(folder).items()
        if len(spells) == 2 and spells[1][0] - (spells[0][1] or 0) > LONG_GAP_US
    }


@pytest.mark.parametrize("restart_every", [0, 7])
def test_outages_go_on_when_a_controller_manager_restarts(restart_every: int) -> None:
    assert long_gaps(RESTARTED) == {"a-1", "a-2"}
    service = play(events_of(RESTARTED), restart_every)
    assert evicted(service) == expected(RESTARTED, begins_with=0)
    assert violations(service) == []


@pytest.mark.parametrize("restart_every", [0, 7])
def test_the_end_of_a_full_disruption_gives_fresh_windows(restart_every: int) -> None:
    assert long_gaps(DISRUPTED) == {"a-0", "a-1"}
    service = play(events_of(DISRUPTED), restart_every)
    assert evicted(service) == expected(DISRUPTED, begins_with=-1)
    assert violations(service) == []


def test_one_more_ready_node_makes_it_no_full_disruption() -> None:
    """Of the same record: what is not in the log is a node that stayed ready, and then the outages go on."""
    events = events_of(DISRUPTED)
    other: dict[str, Any] = json.loads(json.dumps(next(one for one in events if one["object"]["kind"] == "Node")))
    other["object"]["metadata"] |= {"name": "c-0", "uid": "c-0"}
    service = play([other, *events], 0)
    assert evicted(service) == expected(DISRUPTED, begins_with=0)
