"""Brakes in a real cluster: `python -m tests.faults.live_brakes` sets 20 of them while pods have to leave.

It is `brakes.py` with a real API server: pods are created on tainted nodes as fast as it takes them, and a thousand are
there before. The second half of the brakes is set with the worker killed just before. Measured is when the API server
had answered the last delete after a brake's append. Exit code 1 if that is over a second (p99), a pod was deleted
twice, or one is left.
"""

from __future__ import annotations

import argparse
import contextlib
import http
import itertools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from evictstream.kit.conformance.brake_rules import write_brake
from tests.e2e.api_client import RefusedError
from tests.e2e.binaries import CONTROL_PLANE
from tests.e2e.objects import pod, pods
from tests.faults.brakes import HELD_SECONDS, STOP_SECONDS
from tests.faults.leaving import share, wait_for
from tests.faults.live import KEY, QUIET_SECONDS, SETTLED_SECONDS, Arena, arena_in
from tests.harness.reading import instant

NODES: Final = tuple(f"brakes-{number}" for number in range(20))
FIRST_PODS: Final = 1_000
CREATORS: Final = 2
MORE_DELETES: Final = 20
SELECTIONS: Final[tuple[dict[str, object], ...]] = ({}, {"taints": [KEY]}, {"namespaces": ["default"]})
"""Each holds all of them."""


class BrakedCluster:
    """One run."""

    def __init__(self, arena: Arena, seed: int) -> None:
        self._arena = arena
        self._draw = Random(seed)
        self._numbers = itertools.count()
        self._is_over = threading.Event()

    def run(self, brakes: int) -> list[float]:
        """Set the brakes; returns for how long pods were deleted after each of them, seconds."""
        self._arena.nodes.add(NODES)
        for _ in range(FIRST_PODS):
            self._create()
        time.sleep(SETTLED_SECONDS)
        for node in NODES:
            self._arena.taint(node, KEY)
        creators = [threading.Thread(target=self._create_many, daemon=True) for _ in range(CREATORS)]
        for creator in creators:
            creator.start()
        stops = [self._try(number, kills=number >= brakes // 2) for number in range(brakes)]
        self._is_over.set()
        for creator in creators:
            creator.join()
        wait_for(lambda: not self._arena.staying("brakes"), "the last deletes", fails=False)
        time.sleep(QUIET_SECONDS)
        return stops

    def names(self) -> Iterator[tuple[str, float]]:
        """Yield the pods that were deleted, and when the API server had answered."""
        for one in self._arena.plane.deletes():
            if one["user"]["username"] == "executor" and one["responseStatus"]["code"] == http.HTTPStatus.OK:
                yield one["objectRef"]["name"], instant(one["stageTimestamp"])

    def _try(self, number: int, *, kills: bool) -> float:
        count = sum(1 for _ in self.names()) + MORE_DELETES
        wait_for(lambda: sum(1 for _ in self.names()) >= count, "deletes after a release")
        time.sleep(self._draw.random())
        if kills:
            self._arena.parts["worker"].kill()
            self._arena.parts["worker"].start()
        name, fields = f"try-{number}", self._draw.choice(SELECTIONS)
        appended_at = write_brake(self._arena.settings, name, "lab", **fields)
        time.sleep(HELD_SECONDS)
        late = [at - appended_at for _, at in self.names() if at > appended_at]
        write_brake(self._arena.settings, name, "lab", **fields, releasedBy="the test")
        return max(late, default=0.0)

    def _create(self) -> None:
        number = next(self._numbers)
        with contextlib.suppress(RefusedError):  # its rate: the next one is as good
            self._arena.plane.client().create(pods(), pod(f"brakes-{number}", NODES[number % len(NODES)]))

    def _create_many(self) -> None:
        while not self._is_over.is_set():
            self._create()


def main() -> int:
    """Run it; exit code 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.live_brakes", description=__doc__)
    parser.add_argument("--brakes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if not CONTROL_PLANE.are_built():
        print("there is no control plane: run `make kubernetes`", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="evictstream-brakes-") as folder, arena_in(Path(folder)) as arena:
        cluster = BrakedCluster(arena, asked.seed)
        stops = cluster.run(asked.brakes)
        times = Counter(name for name, _ in cluster.names())
        left = len(arena.staying("brakes"))
    found = {
        "brakes": len(stops),
        "deletes": times.total(),
        "lastDelete": {name: round(share(stops, part), 3) for name, part in (("p50", 0.5), ("p99", 0.99))},
        "deletedTwice": times.total() - len(times),
        "left": left,
    }
    print(json.dumps(found, indent=2))
    return 1 if share(stops, 0.99) > STOP_SECONDS or found["deletedTwice"] or left else 0


if __name__ == "__main__":
    sys.exit(main())
