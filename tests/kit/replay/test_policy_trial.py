"""What policies would have done in recorded incidents: verdicts that stay, and what holds for any policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.inputs.opening import Input
from evictstream.kit.replay.comparison import DifferenceKind
from evictstream.kit.replay.held_effects import ClauseEffect
from evictstream.kit.replay.policy_trial import PolicyTrial, try_policies
from evictstream.kit.replay.sources import open_source
from evictstream.models.steering.policies import Policies
from evictstream.streams.settings import Settings
from tests.harness.examples import examples
from tests.models.steering.test_policies import policy_record, read_policies

INCIDENTS = Path(__file__).parents[3] / "examples" / "incidents"
SETTINGS = Settings(partitions=1)
FLAPPING, RECOVERY, MANUAL, ZONE = (
    f"{name}-no-evictor"
    for name in ("flapping-taints", "recovery-before-deadline", "manual-taints", "zone-outage-part-recovers")
)


ONE_NODE = {"count": 1, "withinSeconds": 600}


def trial(incident: str, policies: Policies, run_on_seconds: float = 900.0) -> PolicyTrial:
    source = open_source(
        [Input(incident, INCIDENTS / incident / "events.jsonl.gz")], cluster=None, partitions=1, at=None
    )
    return try_policies(
        SETTINGS, policies, source.read, partitions=1, plays_executor=True, run_on_seconds=run_on_seconds
    )


def policies_of(**spec: Any) -> Policies:
    return read_policies(policy_record(spec=spec), appended_us=0)


def issued(found: PolicyTrial) -> tuple[int, int]:
    without, governed = (sum(one.issued_at_us is not None for one in run) for run in (found.without, found.governed))
    return without, governed


@pytest.mark.parametrize(
    ("incident", "spec", "verdict"),
    [
        pytest.param(FLAPPING, {"settleSeconds": 5}, (80, 80, 48, {}), id="settle", marks=pytest.mark.slow),
        pytest.param(RECOVERY, {"settleSeconds": 60, "for": {"taints": ["no"]}}, (12, 12, 0, {}), id="another taint"),
        pytest.param(RECOVERY, {"settleSeconds": 60}, (12, 0, 0, {}), id="settle longer than the outages"),
        pytest.param(MANUAL, {"observe": True}, (80, 0, 0, {"p": 80}), id="observe"),
        pytest.param(ZONE, {"limit": {"evictions": 1}}, (68, 56, 55, {}), id="limit, and some recover meanwhile"),
        pytest.param(
            MANUAL,
            {"hold": {"outsideOf": [{"begins": "11:26", "ends": "11:40", "zone": "UTC"}], "spreadSeconds": 10}},
            (80, 80, 80, {}),
            id="hold",
        ),
        pytest.param(MANUAL, {"guard": ONE_NODE}, (80, 0, 0, {"p": 80}), id="guard"),
        pytest.param(ZONE, {"guard": ONE_NODE}, (68, 26, 20, {"p": 30}), id="guard, and some recover meanwhile"),
    ],
)
def test_policies_on_shipped_incidents(
    incident: str, spec: dict[str, Any], verdict: tuple[int, int, int, dict[str, int]]
) -> None:
    """Evictions without and with them, those that were let wait, and those that wait at the end."""
    found = trial(incident, policies_of(**spec))
    assert (*issued(found), sum(one.delayed for one in found.clauses), found.held_at_end) == verdict
    missing = sum(one.here is None for one in found.differences)
    assert missing == found.spared + sum(found.held_at_end.values()), "spared, or held at the end"


def test_a_clause_says_how_long_evictions_waited() -> None:
    (found,) = trial(MANUAL, policies_of(settleSeconds=5)).clauses
    assert found == ClauseEffect(policy="p", clause="settle", delayed=22, median_seconds=5.0, longest_seconds=5.0)


def test_what_was_spared_says_so() -> None:
    found = trial(RECOVERY, policies_of(settleSeconds=60))
    assert found.spared == 12
    assert {one.kind for one in found.differences} == {DifferenceKind.ONLY_THERE}
    assert {one.reason and one.reason.text for one in found.differences} == {
        "its reason went while it waited: TaintRemoved"
    }


def test_no_policy_changes_nothing() -> None:
    found = trial(ZONE, Policies())
    assert (found.differences, found.clauses, found.held_at_end, found.spared) == ((), (), {}, 0)
    assert found.same == issued(found)[0]


OUTAGES = st.one_of(
    st.just({"zones": "allFull"}),
    st.fixed_dictionaries(
        {"zone": st.fixed_dictionaries({"unhealthyPercent": st.integers(1, 100), "atLeast": st.integers(1, 2)})}
    ),
)
CLAUSES = st.fixed_dictionaries(
    {},
    optional={
        "settleSeconds": st.integers(1, 30),
        "limit": st.fixed_dictionaries(
            {"evictions": st.integers(1, 3)},
            optional={"inSeconds": st.integers(1, 20), "burst": st.integers(1, 9), "per": st.sampled_from(["node"])},
        ),
        "inFlight": st.fixed_dictionaries({"count": st.integers(1, 9), "countsSeconds": st.integers(1, 60)}),
        "hold": st.fixed_dictionaries(
            {"while": OUTAGES}, optional={"spreadSeconds": st.integers(0, 30), "atMostSeconds": st.integers(1, 30)}
        ),
        "for": st.fixed_dictionaries({"nodes": st.sampled_from([["n-00*"], ["*1"]])}),
    },
)


def _first_issued(run: PolicyTrial) -> Iterator[tuple[str, int]]:
    return ((one.eviction_id, one.issued_at_us) for one in run.governed if one.issued_at_us is not None)


@pytest.mark.slow
@given(first=CLAUSES, second=CLAUSES)
@settings(max_examples=examples(12))
def test_policies_only_slow_down(first: dict[str, Any], second: dict[str, Any]) -> None:
    """What is issued under two policies is issued no sooner than under one of them, and that no sooner than without.

    A pod that has gone can have no later eviction, so only a pod's first one is compared. Where the one limits, what
    the other holds leaves its place to another pod, which goes sooner.
    """
    both = read_policies(policy_record("a", spec=first), policy_record("b", spec=second), appended_us=0)
    one = trial(RECOVERY, read_policies(policy_record("a", spec=first), appended_us=0))
    two = trial(RECOVERY, both)
    plain = {each.eviction_id: each.issued_at_us for each in one.without}
    under_one = dict(_first_issued(one))
    has_limit = "limit" in first or "inFlight" in first
    for run, before in ((one, plain), (two, plain if has_limit else under_one)):
        counts = Counter(eviction for eviction, _ in _first_issued(run))
        assert set(counts.values()) <= {1}
        for eviction, at_us in _first_issued(run):
            assert (before.get(eviction) or 0) <= at_us
            deadline_us = next(each.deadline_us for each in run.governed if each.eviction_id == eviction)
            assert at_us >= deadline_us


@pytest.mark.parametrize(("incident", "taints"), [(MANUAL, {"lab/k1", "lab/k2"}), (RECOVERY, set())])
def test_a_trial_names_the_incidents(incident: str, taints: set[str]) -> None:
    found = trial(incident, policies_of(guard=ONE_NODE)).incidents
    assert {(one.cluster, one.incident.taint, one.stands) for one in found} == {("lab", key, True) for key in taints}
