"""Brakes on a storm: `python -m tests.faults.brakes` sets 200 of them while 9,000 pods have to leave.

Feed, two workers and an executor are processes as operators run them; two clusters are fake API servers in this one. In
`storm` all pods have to leave, and each one that is deleted is replaced by another, so the storm lasts. In `calm` a pod
has to leave ten times a second. The second half of the brakes is set with a worker killed just before. Then no further
pod comes, and all that are left go.

Measured is when the API server accepts the last delete after a brake's append, by the broker's clock, which is the
machine's; and how late the pods of `calm` are, before the first brake and with brakes in the other cluster, as long as
no worker is killed. Exit code 1 if a promise is broken: p99 of the first over 1 s, p99 of the second later by more than
100 ms, a pod deleted twice, or one that is left.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from evictstream.kit.conformance.brake_rules import write_brake
from tests.faults.leaving import LeavingApi, kubeconfig_of, share, wait_for
from tests.faults.storm_processes import StormProcesses, run_storm, storm_options
from tests.harness.product_process import ProductProcess

STORM, CALM = "storm", "calm"
PODS_PER_NODE = 30
CALM_NODES = 20
CALM_SECONDS = 0.1

STOP_SECONDS = 1.0
LATER_SECONDS = 0.1
"""What is promised of the last delete after a brake, and of the pods of another cluster."""

HELD_SECONDS = 2.0
"""How long each brake stands: what comes after its second is seen."""

BEFORE_SECONDS = 120.0
"""How long the storm lasts before the first brake, to compare with. It gives 1,200 calm pods; with 200, a single
pause would decide their p99."""

SELECTIONS: tuple[dict[str, object], ...] = ({}, {"taints": ["maintenance"]}, {"namespaces": ["shop"]})
"""Each holds all of the storm."""


class Tries(NamedTuple):
    """What was seen.

    Attributes:
        stops: of each brake, seconds from its append to the last delete while it stood; 0 if there was none.
        before: how late the pods of the calm cluster were before the first brake, seconds.
        meanwhile: how late they were from then on, until the first worker was killed.
        twice: pods that were deleted twice.
        left: pods that are left.
        deletes: of the storm.
        kills: of workers.
    """

    stops: list[float]
    before: list[float]
    meanwhile: list[float]
    twice: int
    left: int
    deletes: int
    kills: int

    def problems(self) -> list[str]:
        """Say which promise is broken."""
        later = share(self.meanwhile, 0.99) - share(self.before, 0.99)
        checks = {
            f"the last delete came {share(self.stops, 0.99):.3f} s after its brake (p99)": share(self.stops, 0.99)
            > STOP_SECONDS,
            f"pods of another cluster were later by {later:.3f} s (p99)": later > LATER_SECONDS,
            f"{self.twice} pods were deleted twice": self.twice > 0,
            f"{self.left} pods are left": self.left > 0,
        }
        return [problem for problem, is_so in checks.items() if is_so]

    def figures(self) -> dict[str, object]:
        """Give what people look at; seconds."""
        lists = {"lastDelete": self.stops, "calmBefore": self.before, "calmMeanwhile": self.meanwhile}
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        return {
            "brakes": len(self.stops),
            "deletes": self.deletes,
            "workersKilled": self.kills,
            **{
                name: {of: round(share(found, part), 3) for of, part in shares.items()} for name, found in lists.items()
            },
            "problems": self.problems(),
        }


class BrakedStorm(StormProcesses):
    """One run."""

    def __init__(self, servers: str, folder: Path, *, pods: int, seed: int) -> None:
        super().__init__(servers, folder, seed=seed)
        self._storm = LeavingApi(-(-pods // PODS_PER_NODE))
        self._calm = LeavingApi(CALM_NODES)
        self._pods = pods
        self._is_over = threading.Event()

    def run(self, tries: int) -> Tries:
        with contextlib.ExitStack() as stack:
            for api in (self._storm, self._calm):
                stack.enter_context(api)
            of_clusters = tuple(word for name in (STORM, CALM) for word in ("--cluster", f"{name}={name}"))
            file = self.folder / "kubeconfig"
            file.write_text(kubeconfig_of({STORM: self._storm, CALM: self._calm}))
            where = (*of_clusters, "--kubeconfig", str(file))
            workers = [self.start(stack, f"worker-{number}", "worker") for number in range(2)]
            self.start(stack, "feed", "feed", *where)
            self.start(stack, "executor", "execute", *where, "--mode", "delete", "--events", "none")
            self._storm.lasts = True
            for number in range(self._pods):
                self._storm.put_pod(f"n-{number // PODS_PER_NODE}")
            calm = threading.Thread(target=self._put_calm_pods, daemon=True)
            calm.start()
            wait_for(lambda: bool(self._storm.deleted and self._calm.deleted), "the first deletes")
            began_at = time.time()
            time.sleep(BEFORE_SECONDS)
            braked_at = time.time()
            stops = [self._try(number) for number in range(tries // 2)]
            killed_at = time.time()
            stops += [self._try(number, worker=self.draw.choice(workers)) for number in range(tries // 2, tries)]
            self._storm.lasts = False
            self._is_over.set()
            calm.join()
            wait_for(lambda: not (self._storm.left or self._calm.left), "the last deletes", fails=False)
            late = {one.uid: one.at - self._calm.put_at[one.uid] for one in self._calm.deleted}
            put_at = self._calm.put_at
            return Tries(
                stops=stops,
                before=[late[uid] for uid in late if began_at < put_at[uid] < braked_at],
                meanwhile=[late[uid] for uid in late if braked_at <= put_at[uid] < killed_at],
                twice=self._storm.twice + self._calm.twice,
                left=self._storm.left + self._calm.left,
                deletes=len(self._storm.deleted),
                kills=tries - tries // 2,
            )

    def _try(self, number: int, worker: ProductProcess | None = None) -> float:
        self._wait_for_more_deletes()
        if worker is not None:
            worker.kill_and_start()
        name, selection = f"try-{number}", self.draw.choice(SELECTIONS)
        fields = {**selection, "spreadSeconds": self.draw.choice((0, 3))}
        appended_at = write_brake(self.settings, name, STORM, **fields)
        time.sleep(HELD_SECONDS)
        late = [one.at - appended_at for one in self._storm.deleted[-2_000:] if one.at > appended_at]
        write_brake(self.settings, name, STORM, **fields, releasedBy="the test")
        return max(late, default=0.0)

    def _put_calm_pods(self) -> None:
        for number in itertools.count():
            if self._is_over.wait(CALM_SECONDS):
                return
            self._calm.put_pod(f"n-{number % CALM_NODES}")

    def _wait_for_more_deletes(self) -> None:
        count = len(self._storm.deleted) + 20
        wait_for(lambda: len(self._storm.deleted) >= count, "deletes after a release")
        time.sleep(self.draw.random())


def main() -> int:
    """Run it; exit code 1 if a promise is broken."""
    options = storm_options("brakes", __doc__)
    options.add_argument("--brakes", type=int, default=200)
    asked = options.parse_args()

    def play(servers: str, folder: Path) -> Tries:
        return BrakedStorm(servers, folder, pods=asked.pods, seed=asked.seed).run(asked.brakes)

    return run_storm("brakes", play)


if __name__ == "__main__":
    sys.exit(main())
