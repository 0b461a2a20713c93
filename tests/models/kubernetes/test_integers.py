from __future__ import annotations

import pytest

from evictstream.models.kubernetes import canonical_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("-7", -7),
        ("750", 750),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_canonical_integers_are_read(text: str, number: int) -> None:
    """semantics.md 2.4"""
    assert canonical_int64(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+7",
        "07",
        "-0",
        "-07",
        " 7",
        "7 ",
        "7\n",
        "7.0",
        "1e3",
        "0x7",
        "x",
        "\u0667",  # seven in Arabic digits
        "9223372036854775808",
        "-9223372036854775809",
        "1" * 100_000,
    ],
)
def test_other_texts_are_no_integers(text: str) -> None:
    """semantics.md 2.4 and 3.2: not canonical, or beyond signed 64 bit"""
    assert canonical_int64(text) is None
