"""`python -m tests.faults`: run the torture.

Exit code 0 without a violation, 1 with one or with fewer schedules run than asked for, 2 for wrong use.

Without arguments, 20,000 simulated schedules and 20,000 random lives that are replayed, on all cores, and 200 schedules
on a real Kafka. A seed that fails prints itself with the command that repeats it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

from tests.faults.plan import SIMULATED_KINDS
from tests.faults.replayed.many import replay_many
from tests.faults.simulated.many import simulate_many
from tests.faults.tally import Outcome, Tally

SIMULATED = 20_000
REPLAYED = 20_000
REAL = 200
PROGRESS_SECONDS = 20.0


class RunMany(Protocol):
    """Runs seeds in some processes."""

    def __call__(self, seeds: Sequence[int], *, processes: int) -> Iterator[Outcome]:
        """Run them; outcomes come as they are done."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    asked = _parser().parse_args(arguments)
    kinds = tuple(kind for kind in SIMULATED_KINDS if asked.only in kind)
    if not kinds:
        print(f"no fault is called {asked.only!r}; there are {', '.join(SIMULATED_KINDS)}", file=sys.stderr)
        return 2
    simulated, replayed, real = _counts(asked)
    if (replayed or real) and asked.only:
        print("--only is for simulated schedules alone: say how many with --simulated COUNT", file=sys.stderr)
        return 2
    first_seed = asked.seed or 0
    failed, found = False, dict[str, object]()
    if simulated:
        tally = Tally("simulated", range(first_seed, first_seed + simulated), repeat=f"--simulated 1{_only(asked)}")
        failed = _count(asked, tally, partial(simulate_many, kinds=kinds), found)
    if replayed:
        tally = Tally("replayed", range(first_seed, first_seed + replayed), repeat="--replayed 1")
        failed = _count(asked, tally, replay_many, found) or failed
    if real:
        # By name: simulated runs need neither Kafka nor what real ones import.
        summary = importlib.import_module("tests.faults.real.many").run_many(real, first_seed, tell=_tell)
        seeds = [outcome.seed for outcome in summary.failed]
        found["real"] = {"asked": real, "runs": len(summary.outcomes), "failedSeeds": seeds, "said": summary.lines()}
        failed = failed or summary.has_failed
        if asked.output == "text":
            print("\n".join(summary.lines()))
    if asked.output == "json":
        print(json.dumps(found, indent=2))
    return 1 if failed else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="first seed, else 0; without counts: just this one, simulated")
    parser.add_argument("--simulated", type=int, metavar="COUNT", help="how many simulated schedules")
    parser.add_argument("--replayed", type=int, metavar="COUNT", help="how many random lives to replay")
    parser.add_argument("--real", type=int, metavar="COUNT", help="how many schedules on a real Kafka")
    parser.add_argument(
        "--only", default="", metavar="KIND", help="simulated: only faults with this word in their name"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="for all but a real Kafka")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="form of the summary")
    return parser


def _counts(asked: argparse.Namespace) -> tuple[int, int, int]:
    """Tell how many of each: what was said, else all; one simulated run for a seed without counts."""
    said = asked.simulated, asked.replayed, asked.real
    if said != (None, None, None):
        return asked.simulated or 0, asked.replayed or 0, asked.real or 0
    return (1, 0, 0) if asked.seed is not None else (SIMULATED, REPLAYED, REAL)


def _count(asked: argparse.Namespace, tally: Tally, run_many: RunMany, found: dict[str, object]) -> bool:
    """Run all seeds of a tally, put its summary into `found` and tell it; returns whether one has failed."""
    seeds, told_at = tally.seeds, time.monotonic()
    for outcome in run_many(seeds, processes=min(asked.processes, len(seeds))):
        for line in tally.take(outcome):
            _tell(line)
        if time.monotonic() - told_at > PROGRESS_SECONDS:
            told_at = time.monotonic()
            _tell(f"{tally.runs} of {len(seeds)}, {len(tally.failed)} failed")
    tally.finish()
    found[tally.name] = tally.summary()
    if asked.output == "text":
        print(tally.text())
    return bool(tally.failed)


def _only(asked: argparse.Namespace) -> str:
    return f" --only {asked.only}" if asked.only else ""


if __name__ == "__main__":
    # As Ctrl-C: workers are ended and mounts undone on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
