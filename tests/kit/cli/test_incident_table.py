"""What `evictstream incidents` prints of an incident."""

from __future__ import annotations

import json

import pytest

from evictstream.kit.cli.incident_table import incident_lines, incidents_kind
from evictstream.models.messages.incident import decode_incident
from tests.models.messages.test_incident import INCIDENT


@pytest.mark.parametrize(
    ("zone", "cell", "words"),
    [
        ({}, "-", "is on 4 nodes since"),
        ({"zone": "eu-1a"}, "eu-1a", "is on 4 nodes of zone eu-1a since"),
        ({"zone": ""}, "<none>", "is on 4 nodes without a zone since"),
    ],
    ids=["all nodes", "a zone", "nodes without one"],
)
def test_an_incident_names_its_zone(zone: dict[str, str], cell: str, words: str) -> None:
    incident = decode_incident(json.dumps(INCIDENT | zone))
    column = next(one for one in incidents_kind(lambda: 0).columns if one.title == "ZONE")
    assert column.cell(incident) == cell
    assert words in "\n".join(incident_lines(incident))


def test_an_incident_of_pods_names_its_node() -> None:
    incident = decode_incident(json.dumps(INCIDENT | {"node": "n7", "of": "pods"}))
    cells = {one.title: one.cell(incident) for one in incidents_kind(lambda: 0).columns}
    assert (cells["NODE"], cells["ZONE"], cells["ALLOWED"]) == ("n7", "-", "3 pods")
    assert "is on node n7 since 2026-11-21T12:02:16.000000Z; policy large allows 3 pods" in "\n".join(
        incident_lines(incident)
    )


def test_an_incident_of_owners_says_how_many_may() -> None:
    incident = decode_incident(json.dumps(INCIDENT | {"of": "ownersLosingAll"}))
    (cell,) = (one.cell(incident) for one in incidents_kind(lambda: 0).columns if one.title == "ALLOWED")
    assert cell == "3 owners that lose all"


def test_where_nothing_waits_it_asks_for_no_approval() -> None:
    """As when all have gone while it was approved."""
    lines = {
        count: list(incident_lines(decode_incident(json.dumps(INCIDENT | {"evictions": count, "due": 0}))))
        for count in (0, 1)
    }
    assert lines[0][-1] == "nothing waits now; it ends when the taints are gone"
    assert lines[1][-1].startswith("waits for a person: evictstream incidents approve")


@pytest.mark.parametrize(("selected", "waits"), [(0, False), (3, True), (None, True)])
def test_evictions_that_its_policy_does_not_select_wait_for_nobody(selected: int | None, waits: bool) -> None:  # noqa: FBT001 - a case
    incident = decode_incident(json.dumps(INCIDENT | ({} if selected is None else {"selected": selected})))
    lines = list(incident_lines(incident))
    assert incidents_kind(lambda: 0).is_alarming(incident) == waits
    assert lines[-1].startswith("waits for a person" if waits else "nothing waits now")
    said = f"policy large selects {selected} of these evictions; no others wait"
    assert (said in lines) == (selected is not None)
