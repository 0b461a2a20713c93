"""Run the mutations: copy the tree, break one thing, run its tests, and say whether they noticed.

Exit code 0 when every mutation was noticed, else 1. `--only WORD` runs those whose name has the word; `--list` shows
them all. A mutation whose place is not found any more counts as a failure: mend the catalogue. So does a test that
gives no verdict: one that takes too long, or that pytest cannot run. Before anything is broken the tests are run once
as they are, and have to pass.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.mutations.brakes import OF_BRAKES
from tests.mutations.catalogue import MUTATIONS, Mutation
from tests.mutations.costs import OF_COSTS
from tests.mutations.doors import OF_DOORS
from tests.mutations.ends import OF_ENDS
from tests.mutations.feeds import OF_FEEDS
from tests.mutations.fleet import OF_FLEET
from tests.mutations.gone_nodes import OF_GONE_NODES
from tests.mutations.group_and_brokers import OF_GROUP_AND_BROKERS
from tests.mutations.guards import OF_GUARDS
from tests.mutations.handed_over import OF_HANDED_OVER
from tests.mutations.handover import OF_HANDOVER
from tests.mutations.in_flight import OF_IN_FLIGHT
from tests.mutations.matching import NoPlaceError, carry_out
from tests.mutations.outages import OF_OUTAGES
from tests.mutations.outside import FROM_OUTSIDE
from tests.mutations.pod_guards import OF_POD_GUARDS
from tests.mutations.policies import OF_POLICIES
from tests.mutations.previews import OF_PREVIEWS
from tests.mutations.queues import OF_QUEUES
from tests.mutations.recordings import OF_RECORDINGS
from tests.mutations.requests import OF_REQUESTS
from tests.mutations.sharing import OF_SHARING
from tests.mutations.stories import OF_STORIES
from tests.mutations.strangers import OF_STRANGERS
from tests.mutations.torture import BY_TORTURE
from tests.mutations.traits import OF_TRAITS
from tests.mutations.windows import OF_WINDOWS

ALL = (
    *MUTATIONS,
    *OF_COSTS,
    *OF_GROUP_AND_BROKERS,
    *OF_FEEDS,
    *OF_ENDS,
    *OF_SHARING,
    *OF_DOORS,
    *OF_PREVIEWS,
    *OF_RECORDINGS,
    *OF_STORIES,
    *OF_STRANGERS,
    *OF_QUEUES,
    *OF_BRAKES,
    *OF_POLICIES,
    *OF_OUTAGES,
    *OF_IN_FLIGHT,
    *OF_REQUESTS,
    *OF_HANDED_OVER,
    *OF_HANDOVER,
    *OF_FLEET,
    *OF_GUARDS,
    *OF_POD_GUARDS,
    *OF_GONE_NODES,
    *OF_TRAITS,
    *OF_WINDOWS,
    *BY_TORTURE,
    *FROM_OUTSIDE,
)

ROOT = Path(__file__).parents[2]
TEST_TIMEOUT_SECONDS = 400
PASSED, FAILED = 0, 1  # pytest's exit codes; any other (no tests, broken collection) is no verdict
NOTICED, UNNOTICED = "noticed", "UNNOTICED"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", default="", help="a word in the mutation's name")
    parser.add_argument("--list", action="store_true", help="show the mutations and end")
    arguments = parser.parse_args()
    chosen = [mutation for mutation in ALL if arguments.only in mutation.name]
    if arguments.list:
        print("\n".join(mutation.name for mutation in chosen))
        return 0
    if not _pass_unbroken({test for mutation in chosen for test in mutation.tests}):
        return 1
    unnoticed = [mutation.name for mutation in chosen if not _is_noticed(mutation)]
    print(f"{len(chosen) - len(unnoticed)} noticed, {len(unnoticed)} not noticed")
    return 1 if unnoticed or not chosen else 0


def _pass_unbroken(tests: set[str]) -> bool:
    """Run the tests once on the tree as it is: one that fails there would notice anything."""
    with _copied_tree() as tree:
        failing = [test for test in sorted(tests) if _verdict(tree, test) != UNNOTICED]
    for test in failing:
        print(f"fails without any mutation: {test}", flush=True)
    return not failing


@contextlib.contextmanager
def _copied_tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT, symlinks=True)
        yield tree


def _is_noticed(mutation: Mutation) -> bool:
    """Run every test that has to notice; each of them must fail."""
    with _copied_tree() as tree:
        try:
            for change in mutation.changes:
                carry_out(change, tree)
        except NoPlaceError as error:
            print(f"STALE     {mutation.name}: {error}", flush=True)
            return False
        verdicts = []
        for test in mutation.tests:
            started_at = time.monotonic()
            verdicts.append(_verdict(tree, test))
            print(f"{verdicts[-1]:9} {mutation.name}: {test} ({time.monotonic() - started_at:.0f} s)", flush=True)
    return all(verdict == NOTICED for verdict in verdicts)


def _verdict(tree: Path, test: str) -> str:
    """Run one test on a tree, and say what came of it."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "mutations", test]
    # Workers are processes of their own: they too have to import the tree, not the checkout that is installed.
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=TEST_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "no verdict (timed out)"
    known = {FAILED: NOTICED, PASSED: UNNOTICED}
    return known.get(done.returncode, f"no verdict (pytest's exit code {done.returncode})")


if __name__ == "__main__":
    sys.exit(main())
