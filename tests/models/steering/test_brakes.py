"""Which evictions brakes hold, and until when."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import MILLISECOND_US, SECOND_US, instant_text
from evictstream.models.steering.brakes import MOST_BRAKES, NO_BRAKES, Brakes, StandingBrake
from evictstream.models.steering.holds import Hold, Subject, longest_hold

NOW_US = 1_800_000_000 * SECOND_US
DUE_US = NOW_US - 30 * SECOND_US
HOUR_US = 3600 * SECOND_US
HELD = Hold("b1", None)


def record(brake_id: str = "b1", **more: Any) -> bytes:
    brake = {
        "apiVersion": "evictstream.io/v1",
        "kind": "Brake",
        "id": brake_id,
        "why": "storm",
        "by": "anna",
        "heldAt": instant_text(NOW_US - HOUR_US),
        **more,
    }
    return json.dumps(brake).encode()


def read(*records: bytes, appended_us: int = NOW_US - HOUR_US) -> Brakes:
    brakes = NO_BRAKES
    for value in records:
        brakes = brakes.with_record(json.loads(value)["id"].encode(), value, appended_us // MILLISECOND_US)
    return brakes


def hold(brakes: Brakes, *, cluster: str = "c1", now_us: int = NOW_US, **subject: Any) -> Hold | None:
    facts: dict[str, Any] = {"namespace": "shop", "pod_uid": "u1", "taint": "dead", "due_us": DUE_US, **subject}
    return longest_hold(brakes.of_cluster(cluster, now_us), Subject(**facts), now_us)


@pytest.mark.parametrize(
    ("fields", "subject", "held"),
    [
        pytest.param({}, {}, HELD, id="all"),
        pytest.param({"clusters": ["c0", "c1"]}, {}, HELD, id="cluster"),
        pytest.param({"clusters": ["c2"]}, {}, None, id="another cluster"),
        pytest.param({"namespaces": ["shop"]}, {}, HELD, id="namespace"),
        pytest.param({"namespaces": ["sho"]}, {}, None, id="another namespace"),
        pytest.param({"taints": ["dead"]}, {}, HELD, id="taint"),
        pytest.param({"taints": ["other"]}, {}, None, id="another taint"),
        pytest.param({"zones": ["a"]}, {"zone": "a"}, HELD, id="zone"),
        pytest.param({"zones": ["a"]}, {"zone": "b"}, None, id="another zone"),
        pytest.param({"zones": ["a"]}, {}, None, id="a zone that is not known here"),
        pytest.param({"clusters": ["c1"], "namespaces": ["shop"], "taints": ["x"]}, {}, None, id="one of three"),
        pytest.param({"exceptNamespaces": ["shop"]}, {}, HELD, id="a field of a later version holds more, not less"),
    ],
)
def test_a_brake_holds_what_each_of_its_lists_names(
    fields: dict[str, Any], subject: dict[str, Any], held: Hold | None
) -> None:
    assert hold(read(record(**fields)), **subject) == held


def test_without_brakes_nothing_is_held() -> None:
    assert NO_BRAKES.of_cluster("c1", NOW_US) == ()
    assert NO_BRAKES.objection() is None


def test_a_brake_ends_by_itself_and_spreads_what_was_due() -> None:
    brakes = read(record(endsAt=instant_text(NOW_US), spreadSeconds=60))
    held = hold(brakes, now_us=NOW_US - 1)
    assert held is not None
    assert held.until_us is not None
    assert NOW_US <= held.until_us < NOW_US + 60 * SECOND_US
    assert hold(brakes, now_us=held.until_us) is None
    assert brakes.of_cluster("c1", NOW_US + 60 * SECOND_US) == ()


def test_a_release_counts_from_its_append_time() -> None:
    brakes = read(record(releasedBy="ben", spreadSeconds=10), appended_us=NOW_US)
    until = {hold(brakes, now_us=NOW_US, pod_uid=f"u{number}") for number in range(1000)}
    ends = sorted(one.until_us for one in until if one is not None and one.until_us is not None)
    assert len(ends) > 900
    assert ends[0] < NOW_US + SECOND_US
    assert ends[-1] > NOW_US + 9 * SECOND_US


def test_what_becomes_due_after_the_end_is_not_spread() -> None:
    brakes = read(record(releasedBy="ben"), appended_us=NOW_US)
    assert hold(brakes, now_us=NOW_US + 2, due_us=NOW_US + 1) is None


def test_a_release_does_not_begin_an_ended_brake_anew() -> None:
    ended_us = NOW_US - HOUR_US
    brakes = read(record(endsAt=instant_text(ended_us), releasedBy="ben"), appended_us=NOW_US)
    assert brakes.of_cluster("c1", NOW_US) == ()


def test_no_spread_releases_all_at_once() -> None:
    brakes = read(record(releasedBy="ben", spreadSeconds=0), appended_us=NOW_US)
    assert brakes.of_cluster("c1", NOW_US) == ()


def test_of_several_brakes_the_longest_holds() -> None:
    brakes = read(record("b1", endsAt=instant_text(NOW_US + HOUR_US)), record("b2"))
    assert hold(brakes) == Hold("b2", None)
    later = read(
        record("b1", endsAt=instant_text(NOW_US + 2 * HOUR_US)), record("b2", endsAt=instant_text(NOW_US + HOUR_US))
    )
    held = hold(later)
    assert held is not None
    assert held.by == "b1"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"{", id="no JSON"),
        pytest.param(record(kind="Other"), id="another kind"),
        pytest.param(record(apiVersion="evictstream.io/v2"), id="another version"),
        pytest.param(record(namespaces="shop"), id="a text for a list"),
        pytest.param(record(namespaces=["n"] * 1001), id="too many names"),
        pytest.param(record(heldAt="now"), id="no instant"),
        pytest.param(record("b2"), id="the id of another key"),
        pytest.param(record("B_1"), id="no id"),
    ],
)
def test_a_record_that_cannot_be_read_objects_until_it_goes(value: bytes) -> None:
    brakes = NO_BRAKES.with_record(b"b1", value, 1)
    assert "'b1'" in (brakes.objection() or "")
    assert brakes.with_record(b"b1", record(), 2).objection() is None
    assert brakes.with_record(b"b1", None, 2).objection() is None


def test_more_brakes_than_the_limit_object() -> None:
    standing = {f"x{n}": StandingBrake(read(record()).standing["b1"].brake, 0) for n in range(MOST_BRAKES)}
    assert Brakes(standing).with_record(b"b1", record(), 1).objection() is not None
    assert Brakes(standing).with_record(b"x0", record("x0"), 1).objection() is None


def test_brakes_that_are_over_do_not_count_for_the_limit() -> None:
    brakes, at_us, minute_us = NO_BRAKES, NOW_US, 60 * SECOND_US
    for number in range(MOST_BRAKES + 101):
        at_us += minute_us
        value = record(f"x{number}", endsAt=instant_text(at_us + minute_us), spreadSeconds=0)
        brakes = brakes.with_record(f"x{number}".encode(), value, at_us // MILLISECOND_US)
        assert brakes.objection() is None
        assert len(brakes.standing) <= MOST_BRAKES
    assert len(brakes.all) == MOST_BRAKES + 101
    assert "x0" not in brakes.with_record(b"x0", None, 1).all
    assert "x0" in brakes.with_record(b"x0", record("x0"), at_us // MILLISECOND_US).standing


def test_a_spread_of_years_counts_as_a_day() -> None:
    (standing,) = read(record(endsAt=instant_text(NOW_US), spreadSeconds=10**9)).standing.values()
    assert not standing.is_over(NOW_US + 86_399 * SECOND_US)
    assert standing.is_over(NOW_US + 86_400 * SECOND_US)


def test_a_brake_without_a_record_is_gone() -> None:
    brakes = read(record()).with_record(b"b1", None, 2)
    assert brakes.of_cluster("c1", NOW_US) == ()


_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "clusters": st.lists(st.sampled_from(["c1", "c2"])),
        "namespaces": st.lists(st.sampled_from(["shop", "pay"])),
        "taints": st.lists(st.sampled_from(["dead", "slow"])),
        "zones": st.lists(st.sampled_from(["a", "b"])),
        "endsAt": st.integers(-200, 200).map(lambda seconds: instant_text(NOW_US + seconds * SECOND_US)),
        "spreadSeconds": st.integers(0, 100),
        "releasedBy": st.sampled_from(["", "ben"]),
    },
)


@given(st.lists(_FIELDS, max_size=4), _FIELDS, st.integers(0, 300), st.sampled_from([None, "a"]))
def test_one_more_brake_never_lets_an_eviction_go_earlier(
    fields: list[dict[str, Any]], more: dict[str, Any], later: int, zone: str | None
) -> None:
    now_us = NOW_US + later * SECOND_US
    few = read(*(record(f"b{number}", **one) for number, one in enumerate(fields)))
    many = few.with_record(b"more", record("more", **more), (NOW_US - HOUR_US) // MILLISECOND_US)
    before, after = hold(few, now_us=now_us, zone=zone), hold(many, now_us=now_us, zone=zone)
    if before is not None:
        assert after is not None
        assert after.until_us is None or (before.until_us is not None and after.until_us >= before.until_us)


@given(_FIELDS, st.integers(0, 300))
def test_a_hold_ends_at_the_instant_that_it_names(fields: dict[str, Any], later: int) -> None:
    now_us = NOW_US + later * SECOND_US
    brakes = read(record(**fields), appended_us=NOW_US)
    held = hold(brakes, now_us=now_us)
    if held is not None and held.until_us is not None:
        assert held.until_us > now_us
        assert hold(brakes, now_us=held.until_us - 1) == held
        assert hold(brakes, now_us=held.until_us) is None
