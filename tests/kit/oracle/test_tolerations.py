from __future__ import annotations

import pytest

from evictstream.kit.oracle.decision import in_use, tolerated_us
from evictstream.kit.oracle.histories import HeardTaint
from evictstream.kit.oracle.reading import Json

TAINT = HeardTaint(key="k", value="v", since_us=0, value_since_us=0, added_us=None)


@pytest.mark.parametrize(
    ("toleration", "matched"),
    [
        pytest.param({"key": "k", "operator": "Exists", "effect": "NoExecute"}, True, id="3.1 exists"),
        pytest.param({"key": "k", "operator": "Exists"}, True, id="3.1.1 no effect matches every effect"),
        pytest.param({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False, id="3.1.1 other effect"),
        pytest.param({"operator": "Exists"}, True, id="3.1.2 no key matches every key"),
        pytest.param({"key": "K", "operator": "Exists"}, False, id="3.1.2 case counts"),
        pytest.param({"key": "k", "value": "v"}, True, id="3.1.3 no operator is Equal"),
        pytest.param({"key": "k", "operator": "Equal", "value": "w"}, False, id="3.1.3 other value"),
        pytest.param({"key": "k", "operator": "Equal"}, False, id="3.1.3 absent value is empty"),
        pytest.param({"key": "k", "operator": "Exists", "value": "w"}, True, id="3.1.3 Exists ignores the value"),
        pytest.param({"key": "k", "operator": "Gt", "value": "1"}, False, id="3.2 gate is off"),
        pytest.param({"key": "k", "operator": "Near", "value": "v"}, False, id="3.1.3 unknown operator"),
    ],
)
def test_one_toleration_and_one_taint(toleration: Json, *, matched: bool) -> None:
    assert (in_use([toleration], TAINT) is not None) is matched


def test_first_match_is_in_use_whatever_its_seconds() -> None:
    short, long = {"operator": "Exists", "tolerationSeconds": 5}, {"operator": "Exists"}
    assert in_use([short, long], TAINT) is short  # 3.4
    assert in_use([long, short], TAINT) is long
    assert in_use([{"key": "other", "operator": "Exists"}], TAINT) is None


@pytest.mark.parametrize(
    ("seconds", "allowed"), [(None, None), (0, 0), (-1, 0), (30, 30_000_000), (18446744074, 18446744074_000_000)]
)
def test_time_to_stay_is_never_negative_and_never_overflows(seconds: int | None, allowed: int | None) -> None:
    toleration: Json = {"operator": "Exists"} | ({} if seconds is None else {"tolerationSeconds": seconds})
    assert tolerated_us(toleration) == allowed  # section 4
