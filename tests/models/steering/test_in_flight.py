"""How many may be in flight at once: pods, nodes or groups, through new owners, and nothing waits without end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.traits import PodTraits
from evictstream.models.messages.policy import decode_policy
from evictstream.models.messages.policy_clauses import InFlightUnit, LimitScope, PolicyInFlight, PolicyLimit
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.in_flight import PodPlace
from evictstream.models.steering.limits import LimitedBy, Limits, scope_value
from evictstream.models.steering.node_counts import KnownNodes, NodeStanding
from tests.models.steering.test_limits import limited, pods
from tests.models.steering.test_policies import NOW_US, policy_record, subject

STUCK = 1_800
LATE_US = NOW_US + STUCK * SECOND_US


def slots(count: int | None = 2, **more: Any) -> PolicyInFlight:
    return PolicyInFlight(count=count, **more)


def place(pod: Subject) -> PodPlace:
    return pod.node.encode(), pod.pod_uid


class Flights:
    """Evictions that ask, are called and ask again; what is issued is in flight until it lands."""

    def __init__(self, *limits: PolicyInFlight | PolicyLimit) -> None:
        self.wanted = limits
        self.flying: dict[PodPlace, Subject] = {}
        self.waiting: dict[PodPlace, Subject] = {}
        self.took: list[str] = []
        self.limits = Limits(self._flying)
        self.limits.begin(0)

    def _flying(self, _cluster: str) -> list[tuple[PodPlace, Subject]]:
        return list(self.flying.items())

    def _limits(self, pod: Subject) -> list[LimitedBy]:
        found = [limited(limit, pod, name=f"p{n}") for n, limit in enumerate(self.wanted)]
        found = [
            one._replace(of=lambda other, n=n: self._limits(other)[n])  # type: ignore[misc]
            for n, one in enumerate(found)
        ]
        return sorted(found, key=lambda one: one.order)

    def ask(self, pod: Subject, now_us: int = NOW_US) -> str | None:
        at = place(pod)
        by = self.limits.ask(at, pod, self._limits(pod), now_us)
        if by is None:
            self.waiting.pop(at, None)
            first_us = now_us if pod.first_issued_us is None else pod.first_issued_us
            self.flying[at] = pod._replace(first_issued_us=first_us)
            self.took.append(pod.pod_uid)
        else:
            self.waiting[at] = pod
        return by

    def turn(self, now_us: int = NOW_US) -> None:
        while called := list(self.limits.call(now_us, 100)):
            for at in called:
                if at in self.waiting:
                    self.ask(self.waiting[at], now_us)

    def land(self, pod: Subject, now_us: int = NOW_US) -> None:
        del self.flying[place(pod)]
        key = pod.node.encode()
        self.limits.landed(key, lambda uid: (key, uid) in self.flying)
        self.turn(now_us)

    def new_owner(self, now_us: int = NOW_US) -> None:
        self.limits = Limits(self._flying)
        self.limits.begin(now_us)
        for pod in list(self.waiting.values()):
            self.ask(pod, now_us)


def test_the_next_goes_when_one_before_is_gone() -> None:
    line, many = Flights(slots(2)), pods(4)
    for pod in reversed(many):
        line.ask(pod)
    assert line.took == ["a3", "a2"]
    line.land(many[2])
    assert line.took == ["a3", "a2", "a0"], "what is due longest goes first"
    assert list(line.waiting) == [place(many[1])]


def test_a_newcomer_takes_no_slot_of_those_that_wait() -> None:
    line, many = Flights(slots(1)), pods(3)
    for pod in many[:2]:
        line.ask(pod)
    del line.flying[place(many[0])]
    line.limits.landed(b"gpu-7", lambda _: False)
    assert line.ask(many[2]) is not None, "the slot that is free is for what waited"
    line.turn()
    assert line.took == ["a0", "a1"]


def test_a_new_owner_counts_what_is_in_flight() -> None:
    line, many = Flights(slots(2)), pods(4)
    for pod in many:
        line.ask(pod)
    line.new_owner()
    assert line.took == ["a0", "a1"]
    line.land(many[0])
    assert line.took == ["a0", "a1", "a2"]


def test_a_policy_counts_what_went_before_it() -> None:
    line, many = Flights(), pods(4)
    for pod in many[:3]:
        line.ask(pod)
    line.wanted = (slots(2),)
    assert line.ask(many[3]) is not None
    line.land(many[0])
    assert len(line.took) == 3
    line.land(many[1])
    assert len(line.took) == 4


def test_a_repeated_attempt_needs_no_slot() -> None:
    line, many = Flights(slots(1)), pods(2)
    assert line.ask(many[0]) is None
    assert line.ask(many[1]) is not None
    assert line.ask(line.flying[place(many[0])]) is None
    assert line.took == ["a0", "a0"]


def test_a_pod_that_stays_keeps_its_slot_for_a_time() -> None:
    line, many = Flights(slots(1)), pods(3)
    for pod in many:
        line.ask(pod)
    assert line.limits.next_at_us() == LATE_US
    line.turn(LATE_US - 1)
    assert line.took == ["a0"]
    line.turn(LATE_US)
    assert line.took == ["a0", "a1"]
    assert line.ask(line.flying[place(many[0])], LATE_US) is None, "it is still tried, beside the slots"
    line.new_owner(LATE_US)
    assert line.took == ["a0", "a1", "a0"], "the slot is the second one's"


def test_a_node_has_one_slot_for_all_its_pods() -> None:
    line = Flights(slots(1, of=InFlightUnit.NODES))
    for number, node in enumerate(["x", "y", "x", "y"]):
        line.ask(subject(pod_uid=f"u{number}", node=node, due_us=NOW_US + number))
    assert line.took == ["u0", "u2"]
    line.land(subject(pod_uid="u0", node="x"))
    assert line.took == ["u0", "u2"], "its other pod is in flight"
    line.land(subject(pod_uid="u2", node="x"))
    assert line.took == ["u0", "u2", "u1", "u3"]


def test_a_group_goes_whole_or_not_yet() -> None:
    line = Flights(slots(1, of=InFlightUnit.GROUPS))
    for number, group in enumerate(["g", "h", "g", "h", ""]):
        pod = subject(pod_uid=f"u{number}", node=f"n{number}", due_us=NOW_US + number, traits=PodTraits(group=group))
        line.ask(pod)
    assert line.took == ["u0", "u2"]
    for uid in ("u0", "u2"):
        line.land(subject(pod_uid=uid, node=f"n{uid[1:]}"))
    assert line.took == ["u0", "u2", "u1", "u3"]
    for uid in ("u1", "u3"):
        line.land(subject(pod_uid=uid, node=f"n{uid[1:]}"))
    assert line.took[4:] == ["u4"], "a pod without a group is one of its own"


@pytest.mark.parametrize(
    ("nodes", "count", "most"),
    [(0, None, 1), (1, None, 1), (3, None, 1), (19, None, 1), (20, None, 2), (100, None, 10), (100, 3, 3), (30, 9, 3)],
)
def test_a_share_of_nodes_is_rounded_down_but_one(nodes: int, count: int | None, most: int) -> None:
    known = KnownNodes()
    for number in range(nodes):
        known.take(f"n{number}", NodeStanding("z", is_unhealthy=False), 1)
    line = Flights(slots(count, share_percent=10, of=InFlightUnit.NODES, per=LimitScope.ZONE))
    for number in range(30):
        line.ask(subject(pod_uid=f"u{number}", node=f"n{number}", zone="z", known=known))
    assert len(line.took) == most


def test_a_share_grows_with_its_zone() -> None:
    known = KnownNodes()
    line = Flights(slots(None, share_percent=50, of=InFlightUnit.NODES))
    for number in range(4):
        known.take(f"n{number}", NodeStanding("", is_unhealthy=False), 1)
    for number in range(4):
        line.ask(subject(pod_uid=f"u{number}", node=f"n{number}", known=known))
    assert len(line.took) == 2
    for number in range(4, 6):
        known.take(f"n{number}", NodeStanding("", is_unhealthy=False), 1)
    line.turn(line.limits.next_at_us() or 0)
    assert len(line.took) == 3


def test_a_share_is_of_the_nodes_counted_now() -> None:
    line = Flights(slots(None, share_percent=10, of=InFlightUnit.NODES))
    old, new = KnownNodes(), KnownNodes()
    old.take("n0", NodeStanding("", is_unhealthy=False), 1)
    line.ask(subject(pod_uid="u0", node="n0", known=old))
    for number in range(100):
        new.take(f"n{number}", NodeStanding("", is_unhealthy=False), 1)
    for number in range(30):
        line.ask(subject(pod_uid=f"u{number}", node=f"n{number}", known=new))
    assert len(line.flying) == 10


class Name(bytes):
    """A node's name that counts how often names are looked up."""

    __slots__ = ()
    looks = 0

    def __hash__(self) -> int:
        Name.looks += 1
        return super().__hash__()


def test_asking_costs_the_same_however_many_have_slots() -> None:
    limits, many = Limits(), 500
    limits.begin(NOW_US)
    wanted: list[PolicyInFlight | PolicyLimit] = [slots(2 * many, of=InFlightUnit.NODES)]
    wanted.append(PolicyLimit(evictions=1, in_seconds=10))
    Name.looks = 0
    for number in range(many):
        pod = subject(pod_uid=f"u{number}", node=f"n{number}")
        by = [limited(limit, pod, name=f"p{n}") for n, limit in enumerate(wanted)]
        limits.ask((Name(f"n{number}".encode()), pod.pod_uid), pod, by, NOW_US)
    assert Name.looks < 50 * many


def test_a_slot_and_a_token_are_both_needed() -> None:
    line, many = Flights(slots(2), PolicyLimit(evictions=1, in_seconds=10)), pods(4)
    for pod in many:
        line.ask(pod)
    assert line.took == ["a0"]
    line.turn(NOW_US + 10 * SECOND_US)
    assert line.took == ["a0", "a1"]
    line.turn(NOW_US + 100 * SECOND_US)
    assert len(line.took) == 2, "no slot is free"
    line.land(many[0], NOW_US + 100 * SECOND_US)
    assert line.took == ["a0", "a1", "a2"]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="no number"),
        pytest.param({"count": 0}, id="none"),
        pytest.param({"sharePercent": 10}, id="a share of pods"),
        pytest.param({"sharePercent": 10, "of": "nodes", "per": "namespace"}, id="a share of a namespace"),
        pytest.param({"count": 1, "until": "replaced"}, id="a later version's word"),
    ],
)
def test_what_is_no_limit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        decode_policy(policy_record(spec={"inFlight": fields}))


ASKS = st.lists(
    st.tuples(
        st.integers(0, 600 * SECOND_US),
        st.integers(0, 2),  # namespace
        st.integers(0, 3),  # node
        st.sampled_from(["ask", "ask", "ask", "land", "leave", "new owner", "policies change", "again"]),
    ),
    max_size=60,
)
LIMITS = st.builds(
    PolicyInFlight,
    count=st.integers(1, 3),
    of=st.sampled_from(InFlightUnit),
    per=st.sampled_from([LimitScope.CLUSTER, LimitScope.NAMESPACE, LimitScope.NODE]),
)


@given(asks=ASKS, wanted=st.lists(LIMITS, min_size=1, max_size=3))
def test_never_more_in_flight_and_all_goes_in_the_end(
    asks: list[tuple[int, int, int, str]], wanted: list[PolicyInFlight]
) -> None:
    line, now_us = Flights(*wanted), NOW_US
    for number, (later_us, namespace, node, what) in enumerate(asks):
        now_us += later_us
        line.turn(now_us)
        if what == "ask":
            group = PodTraits(group="g" if number % 2 else "")
            line.ask(subject(pod_uid=f"u{number}", namespace=f"x{namespace}", node=f"n{node}", traits=group), now_us)
        elif what == "land" and line.flying:
            line.land(next(iter(line.flying.values())), now_us)
        else:
            happen(line, what, now_us)
        check(line, now_us)
    for _ in range(len(asks)):
        now_us += STUCK * SECOND_US
        line.turn(now_us)
        check(line, now_us)
    assert not line.waiting, "each that does not go keeps its slot for half an hour"


def happen(line: Flights, what: str, now_us: int) -> None:
    if what == "leave" and line.waiting:
        at = next(iter(line.waiting))
        del line.waiting[at]
        line.limits.leave(at)
    elif what == "new owner":
        line.new_owner(now_us)
    elif what == "again" and line.flying:
        line.ask(next(iter(line.flying.values())), now_us)
    elif what == "policies change":
        for at in line.limits.count_anew():
            if at in line.waiting:
                line.ask(line.waiting[at], now_us)


def check(line: Flights, now_us: int) -> None:
    for limit in line.wanted:
        assert isinstance(limit, PolicyInFlight)
        units: dict[str, set[object]] = {}
        for at, pod in line.flying.items():
            if (pod.first_issued_us or 0) + STUCK * SECOND_US > now_us:
                group = (pod.namespace, pod.traits.group) if pod.traits and pod.traits.group else at
                unit = {InFlightUnit.PODS: at, InFlightUnit.NODES: pod.node, InFlightUnit.GROUPS: group}[limit.of]
                units.setdefault(scope_value(limit, pod), set()).add(unit)
        assert all(len(found) <= (limit.count or 0) for found in units.values())
