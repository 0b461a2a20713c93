"""Objects that no decoder reads are made readable, and lists fall into their items, whatever is in them."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evictstream.models.shallow_json import ListSplitter, SplitItem, shallow
from tests.harness.examples import examples

LEVELS = [990, 1_500, 9_995, 100_000]
"""Where decoders of Python 3.11, 3.12 and 3.13 give up, and far beyond."""

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=8,
)


def split_list(text: bytes, *, most_item_bytes: int) -> tuple[bytes, list[SplitItem]]:
    splitter = ListSplitter(most_item_bytes=most_item_bytes)
    items = splitter.add(text)
    return splitter.end(), items


def deep(levels: int) -> bytes:
    return b'{"f:a":' * levels + b"{}" + b"}" * levels


def levels_of(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + max(map(levels_of, value.values() if isinstance(value, dict) else value), default=0)
    return 0


@pytest.mark.parametrize("levels", LEVELS)
def test_an_object_of_any_depth_becomes_readable(levels: int) -> None:
    text = b'{"metadata":{"managedFields":[{"fieldsV1":' + deep(levels) + b'}],"name":"a"},"spec":{"x":"}]\\"{"}}'
    found = msgspec.json.decode(shallow(text))
    assert found["metadata"]["name"] == "a"
    assert found["spec"] == {"x": '}]"{'}


@settings(max_examples=examples(50))
@given(values, st.integers(1, 5), st.booleans())
def test_what_is_not_too_deep_stays_as_it_is(value: Any, levels: int, is_ascii: bool) -> None:  # noqa: FBT001 - drawn
    text = json.dumps({"it": value}, ensure_ascii=is_ascii).encode(errors="replace")
    found = msgspec.json.decode(shallow(text, most_levels=levels))
    assert levels_of(found) <= levels
    if levels_of({"it": value}) <= levels:
        assert shallow(text, most_levels=levels) == text


def test_what_is_no_text_becomes_readable() -> None:
    assert msgspec.json.decode(shallow(b'{"a":"x\xff\xfe","b":1}')) == {"a": "x\ufffd\ufffd", "b": 1}


@pytest.mark.parametrize("broken", [b'{"a":', b'{"a":"', b"}", b"[[]", b'{"a":"\\"}', b'"' * 99_999])
def test_brackets_and_quotes_that_do_not_match_are_refused(broken: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        shallow(broken)


# Drawing an object with long texts takes some 100 ms on a busy machine: that is no fault.
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.permutations(["metadata", "items", "kind", "more"]),
    st.lists(st.dictionaries(st.text(), values, max_size=4), max_size=6),
    st.dictionaries(st.text(), values, max_size=3),
    values,
    st.integers(1, 40),
    st.booleans(),
)
def test_a_list_falls_into_its_items_in_order(
    keys: list[str],
    items: list[Any],
    metadata: Any,
    more: Any,
    size: int,
    is_ascii: bool,  # noqa: FBT001 - drawn
) -> None:
    whole = {"items": items, "metadata": metadata, "kind": "items", "more": more}
    text = json.dumps({key: whole[key] for key in keys}, ensure_ascii=is_ascii).encode(errors="replace")
    splitter = ListSplitter(most_item_bytes=10_000)
    found = [item for at in range(0, len(text), size) for item in splitter.add(text[at : at + size])]
    assert [msgspec.json.decode(item.text) for item in found] == msgspec.json.decode(text)["items"]
    assert all(item.is_whole for item in found)
    assert msgspec.json.decode(splitter.end()) == msgspec.json.decode(text)["metadata"]
    assert split_list(text, most_item_bytes=10_000) == (splitter.end(), found)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("size", [7_001, 100_000_000])
def test_an_item_of_any_depth_costs_no_other_one(levels: int, size: int) -> None:
    text = b'{"items":[{"n":1},' + deep(levels) + b',{"n":2}],"metadata":{"resourceVersion":"7"}}'
    splitter = ListSplitter(most_item_bytes=100_000_000)
    found = [item.text for at in range(0, len(text), size) for item in splitter.add(text[at : at + size])]
    assert found == [b'{"n":1}', deep(levels), b'{"n":2}']
    assert splitter.end() == b'{"resourceVersion":"7"}'


def test_the_beginning_of_a_too_large_item_is_kept() -> None:
    large = b'{"metadata":{"name":"large"},"x":"' + b"y" * 50_000 + b'"}'
    text = b'{"metadata":{},"items":[{"n":1},' + large + b',{"n":2}]}'
    splitter = ListSplitter(most_item_bytes=1_000)
    found = []
    for at in range(0, len(text), 100):
        found += splitter.add(text[at : at + 100])
        assert len(splitter._text) <= 1_200
    assert [(item.text, item.is_whole) for item in found] == [
        (b'{"n":1}', True),
        (large[:1_000], False),
        (b'{"n":2}', True),
    ]


@pytest.mark.parametrize("broken", [b"", b"<html>", b"[1]", b'{"items":[', b'{"items":[]}}', b'{"items":["'])
def test_what_is_no_list_is_refused(broken: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        split_list(broken, most_item_bytes=1_000)


@pytest.mark.parametrize(
    "unit",
    [b"{", *(pytest.param(unit, marks=pytest.mark.slow) for unit in (b"[", b'"', b"\\", b'"\\', b'"a",', b"{}"))],
)
def test_time_grows_with_the_length_alone(unit: bytes) -> None:
    """Much of anything is scanned once: what would take hours takes a second."""
    text = b'{"items":[{"a":' + unit * 300_000
    began = time.process_time()
    for run in (shallow, lambda one: split_list(one, most_item_bytes=1_000)):
        with pytest.raises(msgspec.DecodeError):
            run(text)
    assert time.process_time() - began < 10
