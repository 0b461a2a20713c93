"""Whatever printer wrote a list, and in whatever order and layout, the same objects are read of it."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.inputs.files import pieces_of
from evictstream.kit.inputs.json_documents import documents
from evictstream.kit.inputs.pieces import Document, ListItem
from evictstream.kit.inputs.recognition import EndOfList, KubernetesObject, recognised
from tests.harness.examples import examples

SPACE = st.text(alphabet=" \n\t\r", max_size=3)
TEXTS = st.text(alphabet='ab{}[]",:\\\nitemskindä\u2028', max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.lists(st.fixed_dictionaries({"metadata": st.dictionaries(TEXTS, VALUES, max_size=3)}), max_size=4)


@st.composite
def printed(draw: st.DrawFn, value: Any) -> str:
    """Write JSON as some printer could: white space anywhere, keys in any order, characters escaped or not."""

    def spaced(text: str) -> str:
        return draw(SPACE) + text + draw(SPACE)

    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        inside = [f"{spaced(draw(printed(key)))}:{spaced(draw(printed(value[key])))}" for key in keys]
        return "{" + (",".join(inside) or spaced("")) + "}"
    if isinstance(value, list):
        return "[" + (",".join(spaced(draw(printed(one))) for one in value) or spaced("")) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


LISTS = st.sampled_from(["NodeList", "PodList"]).flatmap(
    lambda kind: ITEMS.map(lambda items: {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items})
)
FORMS: st.SearchStrategy[Callable[[str], bytes]] = st.sampled_from(
    [str.encode, lambda text: gzip.compress(text.encode()), lambda text: text.encode("utf-16")]
)


@settings(max_examples=examples(40), deadline=None)
@given(made=LISTS.flatmap(lambda value: st.tuples(st.just(value), printed(value))), form=FORMS)
def test_any_layout_of_any_list(made: tuple[Any, str], form: Callable[[str], bytes]) -> None:
    value, text = made
    found = [one for one in recognised(pieces_of("f", io.BytesIO(form(text)))) if not isinstance(one, EndOfList)]
    assert all(isinstance(one, KubernetesObject) for one in found), (found, text)
    objects = [json.loads(one.text) for one in found if isinstance(one, KubernetesObject)]
    kind = value["kind"].removesuffix("List")
    assert objects == [{"kind": kind, "apiVersion": "v1"} | item for item in value["items"]]


@settings(max_examples=examples(40), deadline=None)
@given(made=LISTS.flatmap(lambda value: st.tuples(st.just(value), printed(value))), data=st.data())
def test_a_list_that_comes_in_small_parts(made: tuple[Any, str], data: st.DataObject) -> None:
    value, text = made
    read = io.BytesIO(text.encode())

    class Parts:
        def read1(self, _size: int, /) -> bytes:
            return read.read(data.draw(st.integers(1, 40)))

    items = [json.loads(one.text) for one in documents(Parts()) if isinstance(one, ListItem)]
    assert items == value["items"]


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(made=st.lists(LISTS.flatmap(printed), min_size=1, max_size=3), cut=st.floats(0, 1))
def test_a_cut_costs_nothing_that_follows(made: list[str], cut: float) -> None:
    *_, last = made
    begun = last[: int(len(last) * cut)].rstrip(" \n\t\r,[:")
    whole = "".join(f'{{"kind":"Node","text":{json.dumps(text)}}}\n' for text in made)
    found = list(documents(io.BytesIO((begun + "\n" + whole).encode())))
    texts = [json.loads(one.text) for one in found if isinstance(one, Document | ListItem)]
    assert [one["text"] for one in texts if isinstance(one, dict) and "text" in one] == made
