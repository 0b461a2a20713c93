from __future__ import annotations

import json

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.cli.lists import ListColumn, ListFormat, ListKind, ListPrinter, ListTable, changes


class Fruit(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    fruit_name: str
    weight: int = 0


KIND = ListKind[Fruit](
    name="Fruit",
    columns=(
        ListColumn("FRUIT", lambda one: one.fruit_name, least=5),
        ListColumn("WEIGHT", lambda one: str(one.weight), rank=1),
        ListColumn("ORIGIN", lambda _: "far away", is_wide=True),
    ),
    name_of=lambda one: one.fruit_name,
)
FRUITS = [Fruit("apple", 3), Fruit("pomegranate\x1b[31m", 12)]


def shown(output: ListFormat, capsys: pytest.CaptureFixture[str], fruits: list[Fruit] = FRUITS) -> str:
    ListPrinter(KIND, output).whole(fruits)
    return capsys.readouterr().out


def test_a_pipe_gets_whole_cells_and_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(ListFormat.TABLE, capsys).splitlines() == [
        "FRUIT             WEIGHT",
        "apple             3",
        "pomegranate?[31m  12",
    ]


def test_a_wide_table_has_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(ListFormat.WIDE, capsys).splitlines()[1] == "apple             3       far away"


def test_json_and_yaml_hold_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(ListFormat.JSON, capsys))
    assert found == yaml.safe_load(shown(ListFormat.YAML, capsys))
    assert (found["apiVersion"], found["kind"]) == ("evictstream.io/v1", "FruitList")
    assert found["items"] == [{"fruitName": "apple", "weight": 3}, {"fruitName": FRUITS[1].fruit_name, "weight": 12}]


@pytest.mark.parametrize("output", [ListFormat.JSON, ListFormat.YAML])
def test_an_empty_list_is_a_list(output: ListFormat, capsys: pytest.CaptureFixture[str]) -> None:
    assert yaml.safe_load(shown(output, capsys, []))["items"] == []


def test_names_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(ListFormat.NAME, capsys).splitlines() == ["apple", "pomegranate?[31m"]


def test_a_narrow_terminal_cuts_cells_and_drops_columns() -> None:
    table = ListTable(KIND, is_wide=False, room=17, first=FRUITS)
    assert [table.titles(), *map(table.row, FRUITS)] == ["FRUIT      WEIGHT", "apple      3", "pome…[31m  12"]
    table = ListTable(KIND, is_wide=False, room=12, first=FRUITS)
    assert [table.titles(), *map(table.row, FRUITS)] == ["FRUIT", "apple", "pomeg…e?[31m"]


def test_a_watch_gives_programs_events(capsys: pytest.CaptureFixture[str]) -> None:
    printer = ListPrinter(KIND, ListFormat.JSON)
    printer.begin_watch(FRUITS[:1])
    printer.change("DELETED", FRUITS[0])
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events == [{"type": what, "object": {"fruitName": "apple", "weight": 3}} for what in ("ADDED", "DELETED")]


def test_a_watch_has_titles_before_the_first_row(capsys: pytest.CaptureFixture[str]) -> None:
    printer = ListPrinter(KIND, ListFormat.TABLE)
    printer.begin_watch([])
    printer.change("ADDED", FRUITS[0])
    assert capsys.readouterr().out.splitlines() == ["FRUIT  WEIGHT", "apple  3"]


def test_longer_names_in_a_watch_bring_titles_again(capsys: pytest.CaptureFixture[str]) -> None:
    printer = ListPrinter(KIND, ListFormat.TABLE)
    printer.begin_watch(FRUITS[:1])
    printer.change("ADDED", Fruit("grape", 1_000_000))  # the last column moves nothing
    printer.change("ADDED", Fruit("blackberry", 2))
    printer.change("ADDED", FRUITS[0])
    assert capsys.readouterr().out.splitlines() == [
        "FRUIT  WEIGHT",
        "apple  3",
        "grape  1000000",
        "FRUIT       WEIGHT",
        "blackberry  2",
        "apple       3",
    ]


def test_changes_are_what_counts() -> None:
    before = {"a": Fruit("a", 1), "b": Fruit("b", 1), "c": Fruit("c", 1)}
    after = {"a": Fruit("a", 1), "b": Fruit("b", 2), "d": Fruit("d", 1)}
    found = list(changes(before, after, lambda one: one))
    assert found == [("MODIFIED", after["b"]), ("ADDED", after["d"]), ("DELETED", before["c"])]
    assert [what for what, _ in changes(before, after, lambda one: one.fruit_name)] == ["ADDED", "DELETED"]
