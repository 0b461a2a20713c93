"""Search the model of one partition with Spin, with all guards and without each of them.

Exit code 0 when all searches came out as they must: with the guards every promise holds in every order, without one a
trace is found. `--only WORD` runs those whose name has the word, `--quick` leaves out those that take more than a
minute, `--trace` shows the traces.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.specs.searches import SEARCHES, Search
from tests.specs.spin import Found, missing_tools, run

AT_ONCE = 2  # the two largest take 2 and 4 GB


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.specs", description=__doc__)
    parser.add_argument("--only", default="", help="a word in the search's name")
    parser.add_argument("--quick", action="store_true", help="leave out the long ones")
    parser.add_argument("--trace", action="store_true", help="show the traces")
    arguments = parser.parse_args()
    if missing := missing_tools():
        print(missing)
        return 1
    chosen = [each for each in SEARCHES if arguments.only in each.name and not (arguments.quick and each.is_long)]
    began_at = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = sum(not came_out for came_out in pool.map(lambda each: _report(each, show=arguments.trace), chosen))
    print(f"{len(chosen)} searches in {time.monotonic() - began_at:.0f} s, {wrong} of them not as they must come out")
    return 1 if wrong or not chosen else 0


def _report(search: Search, *, show: bool) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        found = run(search, Path(folder))
    came_out = comes_out(search, found)
    verdict = (found.broken or "holds") if found.is_finished else "not finished"
    figures = f"{found.states:>11,} states {found.seconds:>6.1f} s"
    lines = [f"{'ok   ' if came_out else 'WRONG'} {verdict:<21} {figures}  {search.name}"]
    if found.trace and (show or not came_out):
        lines += [f"        {line}" for line in found.trace]
    print("\n".join(lines), flush=True)
    return came_out


def comes_out(search: Search, found: Found) -> bool:
    """Whether a search found what it had to find: that all holds, or a breach of the promise that has to break."""
    return found.is_finished and found.broken == search.breaks


if __name__ == "__main__":
    sys.exit(main())
