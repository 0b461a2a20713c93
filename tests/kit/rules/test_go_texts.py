"""Texts as Go writes them; each was compared with what Go 1.26 prints for it."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.go_texts import as_json, quoted, valid_text


@pytest.mark.parametrize(
    ("text", "in_quotes", "in_json"),
    [
        pytest.param("", '""', '""', id="empty"),
        pytest.param("aé \ufffd", '"aé \ufffd"', '"aé \ufffd"', id="what prints"),
        pytest.param('"\\', r'"\"\\"', r'"\"\\"', id="quotes and backslashes"),
        pytest.param("<&>", '"<&>"', r'"\u003c\u0026\u003e"', id="what HTML would take for a tag"),
        pytest.param("\b\f\n\r\t", r'"\b\f\n\r\t"', r'"\b\f\n\r\t"', id="short escapes of both"),
        pytest.param("\a\v", r'"\a\v"', r'"\u0007\u000b"', id="short escapes of texts only"),
        pytest.param("\x00\x1b", r'"\x00\x1b"', r'"\u0000\u001b"', id="NUL and ESC"),
        pytest.param("\u2028\ufeff", r'"\u2028\ufeff"', r'"\u2028\ufeff"', id="two bytes that do not print"),
        pytest.param("\U000e0001", r'"\U000e0001"', r'"\udb40\udc01"', id="four bytes that do not print"),
        pytest.param("\x7f\x9b", r'"\x7f\u009b"', r'"\u007f\u009b"', id="a terminal is not steered, by JSON neither"),
        pytest.param("\ud800x", '"\ufffdx"', '"\ufffdx"', id="half a surrogate pair"),
    ],
)
def test_texts(text: str, in_quotes: str, in_json: str) -> None:
    assert (quoted(text), as_json(text)) == (in_quotes, in_json)


def test_structures_are_written_without_spaces() -> None:
    assert as_json({"a": [1, True, None, "<"], "b": {}}) == r'{"a":[1,true,null,"\u003c"],"b":{}}'


def test_each_half_of_a_pair_alone_is_replaced() -> None:
    assert valid_text("\ud800\udc00\ud800a\U00010000") == "\ufffd\ufffd\ufffda\U00010000"
