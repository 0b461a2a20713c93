"""What a policy holds in an outage of a zone, for how long, and how it goes when the outage is over."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy import decode_policy
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.steering.holds import Hold
from evictstream.models.steering.node_counts import KnownNodes, NodeStanding
from evictstream.models.steering.policies import Policies
from tests.models.steering.test_policies import NOW_US, TAINTED_US, hold, policy_record, read_policies

UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
ZONE = {"zone": {"unhealthyPercent": 50, "atLeast": 2}}
ALL_FULL = {"zones": "allFull"}
HELD = Hold("policy/p/1/hold", None)
OVER_US = NOW_US - 5 * SECOND_US


def outage(condition: dict[str, Any] = ZONE, *, spread: int = 20, **more: Any) -> Policies:
    return read_policies(policy_record(spec={"hold": {"while": condition, "spreadSeconds": spread, **more}}))


def nodes(sick: int, healthy: int, *, zone: str = "a") -> KnownNodes:
    known = KnownNodes()
    for number in range(healthy + sick):
        known.take(f"n{number}", NodeStanding(zone, is_unhealthy=number >= healthy), TAINTED_US)
    return known


def recovered() -> KnownNodes:
    """A zone whose outage was over five seconds ago."""
    known = nodes(2, 2)
    known.take("n3", NodeStanding("a", is_unhealthy=False), OVER_US)
    return known


def held(policies: Policies, known: KnownNodes | None, **facts: Any) -> Hold | None:
    return hold(policies, **{"taint": UNREACHABLE, "zone": "a", "known": known} | facts)


@pytest.mark.parametrize(
    ("known", "facts", "is_held"),
    [
        pytest.param(nodes(2, 2), {}, True, id="enough"),
        pytest.param(nodes(2, 2), {"taint": NOT_READY}, True, id="the other taint"),
        pytest.param(nodes(2, 2), {"taint": "gpu/xid"}, False, id="no taint of node health"),
        pytest.param(nodes(2, 2), {"zone": "b"}, False, id="another zone"),
        pytest.param(nodes(2, 2), {"zone": None}, True, id="its zone is not known"),
        pytest.param(nodes(2, 2, zone=""), {"zone": ""}, True, id="nodes without a zone are one"),
        pytest.param(nodes(2, 3), {}, False, id="too small a share"),
        pytest.param(nodes(1, 0), {}, False, id="too few"),
        pytest.param(None, {}, False, id="nobody counts"),
    ],
)
def test_a_zone_in_an_outage_is_held(known: KnownNodes | None, facts: dict[str, Any], is_held: bool) -> None:  # noqa: FBT001
    assert held(outage(), known, **facts) == (HELD if is_held else None)


@pytest.mark.parametrize(("known", "is_held"), [(nodes(3, 0), True), (nodes(3, 1), False), (nodes(0, 0), False)])
def test_all_zones_have_to_be_full(known: KnownNodes, is_held: bool) -> None:  # noqa: FBT001 - a case
    for zone in ("a", "b", None):
        assert held(outage(ALL_FULL), known, zone=zone) == (HELD if is_held else None)


def test_a_policy_that_names_taints_is_about_these() -> None:
    policies = read_policies(policy_record(spec={"for": {"taints": ["gpu/*"]}, "hold": {"while": ZONE}}))
    assert held(policies, nodes(2, 2), taint="gpu/xid") == HELD
    assert held(policies, nodes(2, 2)) is None


def test_after_the_outage_what_was_due_goes_spread() -> None:
    untils = {held(outage(), recovered(), pod_uid=f"u{number}", due_us=OVER_US) for number in range(200)}
    assert None in untils, "a quarter has gone"
    waits = [one.until_us - OVER_US for one in untils if one is not None and one.until_us is not None]
    assert 100 < len(waits) < 180
    assert 5 * SECOND_US < min(waits) < 6 * SECOND_US
    assert 19 * SECOND_US < max(waits) < 20 * SECOND_US


def test_what_becomes_due_after_the_outage_goes_at_once() -> None:
    assert all(held(outage(), recovered(), pod_uid=f"u{number}", due_us=OVER_US + 1) is None for number in range(50))


def test_nothing_waits_longer_than_at_most() -> None:
    policies = outage(atMostSeconds=40)
    assert held(policies, nodes(2, 2)) == Hold("policy/p/1/hold", TAINTED_US + 40 * SECOND_US)
    assert held(policies, nodes(2, 2), due_us=NOW_US - 40 * SECOND_US) is None
    untils = {held(policies, recovered(), pod_uid=f"u{number}", due_us=TAINTED_US) for number in range(200)}
    assert max(one.until_us or 0 for one in untils if one is not None) == TAINTED_US + 40 * SECOND_US


def test_a_repeat_waits_no_longer_than_its_first_attempt() -> None:
    policies = outage(atMostSeconds=40)
    for leaves_us, until_us in ((TAINTED_US, TAINTED_US + 40 * SECOND_US), (NOW_US - 40 * SECOND_US, None)):
        found = held(policies, nodes(2, 2), due_us=NOW_US - SECOND_US, leaves_us=leaves_us)
        assert found == (None if until_us is None else Hold("policy/p/1/hold", until_us))


def test_a_deleted_policy_spreads_what_the_outage_held() -> None:
    earlier = [{"spec": {"hold": {"while": ZONE, "spreadSeconds": 20}}}]
    policies = read_policies(policy_record(revision=2, spreadSeconds=20, earlier=earlier))
    for number in range(50):
        found = held(policies, nodes(2, 2), pod_uid=f"u{number}")
        assert found is not None
        assert found.by == "policy/p/2/spread"
        assert NOW_US <= (found.until_us or 0) <= NOW_US + 20 * SECOND_US
    assert held(policies, nodes(1, 2)) is None, "it held nothing"


def test_what_would_have_gone_sooner_without_a_change_goes_sooner() -> None:
    earlier = [{"spec": {"hold": {"while": ZONE, "spreadSeconds": 20}}}]
    policies = read_policies(policy_record(revision=2, spreadSeconds=3_600, earlier=earlier))
    for number in range(50):
        before = held(outage(), recovered(), pod_uid=f"u{number}")
        after = held(policies, recovered(), pod_uid=f"u{number}")
        assert (before and before.until_us) == (after and after.until_us)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"while": {}}, id="no condition"),
        pytest.param({"while": ZONE | ALL_FULL}, id="two conditions"),
        pytest.param({"while": {"zones": "some"}}, id="an unknown word"),
        pytest.param({"while": {"zone": {"unhealthyPercent": 0}}}, id="no share"),
        pytest.param({"while": {"zone": {"unhealthyPercent": 101}}}, id="more than all"),
        pytest.param(
            {"while": ZONE, "outsideOf": [{"begins": "01:00", "ends": "02:00", "zone": "UTC"}]}, id="and windows"
        ),
    ],
)
def test_a_hold_says_one_thing(fields: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        decode_policy(policy_record(spec={"hold": fields}))
