"""The quick searches of the model, and that it names places of the product which are there.

`make specs` runs all searches; those here take a second or three each, most of it for compiling.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.specs.__main__ import comes_out
from tests.specs.searches import NO_FAULT, NO_MOVE, OMISSION, ONE_FAULT, SEARCHES, Search
from tests.specs.spin import MODEL, Found, missing_tools, run

ROOT = MODEL.parents[1]
PLACE = re.compile(r"engine/\w+/\w+\.py")
NAMED = re.compile(r"`(\w+)`")

needs_spin = pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "there")

QUICK = (
    Search("no fault", (NO_FAULT, NO_MOVE)),
    Search("no fault, KIP-890", (NO_FAULT, NO_MOVE, "KIP890")),
    Search("a marker left out", (ONE_FAULT, OMISSION, NO_MOVE)),
    Search("EndTxn is asked again", (ONE_FAULT, NO_MOVE, "BREAK_ENDTXN_ONCE"), "together"),
    Search("missing markers are accepted", (ONE_FAULT, OMISSION, NO_MOVE, "BREAK_MARKERS"), "positions_with_rows"),
)


@pytest.mark.kit
@needs_spin
@pytest.mark.parametrize("search", QUICK, ids=lambda search: search.name)
def test_searches_come_out(search: Search, tmp_path: Path) -> None:
    found = run(search, tmp_path)
    assert comes_out(search, found), found


def test_a_search_that_ran_out_of_memory_holds_nothing() -> None:
    cut = Found(is_finished=False, broken="", trace=(), states=1, seconds=0.0)
    assert not comes_out(QUICK[0], cut)


def test_every_switch_of_the_searches_is_in_the_model() -> None:
    model = "".join(file.read_text(encoding="utf-8") for file in MODEL.parent.glob("*.pml"))
    switches = {switch.partition("=")[0] for search in SEARCHES for switch in search.switches}
    assert {switch for switch in switches if not re.search(rf"#ifn?def {switch}\b|\({switch}\)", model)} == set()
    assert {
        found for found in re.findall(r"\bBREAK_\w+", model) if found not in switches and found != "BREAK_"
    } == set()


def test_places_that_the_model_names_are_in_the_product() -> None:
    lost = []
    for file in MODEL.parent.glob("*.pml"):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for place in PLACE.findall(line):
                path = ROOT / "streams" / place
                text = path.read_text(encoding="utf-8") if path.exists() else ""
                lost += [
                    f"{file.name}:{number} {place} {name}"
                    for name in NAMED.findall(line)
                    if not re.search(rf"\b{name}\b", text)
                ]
                if not text:
                    lost.append(f"{file.name}:{number} {place}")
    assert lost == []
