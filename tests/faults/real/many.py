"""Many schedules, several at once: each arena has its lanes, each lane takes the next seed of its kind."""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from evictstream.kit.oracle import Violation
from tests.faults.real.arena import Arena, ArenaKind
from tests.faults.real.crew import NotReadyError
from tests.faults.real.schedule import arena_of, run_schedule
from tests.faults.real.summary import Summary
from tests.faults.real.verdict import Outcome
from tests.faults.real.wire import WireLoop
from tests.faults.tally import repeat_command

LANES: dict[ArenaKind, tuple[int, int]] = {
    # How many arenas of a kind, and how many schedules at once on each: a broker's faults hit all who are on it.
    ArenaKind.SHARED: (1, 2),
    ArenaKind.OWN: (1, 1),
    ArenaKind.CLUSTER: (1, 1),
}

MOST_REPEATS = 2
"""So often a schedule is begun again whose broker destroyed itself."""

WITHOUT_COORDINATOR = frozenset(
    {
        *("not announced", "not issued", "not repeated", "not cancelled", "no dead letter"),
        *("state: positions", "unreadable", "not ready", "unclean stop"),
    }
)
"""Rules that say that something has not happened: all that workers can be guilty of which no group takes in."""

Tell = Callable[[str], None]


def run_many(count: int, first_seed: int, *, tell: Tell = print) -> Summary:
    """Run seeds `first_seed` and following. Returns when all are done; failed ones have kept their folders.

    Args:
        count: how many.
        first_seed: the first.
        tell: takes a line for people after each schedule.
    """
    started_at = time.monotonic()
    summary = Summary(asked=count)
    folder = Path(tempfile.mkdtemp(prefix="evictstream-faults-"))
    brokers = folder / "brokers"
    waiting: dict[ArenaKind, queue.SimpleQueue[int]] = {kind: queue.SimpleQueue() for kind in ArenaKind}
    for seed in range(first_seed, first_seed + count):
        waiting[arena_of(seed)].put(seed)
    with ExitStack() as stack:
        wires = stack.enter_context(WireLoop())
        threads: list[threading.Thread] = []
        for kind, seeds in waiting.items():
            arenas, width = LANES[kind]
            for number in range(min(arenas, seeds.qsize())):
                arena = stack.enter_context(Arena(kind, wires, brokers / f"{kind.value}-{number}", width))
                if arena.disk is not None and not arena.disk.is_small:
                    summary.left_out.append("disk full: mounting a small file system needs root")
                for lane in range(width):
                    work = _Lane(arena, lane, seeds, folder, summary, count, tell)
                    threads.append(threading.Thread(target=work.run, name=f"{kind.value}-{number}-{lane}"))
        _work(threads, waiting, tell)
    shutil.rmtree(brokers if summary.has_failed else folder, ignore_errors=True)
    summary.seconds = time.monotonic() - started_at
    return summary


def _work(threads: list[threading.Thread], waiting: dict[ArenaKind, queue.SimpleQueue[int]], tell: Tell) -> None:
    """Let all lanes work to the end; an interrupt leaves out what has not begun."""
    for thread in threads:
        thread.start()
    try:
        _join(threads)
    except KeyboardInterrupt:
        tell("ending after the schedules that are running; once more to leave everything as it is")
        for seeds in waiting.values():
            while not seeds.empty():
                seeds.get()
        _join(threads)


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


class _Lane:
    def __init__(
        self,
        arena: Arena,
        lane: int,
        seeds: queue.SimpleQueue[int],
        folder: Path,
        summary: Summary,
        count: int,
        tell: Tell,
    ) -> None:
        self._arena, self._lane, self._seeds, self._folder = arena, lane, seeds, folder
        self._summary, self._count, self._tell = summary, count, tell
        self._repeats: Counter[int] = Counter()
        self._is_arena_usable = True

    def run(self) -> None:
        """Take seeds until there are none."""
        while True:
            try:
                seed = self._seeds.get_nowait()
            except queue.Empty:
                return
            folder = self._folder / f"seed-{seed}"
            outcome = self._run(seed, folder)
            lost = self._renew_if_lost(outcome)
            if lost is not None and _is_explained(outcome) and self._repeats[seed] < MOST_REPEATS:
                self._begin_again(seed, lost, folder)
                continue
            self._summary.outcomes.append(outcome)
            self._report(outcome)

    def _run(self, seed: int, folder: Path) -> Outcome:
        try:
            if not self._is_arena_usable:
                self._renew()
            return run_schedule(seed, self._arena, self._lane, folder)
        except NotReadyError as error:
            violation = Violation("not ready", str(error))
            return Outcome(seed, self._arena.kind, [violation], folder=folder)
        except Exception as error:  # noqa: BLE001 - one broken run must not end the others; it counts as failed
            return Outcome(seed, self._arena.kind, [_broke(error)], folder=folder)

    def _renew_if_lost(self, outcome: Outcome) -> str | None:
        """Renew a broker that destroyed itself; returns what of it. If that fails, the outcome has a violation more."""
        if self._arena.kind is not ArenaKind.OWN:
            return None
        try:
            lost = self._arena.lost_coordinator
            if lost is not None:
                self._renew()
        except Exception as error:  # noqa: BLE001 - the next seed tries again
            outcome.violations.append(_broke(error))
            return None
        return lost

    def _renew(self) -> None:
        self._is_arena_usable = False
        self._arena.renew()
        self._is_arena_usable = True

    def _begin_again(self, seed: int, lost: str, folder: Path) -> None:
        """What a broker without coordinator lets nobody do is no violation, and no pass either."""
        self._repeats[seed] += 1
        self._summary.begun_again.append(f"seed {seed}, the full disk made Kafka destroy its {lost}")
        self._tell(f"    begun again: {self._summary.begun_again[-1]}")
        shutil.rmtree(folder, ignore_errors=True)
        self._seeds.put(seed)

    def _report(self, outcome: Outcome) -> None:
        verdict = "ok" if not outcome.violations else f"{len(outcome.violations)} VIOLATIONS"
        kinds = ", ".join(text.split()[1] for text in outcome.faults) or "no fault"
        done = len(self._summary.outcomes)
        self._tell(
            f"[{done}/{self._count}] seed {outcome.seed} {outcome.arena.value} {outcome.seconds:.0f} s: {verdict};"
            f" {outcome.evicts} evictions, {outcome.steering['incidents']} incidents; {kinds}"
        )
        for violation in outcome.violations[:5]:
            self._tell(f"    {violation}")
        if outcome.violations:
            self._tell(f"    repeat with: {repeat_command('--real 1', outcome.seed)}; kept in {outcome.folder}")
        elif outcome.folder is not None:
            shutil.rmtree(outcome.folder, ignore_errors=True)


def _is_explained(outcome: Outcome) -> bool:
    """Whether there are violations, and the lack of a coordinator explains all of them."""
    rules = {violation.rule for violation in outcome.violations}
    return bool(rules) and rules <= WITHOUT_COORDINATOR


def _broke(error: Exception) -> Violation:
    return Violation("run broke", f"{error!r}\n{traceback.format_exc()}")
