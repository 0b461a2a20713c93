"""A storm at a real API server: evictstream and Kubernetes' own taint eviction controller, in turns on the same cores.

One control plane with 1,000 nodes of 30 pods that tolerate the taint for a while. In each turn one of the two runs,
evicts a pod on a node by itself, and then 100 nodes are tainted. What counts begins with the first pod that is due and
ends with the last delete. evictstream is feed, worker, executor and Kafka as they start by default; the controller has
a limit of 1,000 requests a second. Kubelets are played by this process, which runs pods and removes what terminates.
They renew no leases, so the node lifecycle controller is off.

Needs what `make kubernetes` builds.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import http
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from tests.bench.figures import Bound, Compared, Figure, Goal, WrongResultError, require
from tests.bench.lab import Lab, say
from tests.bench.scale.processes import MeasuredProcess, cpu_seconds, running, until
from tests.e2e.binaries import CONTROL_PLANE
from tests.e2e.control_plane import UNTHROTTLED, ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint, tolerates
from tests.e2e.processes import grant
from tests.e2e.server_process import ServerProcess

PODS_PER_NODE: Final = 30
NODES_THERE: Final = 1_000
TAINTED_NODES: Final = 100  # in each turn: 3,000 pods
ROUNDS: Final = 3
QUICK_SHARE: Final = 10
QUICK_ROUNDS: Final = 1
TOLERATED_SECONDS: Final = 20  # longer than it takes to taint all nodes and to read of it
CALLS_AT_ONCE: Final = 4
NO_BEAT_SECONDS: Final = 86_400.0
READY_SECONDS: Final = 300.0
STORM_SECONDS: Final = 600.0
QUIET_SECONDS: Final = 5.0  # after the last delete, for one that is too much
KEY: Final = "maintenance"
OURS, THEIRS = "evictstream", "Kubernetes"
USERS: Final = {OURS: "executor", THEIRS: "system:serviceaccount:kube-system:node-controller"}

Processes = Mapping[str, Callable[[], float]]


class Turn(NamedTuple):
    """What one turn of one evictor has shown.

    Attributes:
        seconds: from the first pod that was due to the last delete.
        late_seconds: of each delete, from its pod's deadline.
        cpu_ms: processor time of each process for each eviction.
    """

    seconds: float
    late_seconds: Sequence[float]
    cpu_ms: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Deletes a second."""
        return len(self.late_seconds) / self.seconds

    @property
    def own_ms(self) -> float:
        """Processor time beside the control plane's, for each eviction."""
        return sum(used for name, used in self.cpu_ms.items() if name not in {"apiserver", "etcd"})


class _Scene:
    """The control plane, and the nodes that are not tainted yet."""

    def __init__(self, plane: ControlPlane, nodes: HollowNodes, *, tainted: int) -> None:
        self.plane = plane
        self._nodes = nodes
        self.client = plane.client()
        self._tainted = tainted
        self._names = (f"n-{number:04}" for number in itertools.count())
        self._pool = ThreadPoolExecutor(CALLS_AT_ONCE)
        self._deletes: list[tuple[str, str, float]] = []  # who, which pod, when
        self._seen = 0  # in the audit log

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def fill(self, nodes: int) -> None:
        """Create nodes with their pods."""
        names = [f"n-{number:04}" for number in range(nodes)]
        for done, _ in enumerate(self._pool.map(self._create, names), start=1):
            if done % 100 == 0:
                say(f"{done:,} of {nodes:,} nodes with their pods are there")

    def _create(self, name: str) -> None:
        self._nodes.add([name])
        tolerations = [tolerates(KEY, TOLERATED_SECONDS)]
        for number in range(PODS_PER_NODE):
            self.client.create(pods(), pod(f"{name}-{number}", name, tolerations=tolerations))

    def probe(self, user: str) -> Callable[[], bool]:
        """Taint one node; returns what tells that its pods were deleted by a user."""
        name = next(self._names)
        self._taint(name)
        return lambda: len(self.deleted(user, {name})) >= PODS_PER_NODE

    def taint(self) -> dict[str, float]:
        """Taint the nodes of a turn; returns when each was, as seconds of the epoch."""
        names = list(itertools.islice(self._names, self._tainted))
        return dict(zip(names, self._pool.map(self._taint, names), strict=True))

    def _taint(self, name: str) -> float:
        self.client.patch(f"{NODES}/{name}", {"spec": {"taints": [taint(KEY)]}})
        return time.time()

    def deleted(self, user: str, nodes: Collection[str]) -> list[tuple[str, float]]:
        """List pods of these nodes that a user has deleted, and when the request came."""
        lines = self.plane.deletes()[self._seen :]
        self._seen += len(lines)
        for line in lines:
            if line["responseStatus"]["code"] == http.HTTPStatus.OK:
                at = dt.datetime.fromisoformat(line["requestReceivedTimestamp"]).timestamp()
                self._deletes.append((line["user"]["username"], line["objectRef"]["name"], at))
        return [(name, at) for who, name, at in self._deletes if who == user and name.rsplit("-", 1)[0] in nodes]


async def measure(lab: Lab) -> list[Figure]:
    """Measure in turns, first the one and then the other."""
    require(CONTROL_PLANE.are_built(), "there is no control plane: run `make kubernetes`")
    share, rounds = (QUICK_SHARE, QUICK_ROUNDS) if lab.is_quick else (1, ROUNDS)
    tainted = TAINTED_NODES // share
    nodes = max(NODES_THERE // share, 2 * rounds * (tainted + 1))
    turns: dict[str, list[Turn]] = {OURS: [], THEIRS: []}
    with ControlPlane(
        lab.folder / "plane",
        taint_eviction=False,
        users=["feed", "executor"],
        controller_manager_flags=[*UNTHROTTLED, "--controllers=-node-lifecycle-controller"],
    ) as plane:
        grant(plane.client(), "feed.yaml", "feed")
        grant(plane.client(), "executor-delete.yaml", "executor")
        with (
            HollowNodes(plane.client(), beat_seconds=NO_BEAT_SECONDS) as kubelets,
            contextlib.closing(_Scene(plane, kubelets, tainted=tainted)) as scene,
        ):
            await asyncio.to_thread(scene.fill, nodes)
            for _ in range(rounds):
                async with _ours(lab, plane) as processes:
                    turns[OURS].append(await _turn(OURS, scene, processes))
                async with _theirs(plane) as processes:
                    turns[THEIRS].append(await _turn(THEIRS, scene, processes))
    return _figures(turns, tainted * PODS_PER_NODE)


@contextlib.asynccontextmanager
async def _ours(lab: Lab, plane: ControlPlane) -> AsyncIterator[Processes]:
    settings = lab.settings("storm")
    kubeconfig = ("--kubeconfig", str(plane.kubeconfig))
    async with (
        running(MeasuredProcess(settings, "feed", "--cluster", "lab=feed", *kubeconfig)) as feed,
        running(MeasuredProcess(settings, "worker")) as worker,
        running(
            MeasuredProcess(settings, "execute", "--cluster", "lab=executor", *kubeconfig, "--mode", "delete")
        ) as executor,
    ):
        for process in (feed, worker, executor):
            await until(process.is_ready, READY_SECONDS, "a process of evictstream")
        yield {
            "feed": lambda: feed.cpu_seconds,
            "worker": lambda: worker.cpu_seconds,
            "executor": lambda: executor.cpu_seconds,
            "kafka": lambda: cpu_seconds(lab.broker_pid),
        }


@contextlib.asynccontextmanager
async def _theirs(plane: ControlPlane) -> AsyncIterator[Processes]:
    folder = plane.folder / "evictor"
    folder.mkdir(exist_ok=True)
    # The arguments of the plane's own manager, which has taken the port, and this controller. It finds a node's pods by
    # an index that others make (`AddPodNodeNameIndexer`), so the one of DaemonSets, which has nothing to do, is there.
    arguments = [
        each
        for each in plane.controller_manager.arguments[1:]
        if not each.startswith(("--controllers=", "--secure-port="))
    ]
    program = CONTROL_PLANE.folder() / "kube-controller-manager"
    more = ["--controllers=taint-eviction-controller,daemonset-controller", "--secure-port=0"]
    server = ServerProcess(program, [*arguments, *more], folder=folder)
    server.start()
    try:
        yield {"controller": _cpu_of(server)}
    finally:
        await asyncio.to_thread(server.stop)


async def _turn(who: str, scene: _Scene, processes: Processes) -> Turn:
    user = USERS[who]
    await until(scene.probe(user), READY_SECONDS, f"the first eviction by {who}")
    servers = {"apiserver": scene.plane.apiserver, "etcd": scene.plane.etcd}
    everything = {**processes, **{name: _cpu_of(server) for name, server in servers.items()}}
    tainted_at = await asyncio.to_thread(scene.taint)
    first_due_at = min(tainted_at.values()) + TOLERATED_SECONDS
    await asyncio.sleep(first_due_at - time.time())
    before = {name: used() for name, used in everything.items()}
    expected = len(tainted_at) * PODS_PER_NODE
    await until(
        lambda: len(scene.deleted(user, tainted_at)) >= expected, STORM_SECONDS, f"{expected:,} deletes by {who}"
    )
    used = {name: (seconds() - before[name]) / expected * 1_000 for name, seconds in everything.items()}
    await asyncio.sleep(QUIET_SECONDS)
    deleted = scene.deleted(user, tainted_at)
    require(len({name for name, _ in deleted}) == len(deleted) == expected, f"{len(deleted)} deletes of {expected}")
    late = [at - tainted_at[name.rsplit("-", 1)[0]] - TOLERATED_SECONDS for name, at in deleted]
    # An instant of a taint is taken after the answer, so a delete may seem to be early by what that took.
    require(min(late) > -1.0, f"{who} has deleted a pod {-min(late):.1f} s early")
    turn = Turn(max(at for _, at in deleted) - first_due_at, late, used)
    say(f"{who}: {turn.rate:.1f} deletes a second; ms of processor for each: {_text(used)}")
    return turn


def _cpu_of(server: ServerProcess) -> Callable[[], float]:
    def seconds() -> float:
        pid = server.pid
        if pid is None:
            raise WrongResultError(f"{server.name} has ended:\n{server.log_tail()}")
        return cpu_seconds(pid)

    return seconds


def _text(used: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {milliseconds:.1f}" for name, milliseconds in used.items())


def _figures(turns: Mapping[str, Sequence[Turn]], pods_due: int) -> list[Figure]:
    pairs = list(zip(turns[OURS], turns[THEIRS], strict=True))

    def compared(unit: str, value: Callable[[Turn], float]) -> Compared:
        return Compared(unit, {who: tuple(map(value, made)) for who, made in turns.items()})

    medians = {
        f"{who}_{name}_ms": statistics.median(turn.cpu_ms[name] for turn in made)
        for who, made in turns.items()
        for name in made[0].cpu_ms
    }
    late = {
        f"{who}_late_p50_s": statistics.median(second for turn in made for second in turn.late_seconds)
        for who, made in turns.items()
    }
    return [
        Figure(
            "storm-deletes",
            f"deletes a second, {pods_due:,} pods due at once, over those of Kubernetes' own controller",
            "x",
            tuple(ours.rate / theirs.rate for ours, theirs in pairs),
            Goal(Bound.AT_LEAST, 1.0),
            late,
            compared("1/s", lambda turn: turn.rate),
        ),
        Figure(
            "storm-api-server",
            "the API server's processor time for each of these evictions, over Kubernetes' own",
            "x",
            tuple(ours.cpu_ms["apiserver"] / theirs.cpu_ms["apiserver"] for ours, theirs in pairs),
            Goal(Bound.AT_MOST, 1.0),
            medians,
            compared("ms", lambda turn: turn.cpu_ms["apiserver"]),
        ),
        Figure(
            "storm-own",
            "processor time of feed, worker, executor and Kafka for each of these evictions",
            "ms",
            tuple(ours.own_ms for ours, _ in pairs),
            Goal(Bound.AT_MOST, 8.0),
            {},
            compared("ms", lambda turn: turn.own_ms),
        ),
    ]
