"""A cluster whose built-in evictor stays on, evictstream beside it, and who has deleted what."""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evictstream.streams.broker.locate import Broker
from evictstream.streams.settings import Settings
from tests.e2e.control_plane import NODE_CONTROLLER
from tests.e2e.fleet import KEY, Fleet, evicting
from tests.e2e.handover.admission import Admission
from tests.e2e.objects import NODES, pod, pods, taint, tolerates

OURS: Final = "executor"
BUILT_IN: Final = NODE_CONTROLLER

Tolerated = int | None
"""Seconds for which a pod tolerates `KEY`; None is for ever."""


class Delete(NamedTuple):
    """A delete that was asked for: by whom, when, and whether only for one UID."""

    by: str
    at: float
    names_uid: bool


class Beside(NamedTuple):
    """The cluster, its policy, and the settings of the service."""

    fleet: Fleet
    admission: Admission
    settings: Settings

    def nodes(self, *names: str) -> None:
        """Add nodes, and wait until they are ready."""
        self.fleet.nodes.add(names)
        self.fleet.nodes.wait_ready(names)

    def fill(self, node: str, seconds: Mapping[str, Tolerated]) -> None:
        """Create pods on a node that tolerate `KEY`."""
        for name, tolerated in seconds.items():
            self.fleet.client.create(pods(), pod(name, node, tolerations=[tolerates(KEY, tolerated)]))

    def taint(self, node: str) -> float:
        """Taint a node with `KEY`; returns the second before."""
        before = dt.datetime.now(dt.UTC).timestamp()
        self.fleet.client.patch(f"{NODES}/{node}", {"spec": {"taints": [taint(KEY)]}})
        return before

    def untaint(self, node: str) -> None:
        """Take all taints off a node."""
        self.fleet.client.patch(f"{NODES}/{node}", {"spec": {"taints": None}})

    def edit(self, name: str, seconds: Tolerated) -> None:
        """Change the seconds of `KEY` in the spec, as any client does."""
        found = self.fleet.client.get(f"{pods()}/{name}")["spec"]["tolerations"]
        others = [each for each in found if each["key"] != KEY]
        self.fleet.client.patch(f"{pods()}/{name}", {"spec": {"tolerations": [tolerates(KEY, seconds), *others]}})

    def make_again(self, name: str, node: str, seconds: Tolerated) -> float:
        """Delete a pod at once, and create another one of its name; returns the second before that."""
        self.fleet.client.delete(f"{pods()}/{name}", grace_seconds=0)
        before = dt.datetime.now(dt.UTC).timestamp()
        self.fill(node, {name: seconds})
        return before

    def deletes(self) -> dict[str, list[Delete]]:
        """List the deletes of evictstream and of the built-in controller, by pod, in order; of all answers."""
        found: defaultdict[str, list[Delete]] = defaultdict(list)
        for each in self.fleet.plane.deletes():
            if each["user"]["username"] in (OURS, BUILT_IN):
                at = dt.datetime.fromisoformat(each["requestReceivedTimestamp"]).timestamp()
                preconditions = (each.get("requestObject") or {}).get("preconditions") or {}
                delete = Delete(each["user"]["username"], at, "uid" in preconditions)
                found[each["objectRef"]["name"]].append(delete)
        return found

    def seconds_after(self, began_at: float, by: str, names: Sequence[str]) -> dict[str, float]:
        """Return when each of these pods was deleted first, all of them by one alone."""
        found = self.deletes()
        assert {name: {each.by for each in found[name]} for name in names} == {name: {by} for name in names}
        return {name: found[name][0].at - began_at for name in names}


@contextlib.contextmanager
def beside_built_in(kafka: Broker, folder: Path, *, built_in: bool = True) -> Iterator[Beside]:
    """Start a cluster with all built-in controllers on, and evictstream beside it.

    With `built_in` off the built-in evictor is off, and evictstream is told nothing: its usual place, for comparison.
    """
    own = f"t{uuid.uuid4().hex[:10]}"
    settings = Settings(
        bootstrap_servers=kafka.bootstrap_servers,
        topic_prefix=f"{own}.",
        application_id=own,
        partitions=1,
        built_in="lab" if built_in else None,
    )
    with evicting(settings, folder, taint_eviction=built_in) as fleet:
        yield Beside(fleet, Admission(fleet.client), settings)
