"""Files of objects: what is read as what, and what is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evictstream.kit.cli.rules.object_files import read_objects
from evictstream.kit.inputs import yaml_documents
from evictstream.streams.errors import ExitCode, ObjectFileError, WrongUseError
from tests.kit.cli.rules.conftest import Rules, WriteFile

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}}


def values(path: str) -> list[dict[object, object]]:
    return [found.value for found in read_objects(path)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(json.dumps(NODE), [NODE], id="JSON"),
        pytest.param(json.dumps(NODE, indent=2) + "\n", [NODE], id="JSON over several lines"),
        pytest.param(json.dumps(NODE) + "\n" + json.dumps(POD), [NODE, POD], id="JSON documents one behind another"),
        pytest.param("\ufeff" + json.dumps(NODE), [NODE], id="byte order mark"),
        pytest.param("apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n", [NODE], id="YAML"),
        pytest.param("{apiVersion: v1, kind: Node, metadata: {name: n1}}", [NODE], id="YAML in flow style"),
        pytest.param("---\n{kind: A}\n---\n---\n{kind: B}\n...\n", [{"kind": "A"}, {"kind": "B"}], id="YAML documents"),
        pytest.param(json.dumps(NODE) + "\n---\n" + json.dumps(POD), [NODE, POD], id="JSON between ---"),
        pytest.param(json.dumps({"kind": "List", "items": [NODE, POD]}), [NODE, POD], id="List"),
        pytest.param(
            json.dumps({"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}),
            [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}],
            id="NodeList whose items do not repeat the kind",
        ),
        pytest.param(json.dumps({"kind": "PodList", "items": None}), [], id="empty list as Go writes it"),
        pytest.param('{"kind": "\\ud83d\\ude00"}', [{"kind": "\U0001f600"}], id="a whole character in two escapes"),
        pytest.param("kind: !!str 5", [{"kind": "5"}], id="a text by its tag"),
        pytest.param("<<: {kind: A}\nb: c\n", [{"kind": "A", "b": "c"}], id="merged fields"),
        pytest.param(
            json.dumps({"kind": "List", "items": [{"kind": "List", "items": [NODE]}]}), [NODE], id="list in a list"
        ),
    ],
)
def test_what_is_read(text: str, expected: list[object], write: WriteFile) -> None:
    assert values(write(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", id="a time is a text"),
        pytest.param("2024-01-01", "2024-01-01", id="a date is a text"),
        pytest.param("1:30", "1:30", id="no numbers to base 60"),
        pytest.param("300", 300, id="number"),
        pytest.param("-1", -1, id="negative number"),
        pytest.param("1_000", 1000, id="number with underscores"),
        pytest.param("010", 8, id="octal"),
        pytest.param("0o10", 8, id="octal with o"),
        pytest.param("0x10", 16, id="hexadecimal"),
        pytest.param("0b11", 3, id="binary"),
        pytest.param("0", 0, id="zero"),
        pytest.param("3e2", 300, id="whole number with exponent"),
        pytest.param("5.0", 5, id="whole number with point"),
        pytest.param("0.5", 0.5, id="fraction"),
        pytest.param('"300"', "300", id="quoted number"),
        pytest.param("yes", True, id="yes"),
        pytest.param("Off", False, id="off"),
        pytest.param("y", True, id="y"),
        pytest.param("true", True, id="true"),
        pytest.param("~", None, id="null"),
        pytest.param("", None, id="nothing"),
        pytest.param("name-1", "name-1", id="text"),
        pytest.param("=", "=", id="sign"),
    ],
)
def test_unquoted_values_of_yaml_are_those_of_kubernetes(text: str, expected: object, write: WriteFile) -> None:
    (found,) = values(write(f"value: {text}\n"))
    assert found["value"] == expected
    assert type(found["value"]) is type(expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("---\n---\n", "it is empty", id="empty documents"),
        pytest.param("null", "it is empty", id="null"),
        pytest.param("hello", "is not an object", id="text"),
        pytest.param("[1]", "is not an object", id="list of JSON"),
        pytest.param('{"kind":"A"} 1', "not JSON (line 1)", id="number behind an object"),
        pytest.param('{"kind": "A"', "ends in the middle (line 1)", id="cut off"),
        pytest.param('{"kind": "A", "b": NaN}{"kind": "B"}', "JSON is malformed", id="NaN"),
        pytest.param("a: b: c", "not YAML: mapping values are not allowed in this context (line 1)", id="no YAML"),
        pytest.param("a: !!python/object/apply:os.getcwd []", "not YAML", id="object of Python"),
        pytest.param("a: !custom x", "not YAML", id="unknown tag"),
        pytest.param("a: &x [1]\nb: *x\n", "the alias *x is not read (line 2)", id="alias"),
        pytest.param("&x a: 1\n*x : 2\n", "the alias *x is not read", id="alias as key"),
        pytest.param("a: 1\na: 2\n", 'the field "a" appears twice in one object (line 2)', id="repeated key in YAML"),
        pytest.param('{"a": 1, "a": 2}', 'the field "a" appears twice in one object', id="repeated key in JSON"),
        pytest.param('{"b": [{"a": 1, "c": 2, "a": 2}]}', 'the field "a" appears twice', id="repeated key inside"),
        pytest.param("? [1]\n: 2\n", "unhashable", id="list as key"),
        pytest.param('{"kind": "List", "items": {}}', "a list whose items are no list", id="items no list"),
        pytest.param('{"kind": "List", "items": [1]}', "is not an object", id="item no object"),
        pytest.param("[" * 100_000, "nested too deeply", id="nested too deeply as JSON"),
        pytest.param("a: " + "[" * 20_000, "nested too deeply", id="nested too deeply as YAML"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "Exceeds the limit", id="number of 5,000 digits in JSON"),
        pytest.param("a: " + "9" * 5000, "too many digits", id="number of 5,000 digits in YAML"),
        pytest.param("a: 1e999", "too large", id="number beyond doubles"),
        pytest.param('{"a": "\\ud800"}', "BadJson", id="half a character"),
        pytest.param("a: !!timestamp 2020-01-01", "could not determine a constructor", id="a time by its tag"),
        pytest.param("a: !!binary aGVsbG8=", "could not determine a constructor", id="bytes"),
        pytest.param("!!set {a, b}", "could not determine a constructor", id="set"),
        pytest.param("a: \x00", "not YAML", id="control character"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(text: str, reason: str, write: WriteFile, rules: Rules) -> None:
    path = write(text)
    with pytest.raises(ObjectFileError) as caught:
        read_objects(path)
    assert reason in caught.value.reason
    assert caught.value.source == path
    answer = rules("tolerations", path)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (ExitCode.WRONG_USE, "", 1)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="No such file"):
        read_objects(str(tmp_path / "nowhere"))


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="directory"):
        read_objects(str(tmp_path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"kind: \xff")
    with pytest.raises(ObjectFileError) as caught:
        read_objects(str(path))
    assert caught.value.reason == "it is not UTF-8"


def test_yaml_may_be_less_long_than_json(write: WriteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    as_json, as_yaml = write(json.dumps(NODE)), write("kind: Node\nmetadata: {name: a}\n")
    monkeypatch.setattr(yaml_documents, "MOST_YAML_BYTES", 10)
    assert values(as_json) == [NODE]
    with pytest.raises(ObjectFileError) as caught:
        read_objects(as_yaml)
    assert "more than 10 bytes of YAML" in caught.value.reason


def test_a_source_that_is_named_twice_is_read_once(write: WriteFile) -> None:
    path = write(json.dumps(NODE))
    assert len(read_objects(path, path)) == 1
