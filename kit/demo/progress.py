"""Says what happens: a line for each thing, with the seconds since the recording began to play."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, TextIO

from evictstream.kit.demo.recording import Event
from evictstream.kit.demo.workers import now_us
from evictstream.models.instants import SECOND_US
from evictstream.streams.printing import one_line

GATHER_US: Final = 500_000
"""For how long commands are gathered into one line."""


class DemoProgress:
    """One line for each thing that happens, in the order in which it does.

    Attributes:
        start_us: when the recording began to play, microseconds since 1970; None before.
    """

    def __init__(self, out: TextIO) -> None:
        self.start_us: int | None = None
        self._out = out
        self._commands: Counter[str] = Counter()
        self._gathered_since_us = 0
        self._taints: dict[str, str] = {}

    def say(self, sentence: str) -> None:
        """Write a line; commands that came before come before."""
        self._tell_commands()
        self._write(now_us(), sentence)

    def change(self, event: Event) -> None:
        """Take in a watch event; say it if a node has other NoExecute taints."""
        thing = event["object"]
        if thing["kind"] != "Node":
            return
        name = thing["metadata"]["name"]
        listed = thing["spec"].get("taints") or () if event["type"] != "DELETED" else ()
        taints = ", ".join(
            one["key"] + (f"={one['value']}" if one.get("value") else "")
            for one in listed
            if one["effect"] == "NoExecute"
        )
        before, self._taints[name] = self._taints.get(name, ""), taints
        if before != taints:
            self.say(f"{name} is tainted {taints}" if taints else f"{name} is no longer tainted")

    def command(self, command: dict[str, Any]) -> None:
        """Take in a command."""
        if not self._commands:
            self._gathered_since_us = now_us()
        self._commands[command["action"]] += 1

    def refresh(self) -> None:
        """Write what was gathered for long enough; called several times a second."""
        if now_us() - self._gathered_since_us >= GATHER_US:
            self._tell_commands()

    def _tell_commands(self) -> None:
        if self._commands:
            parts = [f"{action} x {number}" for action, number in sorted(self._commands.items())]
            self._commands.clear()
            self._write(self._gathered_since_us, f"commands: {', '.join(parts)}")

    def _write(self, at_us: int, sentence: str) -> None:
        at = "       -" if self.start_us is None else f"{(at_us - self.start_us) / SECOND_US:6.1f} s"
        print(one_line(f"{at}  {sentence}"), file=self._out, flush=True)
