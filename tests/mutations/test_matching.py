"""What a pattern matches, what stays as it is, and what is said of a pattern that matches nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.mutations.matching import Change, NoPlaceError, carry_out

PRODUCT = """
LIMIT = 3  # größer ist zu groß


class Gate:
    def closed(self, age: float) -> bool:
        # Über dem Limit.
        if (
            age  # in Sekunden
            > self.limit
        ):
            return self.close("zu spät", age, why=f"{age}", loud=True)
        return False

    def late(self, age: float) -> bool:
        return age > self.limit
"""
MODULE = "house.rooms.gates"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "src/house/rooms"
    folder.mkdir(parents=True)
    (folder / "gates.py").write_text(PRODUCT, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("function", "pattern", "replacement", "old", "new"),
    [
        pytest.param("", "LIMIT = 3", "LIMIT = 4", "LIMIT = 3", "LIMIT = 4", id="statement of the module"),
        pytest.param(
            "Gate.late", "age > self.limit", "False", "return age > self.limit", "return (False)", id="expression"
        ),
        pytest.param("Gate.closed", "loud=...", "loud=False", "loud=True", "loud=False", id="argument"),
        pytest.param(
            "Gate.closed", "self.close(..., loud=True)", "$0 or 1", ", loud=True)", ", loud=True) or 1)", id="call"
        ),
        pytest.param(
            "Gate.closed",
            "if age > self.limit: ...",
            "pass",
            PRODUCT[PRODUCT.index("if (") : PRODUCT.index("        return False")],
            "pass\n",
            id="statement over several lines",
        ),
        pytest.param(
            "Gate.closed",
            "return False",
            "$0\nreturn 1",
            "return False",
            "return False\n        return 1",
            id="two lines",
        ),
    ],
)
def test_only_the_place_is_replaced(
    root: Path, function: str, pattern: str, replacement: str, old: str, new: str
) -> None:
    carry_out(Change(MODULE, function, pattern, replacement), root)
    expected = PRODUCT.replace(old, new)
    if "$0 or 1" in replacement:
        expected = expected.replace("self.close(", "(self.close(")
    assert (root / "src/house/rooms/gates.py").read_text(encoding="utf-8") == expected


@pytest.mark.parametrize(
    ("module", "function", "pattern", "message"),
    [
        pytest.param(
            MODULE,
            "Gate.closed",
            "age >= self.limit",
            """
            house.rooms.gates, Gate.closed: age >= self.limit
            no such place; nearest: age > self.limit; self.limit; self.close
            the pattern matches in: none""",
            id="no such place",
        ),
        pytest.param(
            MODULE,
            "Gate.late",
            "loud=True",
            """
            house.rooms.gates, Gate.late: loud=True
            no such place; nearest: none
            the pattern matches in: house.rooms.gates, Gate.closed""",
            id="in another function",
        ),
        pytest.param(
            MODULE,
            "Gate.close",
            "age > self.limit",
            """
            house.rooms.gates, Gate.close: age > self.limit
            no such function; nearest: Gate.closed; Gate.late; Gate
            the pattern matches in: house.rooms.gates, Gate.closed; house.rooms.gates, Gate.late""",
            id="no such function",
        ),
        pytest.param(
            "house.rooms.gate",
            "",
            "LIMIT = 3",
            """
            house.rooms.gate, (top level): LIMIT = 3
            no such module; nearest: house.rooms.gates
            the pattern matches in: house.rooms.gates, (top level)""",
            id="no such module",
        ),
        pytest.param(
            MODULE,
            "Gate.closed",
            "age",
            """
            house.rooms.gates, Gate.closed: age
            more than one place: lines 9, 12
            the pattern matches in: house.rooms.gates, Gate.closed; house.rooms.gates, Gate.late""",
            id="two places",
        ),
    ],
)
def test_a_message_names_candidates(root: Path, module: str, function: str, pattern: str, message: str) -> None:
    with pytest.raises(NoPlaceError) as raised:
        carry_out(Change(module, function, pattern, "pass"), root)
    assert str(raised.value) == textwrap.dedent(message).lstrip()
