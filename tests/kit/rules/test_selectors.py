"""Label selectors; expected values from upstream's `selector_test.go` and kubectl's help."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.selectors import SelectorError, parse_selector, selects

LABELS = {"app": "web", "tier": "front", "empty": ""}


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        pytest.param("", True, id="nothing asked"),
        pytest.param("app=web", True, id="equal"),
        pytest.param("app==web", True, id="equal, spelled as a programmer does"),
        pytest.param("app=db", False, id="another value"),
        pytest.param("zone=a", False, id="no such label"),
        pytest.param("app!=db", True, id="unequal"),
        pytest.param("app!=web", False, id="equal, not wanted"),
        pytest.param("zone!=a", True, id="unequal because absent"),
        pytest.param("app", True, id="there"),
        pytest.param("zone", False, id="not there"),
        pytest.param("!zone", True, id="absent"),
        pytest.param("! app", False, id="not absent"),
        pytest.param("app in (db, web)", True, id="one of"),
        pytest.param("app in (db)", False, id="none of"),
        pytest.param("zone in (a)", False, id="one of, without the label"),
        pytest.param("app notin (db)", True, id="not one of"),
        pytest.param("app notin (web,db)", False, id="one of those not wanted"),
        pytest.param("zone notin (a)", True, id="not one of, without the label"),
        pytest.param("app=web,tier=front", True, id="both"),
        pytest.param(" app = web , tier in ( front ) ", True, id="white space"),
        pytest.param("app=web,tier=back", False, id="one of both"),
        pytest.param("empty=", True, id="an empty value"),
        pytest.param("app=", False, id="an empty value, which it has not"),
        pytest.param("empty in (,x)", True, id="an empty value among others"),
        pytest.param("app in (a,web),tier", True, id="a comma in brackets parts nothing"),
    ],
)
def test_what_is_selected(text: str, is_selected: bool) -> None:  # noqa: FBT001
    assert selects(parse_selector(text), LABELS) is is_selected


@pytest.mark.parametrize(
    "text",
    [
        "a,",
        ",",
        "a b",
        "a=b=c",
        "a in b",
        "a in (b",
        "a notin",
        "!",
        "=b",
        "a>1",
        "a=b c",
        "a/b/c",
        "-a",
        "a=-",
        "!a=b",
    ],
)
def test_what_is_no_selector(text: str) -> None:
    with pytest.raises(SelectorError, match="is no label selector"):
        parse_selector(text)
