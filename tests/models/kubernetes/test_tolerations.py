from __future__ import annotations

import msgspec
import pytest

from evictstream.models.kubernetes import (
    Toleration,
    read_tolerations,
    read_tolerations_row,
    shared_tolerations_row,
    tolerations_row,
)


def test_equal_lists_are_one_tuple() -> None:
    one = read_tolerations(b'[{"key":"a","operator":"Exists","tolerationSeconds":300}]')
    spaced = read_tolerations(b'[ {"tolerationSeconds": 300, "operator": "Exists", "key": "a"} ]')
    assert one == (Toleration("a", "Exists", "", "", 300),)
    assert one is spaced


def test_long_lists_are_read_and_shared_too() -> None:
    text = msgspec.json.encode([{"key": f"key-{number}", "operator": "Exists"} for number in range(500)])
    assert read_tolerations(text) is read_tolerations(text)


@pytest.mark.parametrize("text", [b"null", b"[]"])
def test_absent_is_empty(text: bytes) -> None:
    assert read_tolerations(text) == ()


def test_null_fields_are_absent() -> None:
    text = b'[{"key":null,"operator":null,"value":null,"effect":null,"tolerationSeconds":null}]'
    assert read_tolerations(text) == (Toleration(),)


@pytest.mark.parametrize("seconds", [0, -1, -(10**30), 2**63, 10**30])
def test_seconds_of_any_size_survive(seconds: int) -> None:
    """semantics.md 12.3: readable objects are never refused for odd values"""
    tolerations = (Toleration("a", "Frobnicate", "not a label!", "Whatever", seconds),)
    assert read_tolerations_row(tolerations_row(tolerations)) == tolerations


def test_rows_of_shared_tolerations_are_those_of_any_other() -> None:
    shared = read_tolerations(b'[{"key":"a","operator":"Exists","tolerationSeconds":300},{"operator":"Exists"}]')
    assert shared_tolerations_row(shared) == shared_tolerations_row(shared) == tolerations_row(shared)
    assert read_tolerations_row(tolerations_row(shared)) is shared


def test_kept_texts_have_a_limit() -> None:
    for number in range(10_000):
        tolerations = (Toleration(f"key-{number}"),)
        assert read_tolerations_row(shared_tolerations_row(tolerations)) == tolerations


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'"text"',
        b"[1]",
        b"[null]",
        b'[{"key":1}]',
        b'[{"tolerationSeconds":"5"}]',
        b'[{"tolerationSeconds":1.5}]',
    ],
)
def test_wrong_types_are_errors(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_tolerations(text)
