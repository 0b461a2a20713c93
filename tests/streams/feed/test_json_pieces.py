"""JSON is taken apart as a decoder would, at any depth, and as far as it goes where it is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.streams.feed.json_pieces import Piece, piece, pieces

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1), inner, max_size=4),
    max_leaves=20,
)
DEEPEST = 100_000


@given(found=st.dictionaries(st.text(min_size=1), JSON), blanks=st.booleans())
def test_members_are_those_that_a_decoder_finds(found: dict[str, object], *, blanks: bool) -> None:
    text = json.dumps(found, indent=2 if blanks else None).encode()
    read = {json.loads(b'"%s"' % one.key): json.loads(one.value) for one in pieces(text)}
    assert read == found
    assert all(one.is_whole for one in pieces(text))


@given(found=st.lists(JSON))
def test_elements_are_those_that_a_decoder_finds(found: list[object]) -> None:
    assert [json.loads(one.value) for one in pieces(json.dumps(found).encode())] == found


@given(found=st.dictionaries(st.text(min_size=1), JSON), data=st.data())
def test_only_the_last_piece_is_cut(found: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(found).encode()
    cut = list(pieces(text[: data.draw(st.integers(0, len(text)))]))
    whole = list(pieces(text))[: len(cut)]
    assert cut[:-1] == whole[: len(cut) - 1]
    assert not cut or cut[-1] == whole[-1] or not cut[-1].is_whole


@given(text=st.binary())
def test_what_is_no_json_is_no_error(text: bytes) -> None:
    list(pieces(text))
    list(pieces(b'{"a":' + text))


@pytest.mark.slow
def test_a_member_is_found_behind_deep_ones() -> None:
    deep = b"[" * DEEPEST + b"]" * DEEPEST
    text = b'{"metadata":{"managedFields":%s,"name":"a\\u00e9\xff"},"spec":{"nodeName":7}}' % deep
    assert piece(text, b"metadata", b"name") == Piece(b"name", b'"a\\u00e9\xff"', is_whole=True)
    found = piece(text, b"metadata", b"name")
    assert found is not None
    assert found.text == "a\u00e9\ufffd"
    assert piece(text, b"spec", b"nodeName") == Piece(b"nodeName", b"7", is_whole=True)
    assert piece(text, b"status", b"phase") is None
