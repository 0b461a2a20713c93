"""Which evictions policies hold, until when, and what a change of them lets go."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import MILLISECOND_US, SECOND_US, instant_text
from evictstream.models.messages.policy import PolicySpec, decode_policy
from evictstream.models.steering.holds import Hold, Subject, holder_of, longest, longest_hold
from evictstream.models.steering.policies import MOST_POLICIES, NO_POLICIES, Policies, longest_patience_us
from tests.models.steering.test_windows import at

NOW_US = 1_800_000_000 * SECOND_US
TAINTED_US = NOW_US - 30 * SECOND_US
OBSERVED = Hold("policy/p/1/observe", None)


def policy_record(name: str = "p", *, revision: int = 1, **more: Any) -> bytes:
    policy = {
        "apiVersion": "evictstream.io/v1",
        "kind": "Policy",
        "name": name,
        "revision": revision,
        "why": "agents",
        "by": "anna",
        "appliedAt": instant_text(NOW_US),
        **more,
    }
    return json.dumps(policy).encode()


def read_policies(*records: bytes, appended_us: int = NOW_US, before: Policies = NO_POLICIES) -> Policies:
    for value in records:
        before = before.with_record(json.loads(value)["name"].encode(), value, appended_us // MILLISECOND_US)
    return before


def subject(**facts: Any) -> Subject:
    known: dict[str, Any] = {
        "namespace": "shop",
        "pod_uid": "u1",
        "taint": "node.cilium.io/agent-not-ready",
        "due_us": TAINTED_US,
        "node": "gpu-7",
        "taint_since_us": TAINTED_US,
    }
    return Subject(**known | facts)


def hold(policies: Policies, *, cluster: str = "c1", now_us: int = NOW_US, **facts: Any) -> Hold | None:
    return longest_hold(policies.of_cluster(cluster), subject(**facts), now_us)


@pytest.mark.parametrize(
    ("fields", "is_held"),
    [
        pytest.param({}, True, id="all"),
        pytest.param({"for": {"clusters": ["c*"]}}, True, id="cluster"),
        pytest.param({"for": {"clusters": ["d*", "e"]}}, False, id="another cluster"),
        pytest.param({"for": {"taints": ["node.cilium.io/*"]}}, True, id="taint"),
        pytest.param({"for": {"taints": ["node.cilium.io"]}}, False, id="a pattern matches whole names"),
        pytest.param({"for": {"nodes": ["gpu-[0-9]", "cpu-*"]}}, True, id="node"),
        pytest.param({"for": {"nodes": ["gpu-?7"]}}, False, id="another node"),
        pytest.param({"for": {"namespaces": ["shop"], "nodes": ["cpu"]}}, False, id="all lists have to match"),
        pytest.param({"except": {"namespaces": ["sh*"]}}, False, id="excluded"),
        pytest.param({"except": {"namespaces": ["shop"], "nodes": ["cpu"]}}, True, id="excluded by all lists only"),
        pytest.param({"except": {"clusters": ["c2"], "namespaces": ["shop"]}}, True, id="excluded elsewhere"),
        pytest.param({"except": {"clusters": ["c1"], "namespaces": ["shop"]}}, False, id="excluded here"),
    ],
)
def test_a_policy_holds_what_it_selects(fields: dict[str, Any], is_held: bool) -> None:  # noqa: FBT001
    found = hold(read_policies(policy_record(spec={"observe": True, **fields})))
    assert found == (OBSERVED if is_held else None)


@pytest.mark.parametrize(("seconds", "until_us"), [(30, None), (31, TAINTED_US + 31 * SECOND_US)])
def test_settle_holds_until_the_taint_has_stood(seconds: int, until_us: int | None) -> None:
    found = hold(read_policies(policy_record(spec={"settleSeconds": seconds})))
    assert found == (None if until_us is None else Hold("policy/p/1/settle", until_us))


@pytest.mark.parametrize(
    ("clauses", "may_hold"),
    [
        pytest.param({"patienceSeconds": 60, "for": {"zones": ["a"]}}, False, id="patience"),
        pytest.param({"observe": True}, True, id="observe"),
        pytest.param({"patienceSeconds": 60, "limit": {"evictions": 1}}, True, id="patience and a limit"),
    ],
)
def test_every_clause_but_patience_may_hold(clauses: dict[str, Any], may_hold: bool) -> None:  # noqa: FBT001
    spec = decode_policy(policy_record(spec=clauses)).spec
    assert spec is not None
    assert spec.may_hold == may_hold


def test_all_policies_bind_and_the_longest_hold_counts() -> None:
    policies = read_policies(
        policy_record("a", spec={"settleSeconds": 60}), policy_record("b", spec={"settleSeconds": 90})
    )
    assert hold(policies) == Hold("policy/b/1/settle", TAINTED_US + 90 * SECOND_US)
    assert hold(read_policies(policy_record(spec={"observe": True}), before=policies)) == OBSERVED


def test_the_longest_patience_counts() -> None:
    policies = read_policies(
        policy_record("a", spec={"patienceSeconds": 60}),
        policy_record("b", spec={"patienceSeconds": 90}),
        policy_record("c", spec={"patienceSeconds": 900, "for": {"namespaces": ["other"]}}),
    )
    assert longest_patience_us(policies.of_cluster("c1"), subject()) == 90 * SECOND_US
    assert hold(policies) is None


CHANGES = [
    pytest.param({"revision": 2}, id="deleted"),
    pytest.param({"revision": 2, "spec": {"patienceSeconds": 5}}, id="without the clause"),
    pytest.param({"revision": 2, "spec": {"observe": True, "for": {"nodes": ["x"]}}}, id="selects another"),
]


@pytest.mark.parametrize("clause", [{"observe": True}, {"settleSeconds": 3600}], ids=["observe", "settle"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_change_lets_go_is_spread(change: dict[str, Any], clause: dict[str, Any]) -> None:
    policies = read_policies(policy_record(spreadSeconds=20, earlier=[{"spec": clause}], **change))
    untils = set()
    for number in range(200):
        found = hold(policies, pod_uid=f"u{number}")
        assert found is not None
        assert found.by == "policy/p/2/spread"
        assert found.until_us is not None
        untils.add(found.until_us)
        assert NOW_US <= found.until_us < NOW_US + 20 * SECOND_US
        assert hold(policies, pod_uid=f"u{number}", now_us=found.until_us) is None
    assert len(untils) == 200


@pytest.mark.parametrize(
    ("clause", "facts"),
    [
        pytest.param({"observe": True}, {"due_us": NOW_US + 1}, id="due afterwards"),
        pytest.param({"settleSeconds": 20}, {}, id="settled before"),
        pytest.param({"observe": True, "for": {"nodes": ["x"]}}, {}, id="never selected"),
        pytest.param({"patienceSeconds": 3600}, {}, id="never held"),
        pytest.param(
            {"patienceSeconds": 3600},
            {"taint_since_us": NOW_US + 1, "now_us": NOW_US + 2},
            id="never held, and its taint came back",
        ),
    ],
)
def test_what_no_revision_held_is_not_spread(clause: dict[str, Any], facts: dict[str, Any]) -> None:
    assert hold(read_policies(policy_record(revision=2, earlier=[{"spec": clause}])), **facts) is None


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_holds_nothing_longer_than_no_change(change: dict[str, Any]) -> None:
    settled_us = NOW_US + 5 * SECOND_US
    policies = read_policies(policy_record(spreadSeconds=3600, earlier=[{"spec": {"settleSeconds": 35}}], **change))
    for number in range(200):
        found = hold(policies, pod_uid=f"u{number}")
        assert found is not None
        assert found.until_us is not None
        assert found.until_us <= settled_us


def test_an_earlier_change_is_spread_from_its_own_end() -> None:
    ended = {"spec": {"observe": True}, "endedAt": instant_text(NOW_US - 50 * SECOND_US)}
    policies = read_policies(policy_record(revision=3, earlier=[{"spec": {"patienceSeconds": 5}}, ended]))
    (standing,) = policies.standing.values()
    assert not standing.is_over(NOW_US)
    for number in range(100):
        found = hold(policies, pod_uid=f"u{number}", due_us=NOW_US - 60 * SECOND_US)
        assert found is None or (found.until_us or 0) < NOW_US + 10 * SECOND_US
    assert standing.is_over(NOW_US + 60 * SECOND_US)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(b"{", "BadJson", id="no JSON"),
        pytest.param(policy_record(spec={"observe": True, "limit": 5}), "limit", id="a clause of a later version"),
        pytest.param(policy_record(spec={"for": {"racks": ["a"]}}), "racks", id="a selection of a later version"),
        pytest.param(policy_record(spec={"settleSeconds": 0}), "settleSeconds", id="out of range"),
        pytest.param(policy_record("q", spec={}), "key", id="another key"),
        pytest.param(policy_record(spreadSeconds=86_401), "spreadSeconds", id="a spread of more than a day"),
    ],
)
def test_a_record_that_cannot_be_read_holds_all(value: bytes, text: str) -> None:
    policies = read_policies(policy_record("other", spec={"patienceSeconds": 5})).with_record(b"p", value, 0)
    objection = policies.objection()
    assert objection is not None
    assert "'p'" in objection
    assert text in objection
    assert policies.with_record(b"p", None, 0).objection() is None


def test_more_policies_than_the_limit_are_unreadable() -> None:
    records = [policy_record(f"p{number}", spec={"observe": True}) for number in range(MOST_POLICIES + 1)]
    assert list(read_policies(*records).unreadable) == [f"p{MOST_POLICIES}"]
    deleted = [policy_record(f"d{number}", revision=2) for number in range(MOST_POLICIES)]
    assert not read_policies(*deleted, *records[:-1]).unreadable


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "observe": st.booleans(),
        "settleSeconds": st.integers(1, 100),
        "for": st.fixed_dictionaries(
            {}, optional={"nodes": st.sampled_from([["a"], ["b*"], ["a", "bc"]]), "clusters": st.just(["c1"])}
        ),
        "except": st.fixed_dictionaries({}, optional={"namespaces": st.sampled_from([["x"], ["y*"]])}),
    },
)
_EARLIER = SPECS.map(lambda spec: {"spec": spec})
POLICIES = st.lists(
    st.fixed_dictionaries(
        {"spec": SPECS}, optional={"earlier": st.lists(SPECS.map(lambda spec: {"spec": spec}), max_size=2)}
    ),
    max_size=4,
)
SUBJECTS = st.builds(
    subject,
    node=st.sampled_from("abc"),
    namespace=st.sampled_from(["x", "yy"]),
    due_us=st.integers(NOW_US - 200 * SECOND_US, NOW_US + 200 * SECOND_US),
    taint_since_us=st.integers(NOW_US - 200 * SECOND_US, NOW_US),
)


@given(drawn=POLICIES, more=POLICIES, one=SUBJECTS, after=st.integers(0, 200))
def test_more_policies_only_hold_more(drawn: list[Any], more: list[Any], one: Subject, after: int) -> None:
    """Whatever goes under P and Q goes under P alone, and holds of P alone end no later than those of both."""
    now_us = NOW_US + after * SECOND_US
    alone = read_policies(*(policy_record(f"p{number}", **each) for number, each in enumerate(drawn)))
    both = read_policies(*(policy_record(f"q{number}", **each) for number, each in enumerate(more)), before=alone)
    held, held_by_both = (longest_hold(each.of_cluster("c1"), one, now_us) for each in (alone, both))
    if held is not None:
        assert held_by_both is not None
        assert held_by_both.until_us is None or (held.until_us or 0) <= held_by_both.until_us
        assert held.until_us is None or held.until_us > now_us


_SAID = [{"observe": True}, {"settleSeconds": 20}, {"settleSeconds": 90}, {"patienceSeconds": 5}, None]


@given(
    changes=st.lists(st.tuples(st.sampled_from(_SAID), st.integers(1, 30)), min_size=1, max_size=60),
    one=SUBJECTS,
    after=st.integers(0, 70),
)
def test_a_record_keeps_all_that_its_revisions_held(changes: list[Any], one: Subject, after: int) -> None:
    """However often a policy changes to and fro, the few revisions that its record has hold as long as all of them."""
    now_us, standing, whole, record = NOW_US - 200 * SECOND_US, None, [], b""
    for number, (spec, seconds) in enumerate(changes):
        now_us += seconds * SECOND_US
        fields: dict[str, Any] = {} if spec is None else {"spec": spec}
        if standing is not None:
            kept = standing.replaced_by(msgspec.convert(spec, PolicySpec | None), now_us)
            assert len(kept) <= len(_SAID)
            fields["earlier"] = msgspec.to_builtins(kept)
        record = policy_record(revision=number + 1, spreadSeconds=60, **fields)
        (standing,) = read_policies(record, appended_us=now_us).standing.values()
        whole.append((spec, now_us))
    at_us = now_us + after * SECOND_US
    ends = [end_us for _, end_us in whole[1:]]
    earlier = [
        {"spec": spec, "endedAt": instant_text(end_us)}
        for (spec, _), end_us in zip(whole, ends, strict=False)
        if spec is not None
    ]
    found = longest_hold(read_policies(record, appended_us=now_us).of_cluster("c1"), one, at_us)
    parts = [read_policies(policy_record(spreadSeconds=60, earlier=[each]), appended_us=now_us) for each in earlier]
    if whole[-1][0] is not None:
        parts.append(read_policies(policy_record(spec=whole[-1][0])))
    holds = [longest_hold(each.of_cluster("c1"), one, at_us) for each in parts]
    expected = longest(holds)
    assert (found is None) == (expected is None)
    assert found is None or expected is None or found.until_us == expected.until_us


@pytest.mark.parametrize(
    ("by", "holder"), [("b-1", "b-1"), ("policy/p/1/observe", "policy/p"), ("policy/p", "policy/p")]
)
def test_a_holder_has_no_revision(by: str, holder: str) -> None:
    assert holder_of(by) == holder


NIGHTS = {"outsideOf": [{"begins": "22:00", "ends": "05:00", "zone": "UTC"}]}
OPENS_US = at("2027-01-15T22:00Z")  # after NOW_US, at 08:00 of that day


@pytest.mark.parametrize(
    ("hold_fields", "facts", "after_us"),
    [
        pytest.param({"spreadSeconds": 0}, {}, OPENS_US - NOW_US, id="at the next window"),
        pytest.param({"spreadSeconds": 0}, {"now_us": OPENS_US}, None, id="in a window"),
        pytest.param({}, {"now_us": OPENS_US, "due_us": OPENS_US}, None, id="due in the window"),
        pytest.param({"spreadSeconds": 0, "atMostSeconds": 3_600}, {}, 3_570 * SECOND_US, id="at most an hour"),
        pytest.param(
            {"spreadSeconds": 0, "atMostSeconds": 3_600},
            {"due_us": NOW_US, "leaves_us": TAINTED_US},
            3_570 * SECOND_US,
            id="at most an hour in all",
        ),
    ],
)
def test_a_hold_waits_for_a_window(hold_fields: dict[str, Any], facts: dict[str, Any], after_us: int | None) -> None:
    found = hold(read_policies(policy_record(spec={"hold": NIGHTS | hold_fields})), **facts)
    assert found == (None if after_us is None else Hold("policy/p/1/hold", NOW_US + after_us))


@pytest.mark.parametrize(("spread", "longest_seconds"), [(600, 600), (86_400, 12_600)], ids=["", "half of the window"])
@pytest.mark.parametrize("now_us", [NOW_US, OPENS_US], ids=["before", "when it opens"])
def test_what_waited_for_a_window_is_spread(spread: int, longest_seconds: int, now_us: int) -> None:
    policies = read_policies(policy_record(spec={"hold": NIGHTS | {"spreadSeconds": spread}}))
    found = [hold(policies, pod_uid=f"u{number}", now_us=now_us) for number in range(300)]
    untils = sorted(one.until_us - OPENS_US for one in found if one is not None and one.until_us is not None)
    assert len(untils) == len(found)
    assert 0 <= untils[0] < longest_seconds * SECOND_US / 50
    assert longest_seconds * SECOND_US * 0.98 < untils[-1] < longest_seconds * SECOND_US


def test_a_hold_that_goes_holds_nothing_longer_than_its_window() -> None:
    policies = read_policies(
        policy_record(revision=2, spreadSeconds=86_400, earlier=[{"spec": {"hold": NIGHTS | {"spreadSeconds": 0}}}])
    )
    untils = [hold(policies, pod_uid=f"u{number}") for number in range(300)]
    assert max(one.until_us or 0 for one in untils if one is not None) == OPENS_US


def test_a_time_zone_that_is_not_known_here_closes() -> None:
    window = {"begins": "22:00", "ends": "05:00", "zone": "Middle/Earth"}
    policies = read_policies(policy_record(spec={"hold": {"outsideOf": [window]}}))
    assert "Middle/Earth" in (policies.objection() or "")
