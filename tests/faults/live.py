"""Each part is killed, stopped and frozen at its worst moment, in a real cluster: which pods are deleted, and how late.

`python -m tests.faults.live` plays 15 scenes after one another on one control plane, with processes as operators
start them, some ten minutes. In each scene 132 pods of four tainted nodes become due at once; a fifth node loses its
taint before, and a sixth never has one. `--scene executor-freeze` plays one of them.

A part that is killed or stopped is started again at once, and nobody stands by. One that is frozen stays so for 20 s;
another feed, worker or executor stands by then.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import http
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.e2e.binaries import CONTROL_PLANE
from tests.e2e.control_plane import UNTHROTTLED, ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint, tolerates
from tests.e2e.processes import grant
from tests.e2e.server_process import ServerProcess

KEY: Final = "maintenance"
TAINTED_NODES: Final = 4
PODS_PER_NODE: Final = 33
OTHER_PODS: Final = 8
TOLERATED_SECONDS: Final = 10
UNTAINTED_AFTER_SECONDS: Final = 5.0
BEFORE_DUE_SECONDS: Final = 0.3
MANY: Final = 30  # deletes, when a storm is in its midst
FROZEN_SECONDS: Final = 20.0
SETTLED_SECONDS: Final = 8.0  # after the start of a process: it has joined, and reads
PATIENCE_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 3.0  # after the last delete, for one that is too much
WAYS: Final = ("kill", "stop", "freeze")
PARTS: Final = ("feed", "worker", "executor", "apiserver", "kafka")


class Part(Protocol):
    """A process, or the broker."""

    def start(self) -> object: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Verdict(NamedTuple):
    """What a scene has shown: how many pods were deleted too early, wrongly, never, twice; how late the others."""

    early: int
    wrong: int
    lost: int
    repeated: int
    late_seconds: Sequence[float]

    @property
    def is_right(self) -> bool:
        return not (self.early or self.wrong or self.lost or self.repeated)

    def __str__(self) -> str:
        counts = f"{self.early} early, {self.wrong} wrong, {self.lost} lost, {self.repeated} repeated"
        late = sorted(self.late_seconds)
        gaps = [after - before for before, after in itertools.pairwise(late)]
        times = f"late by {statistics.median(late):5.1f} s, at most {late[-1]:5.1f} s; longest pause {max(gaps):5.1f} s"
        return f"{counts}; {times}"


class Arena:
    """The control plane with nodes, and the parts of the product."""

    def __init__(self, plane: ControlPlane, nodes: HollowNodes, broker: EmbeddedBroker, folder: Path) -> None:
        self.plane = plane
        self.nodes = nodes
        self._folder = folder
        self.settings = Settings(bootstrap_servers=broker.bootstrap_servers, partitions=1)
        declare_topics(self.settings)
        self._given = ("-b", broker.bootstrap_servers, "--set", "partitions=1", "--set", "health_port=0")
        self.parts: Mapping[str, Part] = {
            **{name: self.process(name) for name in ("feed", "worker", "executor")},
            "apiserver": plane.apiserver,
            "kafka": broker,
        }

    def process(self, name: str, number: int = 0) -> ServerProcess:
        """Describe a process of the product; several of a name stand by for one another."""
        folder = self._folder / f"{name}-{number}"
        folder.mkdir()
        cluster = ("--cluster", f"lab={name}", "--kubeconfig", str(self.plane.kubeconfig))
        command = {
            "feed": ("feed", *cluster),
            "worker": ("worker",),
            "executor": ("execute", *cluster, "--mode", "delete"),
        }
        arguments = ["-m", "evictstream.streams.cli.main", *self._given, *command[name]]
        return ServerProcess(Path(sys.executable), arguments, folder=folder)

    def fill(self, scene: str) -> tuple[list[str], str]:
        """Create a scene's nodes with their pods; returns those to be tainted, and the one that is saved."""
        client = self.plane.client()
        tainted = [f"{scene}-{number}" for number in range(TAINTED_NODES)]
        saved, calm = f"{scene}-saved", f"{scene}-calm"
        self.nodes.add([*tainted, saved, calm])
        for name, count in {**dict.fromkeys(tainted, PODS_PER_NODE), saved: OTHER_PODS, calm: OTHER_PODS}.items():
            for number in range(count):
                tolerations = [tolerates(KEY, TOLERATED_SECONDS)]
                client.create(pods(), pod(f"{name}-{number}", name, tolerations=tolerations))
        return tainted, saved

    def taint(self, node: str, *keys: str) -> float:
        """Taint a node; returns the second before."""
        before = time.time()
        self.plane.client().patch(f"{NODES}/{node}", {"spec": {"taints": [taint(key) for key in keys] or None}})
        return before

    def deletes(self, scene: str) -> list[tuple[str, float]]:
        """List the scene's pods that the executor has deleted, and when the API server got the request."""
        return [
            (one["objectRef"]["name"], dt.datetime.fromisoformat(one["requestReceivedTimestamp"]).timestamp())
            for one in self.plane.deletes()
            if one["user"]["username"] == "executor"
            and one["responseStatus"]["code"] == http.HTTPStatus.OK
            and one["objectRef"]["name"].startswith(f"{scene}-")
        ]

    def staying(self, scene: str) -> set[str]:
        """Names of the scene's pods that do not terminate."""
        found = self.plane.client().items(pods())
        names = {one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"]}
        return {name for name in names if name.startswith(f"{scene}-")}


def play(arena: Arena, part: str, way: str) -> Verdict:
    """Play one scene."""
    scene = f"{part}-{way}"
    tainted, saved = arena.fill(scene)
    with contextlib.ExitStack() as stack:
        if way == "freeze" and part in {"feed", "worker", "executor"}:
            other = arena.process(part, number=1)
            other.start()
            stack.callback(other.stop)
        time.sleep(SETTLED_SECONDS)
        due_at = {node: arena.taint(node, KEY) + TOLERATED_SECONDS for node in tainted}
        arena.taint(saved, KEY)
        happening = threading.Thread(target=happen, args=(arena.parts[part], way, lambda: None))
        if part == "feed":  # at once, and what else has to happen waits for no end of it
            happening.start()
            stack.callback(happening.join)
        first_due_at = min(due_at.values())
        time.sleep(max(0.0, first_due_at - UNTAINTED_AFTER_SECONDS - time.time()))
        arena.taint(saved)
        if part in {"worker", "kafka"}:
            time.sleep(max(0.0, first_due_at - BEFORE_DUE_SECONDS - time.time()))
            happen(arena.parts[part], way, lambda: None)
        elif part != "feed":
            happen(arena.parts[part], way, lambda: until(lambda: len(arena.deletes(scene)) >= MANY))
        if part == "apiserver":
            until(arena.plane.is_ready)
        wanted = {f"{node}-{number}" for node in tainted for number in range(PODS_PER_NODE)}
        until(lambda: not arena.staying(scene) & wanted)
        time.sleep(QUIET_SECONDS)
        return judged(arena, scene, wanted, due_at)


def happen(part: Part, way: str, moment: Callable[[], None]) -> None:
    """Let it happen to a part at a moment."""
    moment()
    if way == "freeze":
        part.pause()
        time.sleep(FROZEN_SECONDS)
        part.resume()
    else:
        (part.kill if way == "kill" else part.stop)()
        part.start()


def judged(arena: Arena, scene: str, wanted: set[str], due_at: Mapping[str, float]) -> Verdict:
    """Compare the audit log and the cluster with what had to happen."""
    deletes = arena.deletes(scene)
    names = Counter(name for name, _ in deletes)
    staying = arena.staying(scene)
    late = [at - due_at[name.rsplit("-", 1)[0]] for name, at in deletes if name in wanted]
    return Verdict(
        early=sum(seconds < 0 for seconds in late),
        wrong=2 * OTHER_PODS - len(staying - wanted),
        lost=len(staying & wanted),
        repeated=sum(count - 1 for count in names.values()),
        late_seconds=late,
    )


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds, for a while; what does not hold by then is judged."""
    end_at = time.monotonic() + PATIENCE_SECONDS
    while not condition() and time.monotonic() < end_at:
        time.sleep(0.1)


@contextlib.contextmanager
def arena_in(folder: Path) -> Iterator[Arena]:
    """Start everything, each part once."""
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(data=folder / "kafka"))
        flags = [*UNTHROTTLED, "--controllers=-node-lifecycle-controller"]
        plane = stack.enter_context(
            ControlPlane(
                folder / "plane", taint_eviction=False, users=["feed", "executor"], controller_manager_flags=flags
            )
        )
        grant(plane.client(), "feed.yaml", "feed")
        grant(plane.client(), "executor-delete.yaml", "executor")
        nodes = stack.enter_context(HollowNodes(plane.client()))
        arena = Arena(plane, nodes, broker, folder)
        for name in ("feed", "worker", "executor"):
            arena.parts[name].start()
            stack.callback(arena.parts[name].stop)
        yield arena


def main() -> int:
    """Play the scenes; exit code 1 if one of them is wrong."""
    scenes = [(part, way) for part in PARTS for way in WAYS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", action="append", choices=[f"{part}-{way}" for part, way in scenes])
    asked = parser.parse_args().scene
    if not CONTROL_PLANE.are_built():
        print("there is no control plane: run `make kubernetes`", file=sys.stderr)
        return 2
    is_right = True
    with tempfile.TemporaryDirectory(prefix="evictstream-live-") as folder, arena_in(Path(folder)) as arena:
        for part, way in scenes:
            if not asked or f"{part}-{way}" in asked:
                verdict = play(arena, part, way)
                print(f"{part:9} {way:6}  {verdict}", flush=True)
                is_right &= verdict.is_right
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
