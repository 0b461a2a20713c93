"""300 pods, before and behind the policy, through a bad quarter of a minute: each is evicted by its one owner.

Nodes are tainted, one is untainted and one dies; pods are edited and made again; worker, executor and controller
manager are killed or restarted meanwhile. The same is played with the built-in evictor off, for comparison.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from evictstream.streams.broker.locate import Broker
from tests.e2e.handover.beside import BUILT_IN, OURS, Beside, beside_built_in
from tests.e2e.objects import NODES, pod, pods
from tests.e2e.processes import PATIENCE_SECONDS, wait_until
from tests.harness.reading import TopicReader, commands

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.usefixtures("built_binaries")]

MORE: Final = 600
"""Longer than all of it, so that the built-in controller has no reason to evict what was moved."""

PODS_PER_NODE: Final = 30
KINDS: Final = 10
TAINTED: Final = tuple(f"m-{number}" for number in range(7))
UNTAINTED: Final = "m-7"
DEAD: Final = "m-8"
CALM: Final = "m-9"
DEFAULT_SECONDS: Final = 5
SOONEST: Final = 8
"""Seconds that each timed pod tolerates at least: what happens meanwhile happens in its window."""

SEEN_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 3.0
LATE_SECONDS: Final = 10.0
"""On a busy machine, over the restarts of worker and executor."""


class Expected(NamedTuple):
    """Who evicts a pod, and from which instant on."""

    by: str
    due_at: float


class Scene:
    """The pods, and what has to become of them."""

    def __init__(self, beside: Beside, *, built_in: bool) -> None:
        self._beside = beside
        self._others = BUILT_IN if built_in else OURS
        self.owners: dict[str, str] = {}
        self.seconds: dict[str, int] = {}
        self.tainted_at: dict[str, float] = {}

    def fill(self, *, behind: bool) -> None:
        """Create the pods that come before the policy, or those behind it: six kinds of ten are timed."""
        for node in (*TAINTED, UNTAINTED, DEAD, CALM):
            for number in range(PODS_PER_NODE):
                kind = number % KINDS
                if (kind >= 4) == behind:
                    self._create(f"{node}-{number}", node, kind, behind=behind)

    def _create(self, name: str, node: str, kind: int, *, behind: bool) -> None:
        if node == UNTAINTED and kind in (0, 9):
            kind = 1  # the built-in controller is restarted in the midst of evicting, and forgets what is untainted
        if kind in (0, 9):  # no toleration of its own: for dead nodes Kubernetes adds some
            self._beside.fleet.client.create(pods(), pod(name, node))
        elif kind in (1, 8):
            self._beside.fill(node, {name: None})
        else:
            self.seconds[name] = SOONEST + sum(map(ord, name)) % 9
            self._beside.fill(node, {name: self.seconds[name]})
        if node in TAINTED and kind in (0, 9):
            self.owners[name] = self._others
            self.seconds[name] = 0
        elif node == DEAD or (node in TAINTED and kind not in (1, 8)):
            self.owners[name] = OURS if behind else self._others

    def expected(self, died_at: float, made_at: dict[str, float]) -> dict[str, Expected]:
        """Say who has to evict whom, and when."""
        found = {}
        for name, owner in self.owners.items():
            node = name.rpartition("-")[0]
            if node == DEAD:
                found[name] = Expected(owner, died_at + DEFAULT_SECONDS)
            else:
                began_at = max(self.tainted_at[node], made_at.get(name, 0.0))
                found[name] = Expected(owner, began_at + self.seconds[name])
        return found


@pytest.mark.parametrize("built_in", [True, False], ids=["built-in on", "built-in off"])
def test_each_pod_leaves_by_its_owner_in_time(kafka: Broker, tmp_path: Path, *, built_in: bool) -> None:
    with beside_built_in(kafka, tmp_path, built_in=built_in) as beside, contextlib.ExitStack() as stack:
        evicted = TopicReader(beside.settings, beside.settings.commands_topic)
        beside.nodes(*TAINTED, UNTAINTED, DEAD, CALM)
        scene = Scene(beside, built_in=built_in)
        scene.fill(behind=False)
        beside.admission.use(MORE)
        scene.fill(behind=True)
        everything = beside.fleet.alive()
        assert len(everything) == KINDS * PODS_PER_NODE
        time.sleep(SEEN_SECONDS)

        died = stack.enter_context(ThreadPoolExecutor(1)).submit(tainted_first_at, beside, DEAD)
        beside.fleet.nodes.silence([DEAD])
        for node in (*TAINTED, UNTAINTED):
            scene.tainted_at[node] = beside.taint(node)
        made_at = change_pods(beside, scene)
        for happens in (
            lambda: beside.untaint(UNTAINTED),
            beside.fleet.worker.kill_and_start,
            beside.fleet.executor.kill_and_start,
            beside.fleet.plane.controller_manager.stop,
            beside.fleet.plane.controller_manager.start,
        ):
            _after_a_second(happens)
        with contextlib.suppress(AssertionError):  # the next one says which pods it is
            wait_until(lambda: beside.fleet.alive() == everything - scene.owners.keys())
        time.sleep(QUIET_SECONDS)
        assert beside.fleet.alive() == everything - scene.owners.keys()

        expected = scene.expected(died.result(), made_at)
        deletes = beside.deletes()
        assert {name: {each.by for each in deletes[name]} for name in expected} == {
            name: {wanted.by} for name, wanted in expected.items()
        }
        assert deletes.keys() == expected.keys()
        ours = {name: wanted for name, wanted in expected.items() if wanted.by == OURS}
        late = sorted(deletes[name][0].at - wanted.due_at for name, wanted in ours.items())
        figures = f"{len(ours)} of ours, late by {statistics.median(late):.2f} s, at most {late[-1]:.2f} s"
        assert late[0] >= 0, figures
        assert late[-1] <= LATE_SECONDS, figures
        assert commands(evicted.to_end(), "Evict").keys() == ours.keys()
        evicted.close()


def tainted_first_at(beside: Beside, node: str) -> float:
    """Wait for the taint of a dead node. A restarted controller manager taints it once more, which begins no window."""

    def times() -> list[str]:
        taints = beside.fleet.client.get(f"{NODES}/{node}")["spec"].get("taints", ())
        return [each["timeAdded"] for each in taints if each["effect"] == "NoExecute"]

    until = time.monotonic() + PATIENCE_SECONDS
    while not (found := times()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return dt.datetime.fromisoformat(found[0]).timestamp()


def change_pods(beside: Beside, scene: Scene) -> dict[str, float]:
    """Edit pods in their windows, and make others again; returns when these came."""
    made_at = {}
    for number in range(PODS_PER_NODE):
        if number % KINDS != 4:
            continue
        longer, shorter, for_ever, again = (f"m-{node}-{number}" for node in range(4))
        beside.edit(longer, scene.seconds[longer] + 6)
        scene.seconds[longer] += 6
        beside.edit(shorter, 6)
        scene.seconds[shorter] = 6
        beside.edit(for_ever, None)
        del scene.owners[for_ever]
        made_at[again] = beside.make_again(again, again.rpartition("-")[0], scene.seconds[again])
    return made_at


def _after_a_second(happens: Callable[[], object]) -> None:
    time.sleep(1.0)
    happens()
