"""A storm under a rate: `python -m tests.faults.paced` lets 9,000 pods leave, 100 a second, while processes are killed.

Feed, two workers and an executor are processes as operators run them; the cluster is a fake API server in this one. Its
nodes are tainted one after the other, and pods tolerate that for ten seconds. Meanwhile workers and executors are
killed twenty times, and a second policy is applied, changed and deleted fifty times; for moments it holds one of the
namespaces.

Exit code 1 if a promise of docs/policies.md#limit is broken. Between two instants no more is issued than the rate and
its burst allow. The last one is issued when the rate says, but for the time in which a partition has no owner. An
eviction waits for those alone that became due before it, in whatever namespace. Each pod goes once, and at the deadline
that it had before.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml  # type: ignore[import-untyped]

from tests.faults.leaving import TAINTED, LeavingApi, kubeconfig_of, share, wait_for
from tests.faults.storm_processes import StormProcesses, run_storm, storm_options
from tests.harness.reading import Seen, TopicReader, instant
from tests.streams.cli.running import run

CLUSTER: Final = "storm"
PODS_PER_NODE: Final = 30
NAMESPACES: Final = ("big", "big", "big", "big", "small", "other", "held")
"""Those of every seven pods: one has most of them."""
HELD: Final = "held"

RATE, BURST = 100, 600
"""The burst is what six seconds give: more than a takeover takes, so that an owner that begins with all of it shows."""
TOLERATED_SECONDS: Final = 10
TAINTED_EACH_SECONDS: Final = 0.1

KILLS, CHANGES = 20, 50
PAUSE_SECONDS: Final = 0.5
"""So long nothing is issued only while the partition has no owner, or while its owner starts."""
SLACK_SECONDS: Final = 2.0
FACTOR: Final = 1.05
"""What may come on top of arithmetic: of waits, and of the whole."""

PACE: Final[dict[str, Any]] = {"name": "pace", "why": "test", "limit": {"rate": f"{RATE}/s", "burst": BURST}}
CLAUSES: Final[tuple[dict[str, Any], ...]] = (
    {"observe": True, "for": {"namespaces": [HELD]}},
    {"settle": "1s", "for": {"namespaces": [HELD]}},
    {"limit": {"rate": "20/s", "burst": 5}, "for": {"namespaces": [HELD]}},
)


class Issued(NamedTuple):
    """An `Evict`."""

    at: float
    uid: str
    deadline: float
    is_first: bool


class Run(NamedTuple):
    """What was seen.

    Attributes:
        issued: all `Evict`s, in order.
        deadlines: of each pod, by UID, as scheduled.
        held: UIDs of the namespace that the second policy holds.
        twice: pods that were deleted twice.
        left: pods that are left.
        kills: of workers and executors.
        changes: of the second policy.
    """

    issued: Sequence[Issued]
    deadlines: dict[str, float]
    held: set[str]
    twice: int
    left: int
    kills: int
    changes: int

    def pauses(self) -> Iterator[tuple[float, float]]:
        """Yield when nothing was issued for a while, with how long."""
        for before, after in itertools.pairwise(one.at for one in self.issued):
            if after - before > PAUSE_SECONDS:
                yield before, after - before

    def excess(self) -> float:
        """Return by how much the rate was exceeded in the worst span, in evictions; negative for not at all.

        With x = number - rate * instant, a span exceeds it by the difference of its ends; the worst one ends at each
        eviction and began where x was least.
        """
        worst, least = float("-inf"), float("inf")
        for number, one in enumerate(self.issued):
            least = min(least, number - RATE * one.at)
            worst = max(worst, number + 1 - RATE * one.at - least - BURST)
        return worst

    def waits(self) -> Iterator[tuple[float, float]]:
        """Yield how long each first eviction waited, and how long it may: those due before it, and pauses meanwhile."""
        due = sorted(self.deadlines.values())
        pauses = list(self.pauses())
        began_at = self.issued[0].at
        repeats = [one.at for one in self.issued if not one.is_first]
        for one in self.issued:
            if one.is_first and one.uid not in self.held:
                paused = sum(seconds for at, seconds in pauses if at < one.at)
                before = bisect.bisect_right(due, one.deadline) + bisect.bisect_left(repeats, one.at)
                may_end_at = max(began_at + before / RATE, one.deadline) + paused
                yield one.at - one.deadline, may_end_at - one.deadline

    def seconds(self) -> tuple[float, float]:
        """Return how long it took but for pauses, and how long it takes by the rate."""
        paused = sum(seconds for _, seconds in self.pauses())
        return self.issued[-1].at - self.issued[0].at - paused, len(self.issued) / RATE

    def problems(self) -> list[str]:
        """Say which promise is broken."""
        first = Counter((one.uid, one.deadline) for one in self.issued if one.is_first)
        took, by_rate = self.seconds()
        too_long = sum(waited > may + SLACK_SECONDS for waited, may in self.waits())
        checks = {
            f"the rate was exceeded by {self.excess():.2f} evictions": self.excess() > 1e-6 * RATE,
            f"it took {took:.1f} s where the rate says {by_rate:.1f}": took > by_rate * FACTOR + SLACK_SECONDS,
            f"{too_long} waited for longer than for those before them": too_long > 0,
            "deadlines have moved, or a pod was evicted twice or never": first != Counter(self.deadlines.items()),
            f"{self.twice} pods were deleted twice": self.twice > 0,
            f"{self.left} pods are left": self.left > 0,
        }
        return [problem for problem, is_so in checks.items() if is_so]

    def figures(self) -> dict[str, object]:
        """Give what people look at; seconds."""
        took, by_rate = self.seconds()
        later = [waited - may for waited, may in self.waits()]
        pauses = [seconds for _, seconds in self.pauses()]
        return {
            "pods": len(self.deadlines),
            "issued": len(self.issued),
            "kills": self.kills,
            "changes": self.changes,
            "worstSpanMinusAllowed": round(self.excess(), 2),
            "tookWithoutPauses": round(took, 1),
            "byTheRate": round(by_rate, 1),
            "pauses": {"count": len(pauses), "sum": round(sum(pauses), 1), "max": round(max(pauses, default=0.0), 1)},
            "laterThanThoseBefore": {"p50": round(share(later, 0.5), 2), "max": round(max(later), 2)},
            "problems": self.problems(),
        }


class Meddler(threading.Thread):
    """Applies, changes and deletes a second policy, over and over; in the end it is deleted.

    Attributes:
        changed: how often it has.
    """

    def __init__(self, changes: int, apply: Callable[[dict[str, Any]], None], delete: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self.changed = 0
        self._changes = changes
        self._apply_policy = apply
        self._delete_policy = delete
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Change it, until that fails."""
        try:
            for number in range(self._changes):
                if number % 3 == 2:
                    self._delete_policy("meddler")
                else:
                    clause = CLAUSES[(number + number // 3) % len(CLAUSES)]
                    self._apply_policy({"name": "meddler", "why": "test", "spread": "0s", **clause})
                self.changed += 1
            if self._changes % 3:
                self._delete_policy("meddler")
        except BaseException as error:  # noqa: BLE001 - raised again below
            self._failure = error

    def finish(self) -> int:
        """Wait for the end; returns how often the policy was changed, or raises why no further time."""
        self.join()
        if self._failure is not None:
            raise self._failure
        return self.changed


class PacedStorm(StormProcesses):
    """One run."""

    def __init__(self, servers: str, folder: Path, *, pods: int, seed: int) -> None:
        super().__init__(servers, folder, seed=seed, partitions=1)
        self._nodes = -(-pods // PODS_PER_NODE)
        self._api = LeavingApi(self._nodes, spec={})
        self._reader = TopicReader(self.settings, self.settings.commands_topic)
        self._pods = pods
        self._evicts = 0

    def run(self, kills: int, changes: int) -> Run:
        with contextlib.ExitStack() as stack:
            stack.callback(self._reader.close)
            stack.enter_context(self._api)
            for number in range(self._pods):
                namespace = NAMESPACES[number % len(NAMESPACES)]
                tolerations = [{"operator": "Exists", "tolerationSeconds": TOLERATED_SECONDS}]
                self._api.put_pod(
                    f"n-{number // PODS_PER_NODE}", metadata={"namespace": namespace}, tolerations=tolerations
                )
            file = self.folder / "kubeconfig"
            file.write_text(kubeconfig_of({CLUSTER: self._api}))
            where = ("--cluster", f"{CLUSTER}={CLUSTER}", "--kubeconfig", str(file))
            self._apply(PACE)
            workers = [self.start(stack, f"worker-{number}", "worker") for number in range(2)]
            self.start(stack, "feed", "feed", *where)
            executor = self.start(stack, "executor", "execute", *where, "--mode", "delete", "--events", "none")
            storm = threading.Thread(target=self._taint, daemon=True)
            storm.start()
            meddler = Meddler(changes, self._apply, self._delete)
            wait_for(lambda: self._seen() > 0, "the first eviction")
            meddler.start()
            for number in range(kills):
                wait_for(lambda: self._seen() > self._pods * (number + 1) // (kills + 2), "more evictions")  # noqa: B023
                (executor if number % 2 else self.draw.choice(workers)).kill_and_start()
            storm.join()
            changed = meddler.finish()
            wait_for(lambda: not self._api.left and bool(self._seen()), "the last deletes", fails=False)
            self._reader.to_end()
        seen = self._reader.seen
        return Run(
            issued=sorted(_issued(seen)),
            deadlines={
                one.value["podUid"]: instant(one.value["deadline"]) for one in seen if one.value["action"] == "Schedule"
            },
            held={one.value["podUid"] for one in seen if one.value["namespace"] == HELD},
            twice=self._api.twice,
            left=self._api.left,
            kills=kills,
            changes=changed,
        )

    def _seen(self) -> int:
        return sum(one.value["action"] == "Evict" for one in self._reader.poll())

    def _taint(self) -> None:
        for number in range(self._nodes):
            self._api.put("Node", f"n-{number}", spec=TAINTED)
            time.sleep(TAINTED_EACH_SECONDS)

    def _delete(self, name: str) -> None:
        self._command("policy", "delete", name, "--why", "test")

    def _apply(self, policy: dict[str, Any]) -> None:
        file = self.folder / f"{policy['name']}.yaml"
        file.write_text(yaml.safe_dump(policy))
        self._command("policy", "apply", str(file))

    def _command(self, *arguments: str) -> None:
        result = run(self.settings, *arguments)
        if result.returncode:
            raise RuntimeError(result.stderr.decode())


def _issued(seen: Sequence[Seen]) -> Iterator[Issued]:
    for one in seen:
        if one.value["action"] == "Evict":
            at, deadline = instant(one.value["issuedAt"]), instant(one.value["deadline"])
            yield Issued(at, one.value["podUid"], deadline, one.value["attempt"] == 1)


def main() -> int:
    """Run it; exit code 1 if a promise is broken."""
    options = storm_options("paced", __doc__)
    options.add_argument("--kills", type=int, default=KILLS)
    options.add_argument("--changes", type=int, default=CHANGES)
    asked = options.parse_args()

    def play(servers: str, folder: Path) -> Run:
        return PacedStorm(servers, folder, pods=asked.pods, seed=asked.seed).run(asked.kills, asked.changes)

    return run_storm("paced", play)


if __name__ == "__main__":
    sys.exit(main())
