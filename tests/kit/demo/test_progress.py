"""The lines in which a play tells what happens."""

from __future__ import annotations

import io

import pytest

from evictstream.kit.demo import progress as module
from evictstream.kit.demo.progress import DemoProgress
from tests.kit.demo.samples import UNREACHABLE, command, node, pod, taint, us


class Told:
    """A progress whose clock is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.out = io.StringIO()
        self.progress = DemoProgress(self.out)
        monkeypatch.setattr(module, "now_us", lambda: us(self.now))

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


def test_taints_are_told_when_they_change(told: Told) -> None:
    for event in (
        node(1, taint(UNREACHABLE)),
        node(2, taint(UNREACHABLE), ready="Unknown"),
        pod(2),
        node(3, taint("k", "NoSchedule")),
        node(4, taint("k", value="v")),
        node(5, kind="DELETED"),
    ):
        told.progress.change(event)
    assert [line.split("  ")[-1] for line in told.lines] == [
        "n-1 is tainted node.kubernetes.io/unreachable",
        "n-1 is no longer tainted",
        "n-1 is tainted k=v",
        "n-1 is no longer tainted",
    ]


def test_commands_are_gathered_before_what_is_said(told: Told) -> None:
    told.progress.say("workers start")
    told.progress.start_us = us(0)
    told.now = 1
    for action in ("Schedule", "Schedule", "Evict"):
        told.progress.command(command(action, 10))
    for told.now in (1.1, 1.6, 1.7):
        told.progress.refresh()
    told.now = 2
    told.progress.command(command("Cancel", 10))
    told.progress.refresh()
    told.now = 2.1
    told.progress.say("something happens")
    assert told.lines == [
        "       -  workers start",
        "   1.0 s  commands: Evict x 1, Schedule x 2",
        "   2.0 s  commands: Cancel x 1",
        "   2.1 s  something happens",
    ]
