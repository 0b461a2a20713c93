"""Runs Spin: makes a checker from the model and its switches, lets it search, and reads what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tests.specs.searches import Search

MODEL = Path(__file__).parents[2] / "specs" / "partition.pml"

SEARCH_TIMEOUT_SECONDS = 900
MOST_MEGABYTES = 6_000  # a search that needs more ends as not finished
LONGEST_ORDER = 100_000  # steps; the longest one has some hundred


LOGS = ("changelog", "messages")
BROKEN = "broken: "


class Found(NamedTuple):
    """What a search has found.

    Attributes:
        is_finished: whether every order was searched, or a trace found.
        broken: the promise that does not hold in the trace, or Spin's own words; empty if all hold.
        trace: what happens in that order, a line for each step that has something to say.
        states: how many were looked at.
        seconds: of the search alone.
    """

    is_finished: bool
    broken: str
    trace: tuple[str, ...]
    states: int
    seconds: float


def missing_tools() -> str:
    """Say what has to be installed first; empty if nothing."""
    missing = [tool for tool in ("spin", "cc") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} not found: apt-get install spin gcc" if missing else ""


def run(search: Search, folder: Path) -> Found:
    """Search in an empty folder.

    One that must hold goes deep first, which takes the least memory; one that must not goes in all directions at once,
    so its trace is as short as any.
    """
    switches = [f"-D{switch}" for switch in search.switches]
    _call(["spin", "-a", *switches, str(MODEL)], folder)
    how = ["-DBFS"] if search.breaks else ["-DCOLLAPSE"]
    flags = ["-O2", "-w", "-DSAFETY", f"-DMEMLIM={MOST_MEGABYTES}", *how]
    _call(["cc", *flags, "-o", "pan", "pan.c"], folder)
    began_at = time.monotonic()
    said = _call(["./pan", "-n", f"-m{LONGEST_ORDER}"], folder)
    seconds = time.monotonic() - began_at
    states = re.search(r"(\S+) states, stored", said)
    errors = re.search(r"errors: (\d+)", said)
    is_cut = "Search not completed" in said or "max search depth too small" in said
    error = re.search(r"pan:\d+: (.*) \(at depth", said)
    trace = _trace(switches, folder) if error else ()
    return Found(
        is_finished=errors is not None and (not is_cut or error is not None),
        broken=trace[-1].removeprefix(BROKEN) if trace and trace[-1].startswith(BROKEN) else error[1] if error else "",
        trace=trace,
        states=int(float(states[1])) if states else 0,
        seconds=seconds,
    )


def _trace(switches: list[str], folder: Path) -> tuple[str, ...]:
    said = _call(["spin", "-t", "-T", "-k", "partition.pml.trail", *switches, str(MODEL)], folder)
    lines = said.partition("spin: trail ends")[0].splitlines()
    return tuple(_for_people(line) for line in lines if not line.startswith("spin: "))


def _for_people(line: str) -> str:
    """Write the numbers of logs, and of sets of logs and inputs, as names; transactions have numbers with omissions."""
    line = re.sub(r",? of transactions? 0( to 0)?\b", "", line)
    line = re.sub(r"\blog ([01])\b", lambda found: LOGS[int(found[1])], line)
    line = re.sub(r"\[(\d)\]", lambda found: " and ".join(LOGS[each] for each in _members(found[1])), line)
    return re.sub(r"\{(\d+)\}", lambda found: "{" + ", ".join(map(str, _members(found[1]))) + "}", line)


def _members(of_set: str) -> list[int]:
    return [each for each in range(8) if int(of_set) >> each & 1]


def _call(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SEARCH_TIMEOUT_SECONDS
    )
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{command[0]} has failed:\n{done.stdout}{done.stderr}")
    return done.stdout
