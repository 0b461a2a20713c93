from __future__ import annotations

import inspect
import re

import pytest

from evictstream.streams import errors
from evictstream.streams.errors import EvictstreamError, ExitCode


def all_errors() -> dict[str, type[EvictstreamError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, EvictstreamError)
    }


def drawn_tree() -> dict[str, tuple[int, int]]:
    """Depth and exit code of each error, as drawn at the top of the file."""
    lines = re.findall(r"^    ([│├└─ ]*)(\w+Error)\s+(\d+)  ", inspect.getdoc(errors) or "", re.MULTILINE)
    return {name: (len(indent) // 4, int(code)) for indent, name, code in lines}


def test_the_drawing_names_every_error_and_no_other() -> None:
    assert set(drawn_tree()) == set(all_errors())


@pytest.mark.parametrize("name", sorted(all_errors()))
def test_the_drawing_is_true(name: str) -> None:
    error = all_errors()[name]
    depth = error.__mro__.index(EvictstreamError)
    assert drawn_tree()[name] == (depth, error.exit_code)


def test_all_names_everything_public() -> None:
    assert sorted(errors.__all__) == errors.__all__
    assert set(errors.__all__) == {*all_errors(), "ExitCode"}


def test_text_is_one_line_with_the_next_step() -> None:
    error = errors.WrongUseError("two\nlines", next_step="do\nthis")
    assert str(error) == "two lines; do this"


def test_exit_codes_are_the_documented_ones() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "FOUND_PROBLEM": 1,
        "WRONG_USE": 2,
        "INTERNAL_FAILURE": 70,
    }
