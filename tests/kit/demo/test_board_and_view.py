from __future__ import annotations

import io

import pytest
from rich.console import Console

from evictstream.kit.demo.board import ZONE, Board
from evictstream.kit.demo.reader import Arrival, Seen
from evictstream.kit.demo.view import COMMANDS_SHOWN, DEADLINES_SHOWN, LiveShow, PlainShow, picture
from tests.kit.demo.samples import START_US, UNREACHABLE, command, node, pod, taint, us


def arrival(seconds: float, action: str, deadline: float, number: int = 1, **more: object) -> Arrival:
    names = {"evictionId": f"e{number}", "pod": f"web-{number}", "podUid": f"u{number}"}
    return Arrival(Seen(us(seconds), command(action, deadline, **(names | more))), partition=3)


@pytest.fixture
def board() -> Board:
    found = Board()
    found.headline = "some Kafka"
    found.phase = "z-a falls silent"
    found.workers = ("worker 1 has partitions 3", "worker 2 starts")
    first = node(0)
    first["object"]["metadata"]["labels"] = {ZONE: "z-a"}
    found.change(first)
    found.change(node(0, name="n-2", uid="node-2"))
    return found


def text_of(board: Board, seconds: float, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, height=40, force_terminal=False)
    console.print(picture(board, us(seconds), START_US, narrow=width < 100))
    found = console.file
    assert isinstance(found, io.StringIO)
    return found.getvalue()


def test_taints_are_printed_when_they_change(board: Board) -> None:
    assert board.change(node(1, taint(UNREACHABLE))) == "n-1 is tainted node.kubernetes.io/unreachable"
    assert board.change(node(2, taint(UNREACHABLE), ready="Unknown")) is None
    assert board.change(node(3, taint("k", "NoSchedule"))) == "n-1 is no longer tainted"
    assert board.change(pod(3)) is None


def test_evictions_are_counted_once(board: Board) -> None:
    board.command(arrival(1, "Schedule", 10))
    board.command(arrival(1, "Schedule", 10, 2))
    board.command(arrival(2, "Schedule", 20, 2, revision=2))
    line = board.nodes["n-1"]
    assert (line.pending, line.cancelled, line.evicted) == (2, 0, 0)
    assert (board.pending_in({3}), board.pending_in({1})) == (2, 0)
    board.command(arrival(10, "Evict", 10))
    board.command(arrival(12, "Evict", 10, attempt=2))
    board.command(arrival(13, "Cancel", 20, 2))
    assert (line.pending, line.cancelled, line.evicted) == (0, 1, 1)


def test_picture_shows_nodes_deadlines_and_commands(board: Board) -> None:
    tainted = node(1, taint(UNREACHABLE))
    tainted["object"]["metadata"]["labels"] = {ZONE: "z-a"}
    board.change(tainted)
    board.command(arrival(1, "Schedule", 10))
    board.command(arrival(4.012, "Evict", 4, 2))
    shown = " ".join(text_of(board, 5).split())
    assert "z-a falls silent" in shown
    assert "5.0 s" in shown
    assert "worker 2 starts" in shown
    assert "n-1 z-a unreachable 1 1" in shown
    assert "1 quiet" in shown
    assert "5.0 s web-1" in shown
    assert "Evict web-2 12 ms" in shown
    assert "-3.0 s web-1" in text_of(board, 13)


@pytest.mark.parametrize("width", [80, 120])
def test_picture_fits_and_is_bounded(board: Board, width: int) -> None:
    for number in range(50):
        board.command(arrival(1, "Schedule", 10 + number, number))
    lines = text_of(board, 5, width).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    assert sum("web-" in line for line in lines) == DEADLINES_SHOWN + COMMANDS_SHOWN


def test_plain_lines_gather_commands_by_node(board: Board) -> None:
    out = io.StringIO()
    show = PlainShow(out)
    show.say(us(0), "workers start")
    show.begin(us(0))
    for number in range(3):
        board.command(arrival(1, "Schedule", 10, number))
    board.command(arrival(1, "Evict", 1, 9))
    show.refresh(board, us(1))
    show.refresh(board, us(1.1))
    show.refresh(board, us(1.6))
    show.refresh(board, us(1.7))
    board.command(arrival(2, "Cancel", 10, 0))
    show.refresh(board, us(2))
    show.say(us(2.1), "something happens")
    show.close()
    assert out.getvalue().splitlines() == [
        "       -  workers start",
        "   1.0 s  commands for n-1: Schedule x 3, Evict x 1",
        "   2.0 s  commands for n-1: Cancel x 1",
        "   2.1 s  something happens",
    ]


def test_live_view_leaves_only_its_messages_on_a_terminal(board: Board) -> None:
    console = Console(file=io.StringIO(), width=120, height=40, force_terminal=True, legacy_windows=False)
    show = LiveShow(console)
    show.begin(us(0))
    show.refresh(board, us(1))
    show.refresh(board, us(1.05))  # too soon
    show.say(us(1.1), "worker 1 killed")
    show.close()
    show.close()
    out = console.file
    assert isinstance(out, io.StringIO)
    assert "z-a falls silent" in out.getvalue()
    assert "1.1 s  worker 1 killed" in out.getvalue()
