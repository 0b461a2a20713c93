"""Lists of one kind of thing, printed as kubectl prints them: a table, a wide table, JSON, YAML or names.

A table on a terminal fits its width: cells are cut, and columns left out, in the order that they say. A wide table, and
a table on a pipe, has every cell whole. Colours are for terminals alone, and `NO_COLOR` or a dumb terminal turn them
off.
"""

from __future__ import annotations

import enum
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Generic, NamedTuple, TypeVar

import msgspec
import typer

from evictstream.models.messages.vocabulary import API_VERSION
from evictstream.streams.cli.columns import GAP
from evictstream.streams.cli.fitting import Cut, Width, cut_middle, fit
from evictstream.streams.cli.output import LOOK_AHEAD_ROWS, print_long_json
from evictstream.streams.printing import one_line, printable_json

_NO_FOLDING: Final = 1_000_000
"""Characters of a line of YAML: none is broken, so that a search finds a text as it is."""

_T = TypeVar("_T", bound=msgspec.Struct)
"""An item; its fields are what programs get."""

_Key = TypeVar("_Key", bound=Hashable)


class ListFormat(enum.StrEnum):
    """The values of `-o` of lists."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


ListOption = Annotated[
    ListFormat,
    typer.Option(
        "--output",
        "-o",
        help="A table, a table with all columns, or json, yaml or names for programs.",
        metavar="|".join(ListFormat),
    ),
]
"""Declare it as `output: ListOption = ListFormat.TABLE`."""


class ListColumn(NamedTuple, Generic[_T]):
    """One column.

    Attributes:
        title: its title.
        cell: the text for an item.
        usual: characters that most cells need, for a watch, whose later rows are not known yet.
        least: fewest characters of a cell that is cut; None where it is never cut.
        rank: the highest is left out first where there is no room.
        cut: how a cell is cut.
        is_wide: only a wide table has it.
    """

    title: str
    cell: Callable[[_T], str]
    usual: int = 0
    least: int | None = None
    rank: int = 0
    cut: Cut = cut_middle
    is_wide: bool = False


class ListKind(NamedTuple, Generic[_T]):
    """How items of one kind are printed.

    Attributes:
        name: of one item in JSON, such as `Eviction`; a list of it is an `EvictionList`.
        columns: of the table.
        name_of: what `-o name` prints.
        is_alarming: whether a terminal with colours shows it in red.
    """

    name: str
    columns: Sequence[ListColumn[_T]]
    name_of: Callable[[_T], str]
    is_alarming: Callable[[_T], bool] = lambda _: False


def are_colours_wanted() -> bool:
    """Whether stdout is a terminal that shows colours, and nobody has asked for none (`NO_COLOR`)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def room_of_stdout() -> int | None:
    """Return how many characters a line of stdout has; None for a pipe or a file, which have no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


class ListTable(Generic[_T]):
    """A table that is printed row by row; the first rows set the widths."""

    def __init__(
        self, kind: ListKind[_T], *, is_wide: bool, room: int | None, first: Iterable[_T], is_watch: bool = False
    ) -> None:
        """Fit the columns to `first`, for a watch to usual rows too, and to `room` characters; None for any number."""
        columns = [column for column in kind.columns if is_wide or not column.is_wide]
        cells = [[len(one_line(column.cell(item))) for column in columns] for item in first]
        cells.append([max(len(column.title), column.usual if is_watch else 0) for column in columns])
        naturals = [max(widths) for widths in zip(*cells, strict=True)]
        widths = [Width(n, column.least, column.rank) for n, column in zip(naturals, columns, strict=True)]
        self._widths = fit(widths, room)
        self._columns = {number: columns[number] for number in self._widths}
        self._has_room = room is None
        self._places: list[int] = []

    @property
    def has_moved(self) -> bool:
        """Whether columns have moved since the titles were returned: they belong before the next row again."""
        return self._places != list(self._widths.values())[:-1]

    def titles(self) -> str:
        """Return the line of titles."""
        self._places = list(self._widths.values())[:-1]
        return self._line([column.title for column in self._columns.values()])

    def row(self, item: _T) -> str:
        """Return the line of an item; without a limit, a longer cell widens its column from here on."""
        cells = []
        for number, column in self._columns.items():
            text = one_line(column.cell(item))
            if self._has_room:
                self._widths[number] = max(self._widths[number], len(text))
            cells.append(column.cut(text, self._widths[number]))
        return self._line(cells)

    def _line(self, cells: Sequence[str]) -> str:
        pairs = zip(cells, self._widths.values(), strict=True)
        return GAP.join(text[:width].ljust(width) for text, width in pairs).rstrip()


class ListPrinter(Generic[_T]):
    """Prints items of one kind in one format; a watch goes on printing what changes."""

    def __init__(self, kind: ListKind[_T], output: ListFormat) -> None:
        self._kind = kind
        self._output = output
        self._table: ListTable[_T] | None = None
        self._is_coloured = are_colours_wanted()

    def whole(self, items: Iterable[_T]) -> None:
        """Print a list that is known as a whole."""
        if self._output is ListFormat.JSON:
            head = {"apiVersion": API_VERSION, "kind": f"{self._kind.name}List"}
            print_long_json(head, "items", items)
        elif self._output is ListFormat.YAML:
            sys.stdout.write(f"apiVersion: {API_VERSION}\nkind: {self._kind.name}List\n")
            coming = iter(items)
            first = next(coming, None)
            sys.stdout.write("items: []\n" if first is None else "items:\n")
            for item in () if first is None else itertools.chain([first], coming):
                sys.stdout.write(_yaml([item]))
        else:
            self._rows(items)
        sys.stdout.flush()

    def _rows(self, items: Iterable[_T], *, is_watch: bool = False) -> None:
        """Print rows or names, the titles before the first."""
        if self._output is ListFormat.NAME:
            for item in items:
                print(one_line(self._kind.name_of(item)))  # noqa: T201 - typer would flush each line
            return
        coming = iter(items)
        if self._table is None:
            first = list(itertools.islice(coming, LOOK_AHEAD_ROWS))
            coming = itertools.chain(first, coming)
            is_wide = self._output is ListFormat.WIDE
            room = None if is_wide else room_of_stdout()
            self._table = ListTable(self._kind, is_wide=is_wide, room=room, first=first, is_watch=is_watch)
            self._print(self._table.titles(), "bold")
        for item in coming:
            row = self._table.row(item)
            if self._table.has_moved:
                self._print(self._table.titles(), "bold")
            self._print(row, "red" if self._kind.is_alarming(item) else "")

    def begin_watch(self, items: Iterable[_T]) -> None:
        """Print what is there at the beginning of a watch; for programs as additions."""
        if self._output in (ListFormat.JSON, ListFormat.YAML):
            for item in items:
                self.change("ADDED", item)
        else:
            self._rows(items, is_watch=True)
        sys.stdout.flush()

    def change(self, what: str, item: _T) -> None:
        """Print that an item has changed: `ADDED`, `MODIFIED` or `DELETED`, for programs as a watch event."""
        if self._output in (ListFormat.JSON, ListFormat.YAML):
            event = {"type": what, "object": item}
            sys.stdout.write(_json_line(event) if self._output is ListFormat.JSON else f"---\n{_yaml(event)}")
        else:
            self._rows([item])
        sys.stdout.flush()

    def _print(self, line: str, style: str) -> None:
        if style and self._is_coloured:
            from rich.text import Text

            from evictstream.streams.cli.consoles import PrintableConsole

            PrintableConsole(highlight=False, soft_wrap=True).print(Text(line, style=style))
        else:
            print(line)  # noqa: T201 - as above


def _json_line(value: Mapping[str, object]) -> str:
    return f"{printable_json(msgspec.json.encode(value).decode())}\n"


def _yaml(value: object) -> str:
    import yaml  # type: ignore[import-untyped]

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C, where the library was built so: ten times as fast
    return str(yaml.dump(msgspec.to_builtins(value), Dumper=dumper, sort_keys=False, width=_NO_FOLDING))


def changes(
    before: Mapping[_Key, _T], after: Mapping[_Key, _T], same: Callable[[_T], object]
) -> Iterator[tuple[str, _T]]:
    """Yield what has changed between two looks, as watch events of Kubernetes are called.

    Args:
        before: the items of the first look, by name.
        after: those of the second one.
        same: what of an item counts; what only the passing of time changes does not.
    """
    for name, item in after.items():
        earlier = before.get(name)
        if earlier is None:
            yield "ADDED", item
        elif same(earlier) != same(item):
            yield "MODIFIED", item
    for name, item in before.items():
        if name not in after:
            yield "DELETED", item
