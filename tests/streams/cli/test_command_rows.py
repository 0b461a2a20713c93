from __future__ import annotations

import datetime as dt
import itertools
import re

import pytest

from evictstream.models.kubernetes import taint_text
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.cli.command_rows import CommandRows, distance
from tests.streams.cli.samples import command

NOW = dt.datetime(2026, 11, 21, 2, 15, tzinfo=dt.UTC)


def cells(found: EvictionCommand) -> list[str]:
    return row_of(CommandRows(), found).split()


def row_of(rows: CommandRows, found: EvictionCommand) -> str:
    *_, row = rows.lines([rows.cells(found, NOW)])
    return row


def test_each_title_stands_over_its_cells() -> None:
    rows = CommandRows()
    titles, row = rows.lines([rows.cells(command(deadline="2026-11-21T02:20:00.123456Z"), NOW)])
    places = [*((found[0], found.start()) for found in re.finditer(r"\S+", titles)), ("", len(row))]
    table = {title: row[start:end].strip() for (title, start), (_, end) in itertools.pairwise(places)}
    assert table == {
        "TIME": "2026-11-21T02:15:00.000000Z",
        "ACTION": "Schedule",
        "CLUSTER": "lab",
        "POD": "shop/p-1",
        "NODE": "n-1",
        "DEADLINE": "2026-11-21T02:20:00.123456Z",
        "IN": "5m0s",
        "VERDICT": "TolerationExpires",
        "TAINT": "node.kubernetes.io/unreachable:NoExecute",
        "TRY": "0/1",
    }


def test_what_is_cancelled_is_not_ahead() -> None:
    assert cells(command(Action.CANCEL))[6] == "-"


def test_instants_are_shown_in_utc() -> None:
    assert cells(command(deadline="2026-11-21T04:20:00+02:00"))[5] == "2026-11-21T02:20:00.000000Z"


@pytest.mark.parametrize("deadline", ["soon", "2026-11-21T02:20:00"])
def test_an_instant_that_is_none_is_an_error(deadline: str) -> None:
    with pytest.raises(ValueError, match=r"nvalid isoformat|no zone"):
        cells(command(deadline=deadline))


@pytest.mark.parametrize("terminal", [40, 80, 120])
def test_rows_do_not_break_in_a_narrow_terminal(terminal: int) -> None:
    rows = CommandRows(terminal)
    assert rows.titles().split() == ["TIME", "ACTION", "POD", "NODE", "IN"]
    row = row_of(rows, command(deadline="2026-11-21T02:20:00.123456Z"))
    assert row.split() == ["02:15:00", "Schedule", "shop/p-1", "n-1", "5m0s"]
    assert len(row) <= 80


def test_a_wide_terminal_has_all_columns() -> None:
    assert CommandRows(200).titles() == CommandRows().titles()


@pytest.mark.parametrize(
    "long",
    [
        pytest.param(command(cluster="x" * 60), id="cluster"),
        pytest.param(command(pod="x" * 60), id="pod"),
        pytest.param(command(node="x" * 60), id="node"),
    ],
)
def test_each_row_stands_under_titles_of_its_own(long: EvictionCommand) -> None:
    rows = CommandRows()
    usual = command()
    printed = [rows.titles()]
    for together in ([usual], [usual, long], [usual], [long]):
        printed += rows.lines([rows.cells(found, NOW) for found in together])
    kinds = [line.startswith("TIME") for line in printed]
    assert kinds == [True, False, True, False, False, False, False]
    titles_at: list[int] = []
    for line in printed:
        places = [one.start() for one in re.finditer(r"\S+", line)]
        titles_at = places if line.startswith("TIME") else titles_at
        assert places == titles_at


def test_names_do_not_steer_the_terminal() -> None:
    assert "\x1b" not in row_of(CommandRows(), command(pod="p\x1b[2J\n"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.9, "0s"),
        (-0.9, "0s"),
        (-1, "-1s"),
        (59.9, "59s"),
        (60, "1m0s"),
        (298, "4m58s"),
        (3_600, "1h0m"),
        (90_000, "1d1h"),
        (-86_399, "-23h59m"),
    ],
)
def test_distances(seconds: float, text: str) -> None:
    assert distance(seconds) == text


@pytest.mark.parametrize(
    ("taint", "text"),
    [
        (Taint("k", "", "NoExecute"), "k:NoExecute"),
        (Taint("k", "v", "NoExecute"), "k=v:NoExecute"),
    ],
)
def test_taints_are_written_as_kubectl_does(taint: Taint, text: str) -> None:
    assert taint_text(taint) == text
