"""How fast limited evictions may go, and which of those that wait goes first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.traits import PodTraits
from evictstream.models.messages.policy_clauses import LimitScope, PolicyInFlight, PolicyLimit
from evictstream.models.steering import limits as limits_module
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.in_flight import PodPlace
from evictstream.models.steering.limits import LimitedBy, Limits, scope_value
from evictstream.models.steering.policies import limits_on
from tests.models.steering.test_policies import NOW_US, policy_record, read_policies, subject

TRAITS = PodTraits(owner_kind="ReplicaSet", owner_name="web-1", group="gang")
CLUSTER, NAMESPACE = LimitScope.CLUSTER, LimitScope.NAMESPACE
OLD_US = NOW_US - 86_400 * SECOND_US


def limited(limit: PolicyLimit | PolicyInFlight, pod: Subject, *, name: str = "p", since_us: int = OLD_US) -> LimitedBy:
    order = limits_module.order_of(limit, name)
    bucket = (name, "c", limit, scope_value(limit, pod))
    return LimitedBy(order=order, name=bucket, limit=limit, by=f"policy/{name}/1/limit", since_us=since_us)


class Line:
    """Evictions that ask, are called and ask again, one second after the other.

    `only` has the one namespace that a limit is for, by its number.
    """

    def __init__(
        self, *limits: PolicyLimit | PolicyInFlight, since_us: int = OLD_US, only: Mapping[int, str] | None = None
    ) -> None:
        self.limits = Limits()
        self.limits.begin(since_us)
        self.wanted = limits
        self.only = only or {}
        self.waiting: dict[PodPlace, Subject] = {}
        self.issued: list[tuple[int, Subject]] = []

    def ask(self, pod: Subject, now_us: int) -> str | None:
        place = (b"c/n", pod.pod_uid)
        each = sorted(
            (
                limited(limit, pod, name=f"p{n}")
                for n, limit in enumerate(self.wanted)
                if self.only.get(n, pod.namespace) == pod.namespace
            ),
            key=lambda one: one.order,
        )
        by = self.limits.ask(place, pod, each, now_us)
        if by is None:
            self.waiting.pop(place, None)
            self.issued.append((now_us, pod))
        else:
            self.waiting[place] = pod
        return by

    def turn(self, now_us: int) -> None:
        while called := list(self.limits.call(now_us, 100)):
            for place in called:
                if place in self.waiting:
                    self.ask(self.waiting[place], now_us)

    def leave(self, pod: Subject) -> None:
        place = (b"c/n", pod.pod_uid)
        self.waiting.pop(place, None)
        self.limits.leave(place)

    def run_until(self, end_us: int) -> None:
        while (at_us := self.limits.next_at_us()) is not None and at_us <= end_us:
            self.turn(at_us)


def pods(count: int, *, namespace: str = "a", due_us: int = NOW_US) -> list[Subject]:
    return [
        subject(pod_uid=f"{namespace}{number}", namespace=namespace, due_us=due_us + number) for number in range(count)
    ]


def seconds(issued: Iterable[tuple[int, Subject]]) -> list[float]:
    return [(at_us - NOW_US) / SECOND_US for at_us, _ in issued]


def test_a_burst_goes_at_once_the_rest_at_the_rate() -> None:
    line = Line(PolicyLimit(evictions=2, burst=3))
    for pod in pods(6):
        line.ask(pod, NOW_US)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert seconds(line.issued) == [0, 0, 0, 0.5, 1, 1.5]


def test_a_bucket_begins_empty_with_its_owner() -> None:
    line = Line(PolicyLimit(evictions=1, in_seconds=10, burst=5), since_us=NOW_US)
    for pod in pods(2):
        line.ask(pod, NOW_US)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert seconds(line.issued) == [10, 20]


def test_a_bucket_begins_empty_with_its_policy() -> None:
    limits, pod = Limits(), subject()
    limits.begin(OLD_US)
    each = limited(PolicyLimit(evictions=1), pod, since_us=NOW_US)
    assert limits.ask((b"n", "u"), pod, [each], NOW_US) == "policy/p/1/limit"
    assert limits.next_at_us() == NOW_US + SECOND_US


def test_what_is_due_longest_goes_first_whenever_it_asks() -> None:
    line = Line(PolicyLimit(evictions=1))
    first, *others = pods(4)
    line.ask(first, NOW_US)
    for pod in reversed(others):
        line.ask(pod, NOW_US + 9)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert [pod.pod_uid for _, pod in line.issued] == ["a0", "a1", "a2", "a3"]


def test_a_newcomer_does_not_overtake_those_that_wait() -> None:
    line = Line(PolicyLimit(evictions=1))
    first, second, third = pods(3)
    line.ask(first, NOW_US)
    line.ask(second, NOW_US)
    assert line.ask(third, NOW_US + SECOND_US) is not None, "the token that has come is for what waited"
    line.run_until(NOW_US + 60 * SECOND_US)
    assert [pod.pod_uid for _, pod in line.issued] == ["a0", "a1", "a2"]


def test_a_token_of_what_left_goes_to_the_next_one() -> None:
    line = Line(PolicyLimit(evictions=1))
    first, second, third = pods(3)
    for pod in (first, second, third):
        line.ask(pod, NOW_US)
    (called,) = line.limits.call(NOW_US + SECOND_US, 100)
    assert called[1] == second.pod_uid
    line.leave(second)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert seconds(line.issued) == [0, 1]


def test_a_slow_namespace_keeps_no_tokens_of_the_cluster() -> None:
    line = Line(PolicyLimit(evictions=1), PolicyLimit(evictions=1, in_seconds=3_600, per=NAMESPACE))
    for pod in (*pods(50, due_us=OLD_US), *pods(1, namespace="b"), *pods(1, namespace="c")):
        line.ask(pod, NOW_US)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert [pod.namespace for _, pod in line.issued] == ["a", "b", "c"]
    assert seconds(line.issued) == [0, 1, 2]


def test_each_of_a_scope_has_a_rate_of_its_own() -> None:
    line = Line(PolicyLimit(evictions=1, per=NAMESPACE))
    for pod in (*pods(2), *pods(2, namespace="b")):
        line.ask(pod, NOW_US)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert seconds(line.issued) == [0, 0, 1, 1]


def test_other_limits_end_the_wait_for_earlier_ones() -> None:
    line = Line(PolicyLimit(evictions=1, in_seconds=3_600))
    first, second = pods(2)
    line.ask(first, NOW_US)
    line.ask(second, NOW_US)
    line.wanted = ()
    assert line.ask(second, NOW_US + 1) is None
    assert list(line.limits.call(NOW_US + 7_200 * SECOND_US, 100)) == []


def test_full_buckets_are_not_kept() -> None:
    limits = Limits()
    limits.begin(OLD_US)
    for number in range(20_000):
        pod = subject(namespace=f"n{number}", pod_uid=f"u{number}")
        now_us = NOW_US + number * SECOND_US
        assert (
            limits.ask((b"n", pod.pod_uid), pod, [limited(PolicyLimit(evictions=1, per=NAMESPACE), pod)], now_us)
            is None
        )
    assert len(limits._buckets) <= 2_000


def test_a_sweep_keeps_the_bucket_that_gives_a_token() -> None:
    """The second bucket of an eviction is made where there are as many as are kept without a look."""
    limits, slow = Limits(), PolicyLimit(evictions=1, in_seconds=3_600)
    limits.begin(OLD_US)

    def ask(number: int, now_us: int, *names: str) -> str | None:
        pod = subject(pod_uid=f"u{number}", due_us=now_us)
        return limits.ask((b"c/n", pod.pod_uid), pod, [limited(slow, pod, name=name) for name in names], now_us)

    for number in range(limits_module._LEAST_SWEPT):
        assert ask(number, NOW_US, f"p{number}") is None
    later_us = NOW_US + 7_200 * SECOND_US
    assert ask(-1, later_us, "p0", "new") is None
    assert ask(-2, later_us, "p0", "other") == "policy/p0/1/limit"


def test_leaving_and_coming_back_does_not_lengthen_the_line() -> None:
    line = Line(PolicyLimit(evictions=1, in_seconds=3_600))
    first, second = pods(2)
    line.ask(first, NOW_US)
    for number in range(10_000):
        line.ask(second._replace(due_us=NOW_US + number), NOW_US)
        line.leave(second)
    (bucket,) = line.limits._buckets.values()
    assert len(bucket._line) <= 1_100
    assert len(line.limits._looks) <= 100


@pytest.mark.parametrize("per", [LimitScope.ZONE, LimitScope.LABEL, LimitScope.GROUP, LimitScope.OWNER])
def test_what_has_none_of_a_scope_shares_one(per: LimitScope) -> None:
    line = Line(PolicyLimit(evictions=1, per=per, label="rack"))
    for pod in pods(2):
        line.ask(pod, NOW_US)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert seconds(line.issued) == [0, 1]


def test_of_those_due_at_once_the_highest_priority_goes_first() -> None:
    line = Line(PolicyLimit(evictions=1))
    for number, priority in enumerate((0, -5, 100, 7)):
        line.ask(subject(pod_uid=f"u{number}", due_us=NOW_US, traits=PodTraits(priority=priority)), NOW_US)
    line.run_until(NOW_US + 60 * SECOND_US)
    assert [pod.pod_uid for _, pod in line.issued] == ["u0", "u2", "u3", "u1"]


@pytest.mark.parametrize("per", list(LimitScope))
def test_policies_say_which_bucket(per: LimitScope) -> None:
    limit = {"evictions": 5, "inSeconds": 60, "burst": 2, "per": per, "label": "rack"}
    spec = {"limit": limit, "for": {"namespaces": ["shop"]}}
    policies = read_policies(policy_record("a", spec={"settleSeconds": 1}), policy_record("b", revision=3, spec=spec))
    pod = subject(zone="a", node_labels=(("rack", "r7"),), traits=TRAITS)
    (one,) = limits_on(policies.of_cluster("c1"), pod)
    value = {
        CLUSTER: "",
        LimitScope.ZONE: "a",
        LimitScope.LABEL: "r7",
        NAMESPACE: "shop",
        LimitScope.GROUP: "shop/gang",
        LimitScope.OWNER: "shop/ReplicaSet/web-1",
        LimitScope.NODE: "gpu-7",
    }[per]
    assert one.name == ("b", "c1", PolicyLimit(evictions=5, in_seconds=60, burst=2, per=per, label="rack"), value)
    assert (one.by, one.since_us) == ("policy/b/3/limit", NOW_US)
    assert limits_on(policies.of_cluster("c1"), subject(namespace="bank")) == []


SLOW = PolicyLimit(evictions=5, in_seconds=60)


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param([PolicyLimit(evictions=2, burst=4), SLOW], id="another rate of the cluster"),
        pytest.param([PolicyLimit(evictions=2, burst=4, per=NAMESPACE), SLOW], id="a rate of each namespace"),
        pytest.param([PolicyInFlight(count=4, counts_seconds=2), SLOW], id="slots"),
        pytest.param([PolicyLimit(evictions=2, burst=4), PolicyInFlight(count=1, counts_seconds=60)], id="no slots"),
    ],
)
def test_a_slow_limit_of_some_holds_up_no_others(limits: list[PolicyLimit | PolicyInFlight]) -> None:
    """Those of `shop` are due first, and wait for a limit of their own; others share a fast one with them."""
    line = Line(*limits, only={1: "shop"})
    for pod in [*pods(100, namespace="shop"), *pods(20, namespace="kube-system", due_us=NOW_US + 200)]:
        line.ask(pod, NOW_US)
    line.run_until(NOW_US + 20 * SECOND_US)
    assert sum(pod.namespace == "kube-system" for _, pod in line.issued) == 20
    assert 1 <= sum(pod.namespace == "shop" for _, pod in line.issued) <= 3
    for at_seconds in range(20, 200):
        line.run_until(NOW_US + at_seconds * SECOND_US)
    assert sum(pod.namespace == "shop" for _, pod in line.issued) >= 4


def test_of_a_scope_slow_rates_are_asked_first() -> None:
    records = [
        policy_record(name, spec={"limit": {"evictions": number}})
        for name, number in (("a", 3), ("b", 1), ("c", 2), ("d", 1))
    ]
    records.append(policy_record("0", spec={"inFlight": {"count": 1}}))
    found = limits_on(read_policies(*records).of_cluster("c1"), subject())
    assert [one.name[0] for one in found] == ["b", "d", "c", "a", "0"]


def test_narrow_scopes_are_asked_first() -> None:
    records = [
        policy_record(name, spec={"limit": {"evictions": 1, "per": per}})
        for name, per in (("a", "cluster"), ("b", "node"), ("c", "namespace"), ("d", "node"), ("e", "zone"))
    ]
    found = limits_on(read_policies(*records).of_cluster("c1"), subject())
    assert [one.name[0] for one in found] == ["b", "d", "c", "e", "a"]


ASKS = st.lists(
    st.tuples(
        st.integers(0, 3_000_000),  # later than the one before, microseconds
        st.sampled_from("abc"),  # namespace
        st.integers(-10, 10),  # due, seconds
        st.sampled_from(["ask", "ask", "ask", "leave", "new owner"]),
    ),
    max_size=60,
)
RATES = st.builds(
    PolicyLimit,
    evictions=st.integers(1, 5),
    in_seconds=st.integers(1, 3),
    burst=st.integers(1, 4),
    per=st.sampled_from(LimitScope),
)


@given(asks=ASKS, rates=st.lists(RATES, min_size=1, max_size=3))
def test_no_span_has_more_than_rate_and_burst(asks: list[tuple[int, str, int, str]], rates: list[PolicyLimit]) -> None:
    """And all that waits goes in the end, each once, although owners come and go."""
    line, now_us, asked = Line(*rates, since_us=NOW_US), NOW_US, 0
    for number, (later_us, namespace, due, what) in enumerate(asks):
        line.run_until(now_us + later_us)
        now_us += later_us
        if what == "ask":
            asked += 1
            line.ask(subject(pod_uid=f"u{number}", namespace=namespace, due_us=NOW_US + due * SECOND_US), now_us)
        elif what == "leave" and line.waiting:
            line.leave(next(iter(line.waiting.values())))
            asked -= 1
        elif what == "new owner":
            waiting, line.limits = dict(line.waiting), Limits()
            line.limits.begin(now_us)
            for pod in waiting.values():
                line.ask(pod, now_us)
    line.run_until(now_us + 10_000 * SECOND_US)
    assert not line.waiting
    assert len({pod.pod_uid for _, pod in line.issued}) == len(line.issued) == asked
    for limit in rates:
        for value in {scope_value(limit, pod) for _, pod in line.issued}:
            times = sorted(at_us for at_us, pod in line.issued if scope_value(limit, pod) == value)
            for (first, since_us), (last, to_us) in itertools.combinations(enumerate(times), 2):
                span = (to_us - since_us) / SECOND_US
                assert last - first + 1 <= limit.evictions * span / limit.in_seconds + limit.burst + 1e-6
