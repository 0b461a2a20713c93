from __future__ import annotations

import io
import json
import re
import time

import pytest

from evictstream.kit.inputs.json_documents import BEHIND_A_PREFIX, LONGEST_JSON_LINE_BYTES, documents
from evictstream.kit.inputs.pieces import Broken, Document, InputPiece, ListItem

LIMIT = 40


def cut(data: bytes, largest_bytes: int = 1_000_000) -> list[InputPiece]:
    return list(documents(io.BytesIO(data), largest_bytes))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"\n \n\n", [], id="empty-lines"),
        pytest.param(b'{"a":1}\n{"b":2}\n', [(1, '{"a":1}'), (2, '{"b":2}')], id="lines"),
        pytest.param(b'{"a":1}\n{"b":2}', [(1, '{"a":1}'), (2, '{"b":2}')], id="no-newline-at-the-end"),
        pytest.param(b'{"a":1}\r\n\r\n{"b":2}\r\n', [(1, '{"a":1}'), (3, '{"b":2}')], id="crlf"),
        pytest.param(b'{"a":1}{"b":2} {"c":3}\n', [(1, '{"a":1}'), (1, '{"b":2}'), (1, '{"c":3}')], id="on-one-line"),
        pytest.param(
            b'{\n  "a": [\n    1\n  ]\n}\n{\n}\n', [(1, '{\n  "a": [\n    1\n  ]\n}'), (6, "{\n}")], id="pretty"
        ),
        pytest.param(b'{"a":\n1} {"b":\n2}\n', [(1, '{"a":\n1}'), (2, '{"b":\n2}')], id="over-lines-and-on-one"),
        pytest.param(
            b'{"}":"{\\"[","b":"\\\\"}{"c":1}\n', [(1, '{"}":"{\\"[","b":"\\\\"}'), (1, '{"c":1}')], id="texts"
        ),
        pytest.param(b'{"a":1},\n{"b":2},\n', [(1, '{"a":1}'), (2, '{"b":2}')], id="values-of-a-list"),
        pytest.param(b'---\n{"a":1}\n---\n{"b":2}\n...\n', [(2, '{"a":1}'), (4, '{"b":2}')], id="between-yamls-lines"),
        pytest.param(
            b'{\n"a": [\n{\n"b": {\n}\n},\n{\n}\n]\n}\n',
            [(1, '{\n"a": [\n{\n"b": {\n}\n},\n{\n}\n]\n}')],
            id="braces-in-the-first-column",
        ),
        pytest.param(b'{"a":nope}\n', [(1, '{"a":nope}')], id="balanced-is-enough"),
    ],
)
def test_documents(data: bytes, expected: list[tuple[int, str]]) -> None:
    assert cut(data) == [Document(number, text.encode()) for number, text in expected]


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        pytest.param(b'{"a":{"b":1\n', "ends in the middle", id="line-cut"),
        pytest.param(b'{"a":"b\n', "not JSON", id="text-cut"),
        pytest.param(b'{\n  "a": {\n    "b": 1\n', "ends in the middle", id="pretty-cut"),
        pytest.param(b'{\n  "a": "b\n  }\n}\n', "not JSON", id="pretty-text-cut"),
        pytest.param(b"error: the server is away\nreally\n", "not JSON", id="words"),
        pytest.param(b"}\n", "not JSON", id="closes-nothing"),
        pytest.param(b'1 {"a":1}\n' * 3, BEHIND_A_PREFIX, id="words-before"),
        pytest.param(b"[" * 5_000 + b"\n", "ends in the middle", id="nested-without-end"),
        pytest.param(b'{"a":"\\\n', "not JSON", id="backslash-at-the-end"),
    ],
)
def test_what_is_broken_costs_only_itself(broken: bytes, problem: str) -> None:
    found = cut(b'{"x":1}\n' + broken + b'{"y":2}\n{"z":3}\n')
    after = 2 + broken.count(b"\n")
    assert found == [
        Document(1, b'{"x":1}'),
        Broken(2, problem, broken.count(b"\n")),
        Document(after, b'{"y":2}'),
        Document(after + 1, b'{"z":3}'),
    ]


def test_an_end_in_the_middle_is_reported() -> None:
    assert cut(b'{"a":1}\n{"b":') == [Document(1, b'{"a":1}'), Broken(2, "ends in the middle")]


class TestLimit:
    def test_at_the_limit(self) -> None:
        largest = b'{"a":"' + b"x" * (LIMIT - 8) + b'"}'
        assert len(largest) == LIMIT
        assert cut(largest + b"\n", LIMIT) == [Document(1, largest)]

    @pytest.mark.parametrize("extra", [1, 2, 1000])
    def test_beyond_it(self, extra: int) -> None:
        too_large = b'{"a":"' + b"x" * (LIMIT - 8 + extra) + b'"}\n'
        assert cut(too_large + b'{"b":1}\n', LIMIT) == [Broken(1, "larger than 40 bytes"), Document(2, b'{"b":1}')]

    def test_over_lines(self) -> None:
        too_large = b'{\n"a":[' + b"1,\n" * 40 + b"1]}\n"
        found = cut(too_large + b'{"b":1}\n', LIMIT)
        assert found == [Broken(1, "larger than 40 bytes", 42), Document(43, b'{"b":1}')]

    def test_a_line_without_end_may_hold_many_small_ones(self) -> None:
        data = b"".join(b'{"a":"}%d\\""}' % number for number in range(100))
        assert [json.loads(found.text)["a"] for found in cut(data, LIMIT) if isinstance(found, Document)] == [
            f'}}{number}"' for number in range(100)
        ]

    @pytest.mark.parametrize("begins", [b'"', b"[", b"x"])
    def test_what_is_asked_of_the_stream_is_bounded(self, begins: bytes) -> None:
        asked: list[int] = []

        class Endless:
            def read1(self, size: int, /) -> bytes:
                asked.append(size)
                return begins + b"x" * (size - 1) if len(asked) < 50 else b""

        assert [type(one) for one in documents(Endless(), LIMIT)] == [Broken]
        assert max(asked) < LONGEST_JSON_LINE_BYTES


class TestLists:
    ITEMS = (b'{"n":"}]"}', b'{"n":{"items":[{"x":1}]}}', b'{"n":3}')

    @pytest.mark.parametrize("indent", [None, 1, 4])
    def test_items_come_one_by_one_then_the_list(self, indent: int | None) -> None:
        made = {"kind": "List", "items": [json.loads(item) for item in self.ITEMS], "metadata": {"continue": ""}}
        *items, end = cut(json.dumps(made, indent=indent).encode())
        assert [json.loads(item.text) for item in items if isinstance(item, ListItem)] == made["items"]
        assert {item.head and json.loads(item.head)["kind"] for item in items if isinstance(item, ListItem)} == {"List"}
        assert isinstance(end, Document)
        assert json.loads(end.text) == made | {"items": []}

    def test_a_list_may_be_larger_than_the_limit(self) -> None:
        made = b'{"items":[' + b" , ".join(self.ITEMS * 1_000) + b'],"kind":"List"}{"a":1}'
        *items, end, after = cut(made, LIMIT)
        assert [item.text for item in items if isinstance(item, ListItem)] == list(self.ITEMS * 1_000)
        assert [end, after] == [Document(1, b'{"items":[],"kind":"List"}', is_list=True), Document(1, b'{"a":1}')]

    def test_lines_are_those_of_items(self) -> None:
        *items, _ = cut(b'{\n "items": [\n  {\n  },\n  {}\n ]\n}\n')
        assert [item.line for item in items if isinstance(item, ListItem)] == [3, 5]

    def test_a_cut_list_keeps_what_stands_before(self) -> None:
        found = cut(b'{"items":[{"a":1},{"b":2')
        assert found == [ListItem(1, b'{"a":1}', b'{"items":[]}'), Broken(1, "ends in the middle")]

    @pytest.mark.parametrize("items", [b"null", b"{}", b"7"])
    def test_items_that_are_no_list_are_text(self, items: bytes) -> None:
        assert cut(b'{"items":' + items + b"}\n") == [Document(1, b'{"items":' + items + b"}")]

    @pytest.mark.parametrize("largest", [1_000, 8])
    def test_values_of_a_list_may_be_anything(self, largest: int) -> None:
        values = [b"1", b'"a,]"', b"[2, 3]", b"{}", b"null", b'"\\""']
        found = cut(b"[" + b" ,\n".join(values) + b"]", largest)
        assert [one.text for one in found if isinstance(one, ListItem)] == values

    def test_a_value_that_is_too_large_keeps_the_others(self) -> None:
        found = cut(b'{"items": [{"a": 1},\n{"a": "' + b"x" * LIMIT + b'"}, {"a": 2}]}', LIMIT)
        assert [one.text for one in found if isinstance(one, ListItem)] == [b'{"a": 1}', b'{"a": 2}']
        assert [one for one in found if isinstance(one, Broken)] == [Broken(2, "larger than 40 bytes")]

    @pytest.mark.parametrize(
        ("inside", "problem"),
        [
            pytest.param(b'  {\n   "a": 1\n', "ends in the middle", id="cut"),
            pytest.param(b"  {\n   nope }\n  }\n", "not JSON", id="brackets"),
        ],
    )
    def test_a_damaged_item_keeps_what_stands_around_the_list(self, inside: bytes, problem: str) -> None:
        found = cut(b'{\n "items": [\n  {\n  },\n' + inside + b'{"b":1}\n', LIMIT)
        assert found[0] == ListItem(3, b"{\n  }", b'{\n "items": []}')
        assert [one.problem for one in found if isinstance(one, Broken)] == [problem]
        assert found[-1] == Document(5 + inside.count(b"\n"), b'{"b":1}')


def test_blanks_cost_no_more_than_any_pattern_takes() -> None:
    """A gigabyte of them is a megabyte of gzip. It was 40 times as much."""
    blanks = io.BytesIO(b" " * 20_000_000)
    began = time.process_time()
    assert list(documents(blanks)) == []
    took = time.process_time() - began
    began = time.process_time()
    assert re.fullmatch(rb"\s*", blanks.getvalue())
    assert took < 7 * (time.process_time() - began)
