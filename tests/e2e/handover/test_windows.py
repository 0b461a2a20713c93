"""Moved and restored while a node is tainted, with the built-in controller on: who deletes which pod, and when."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from typing import Final

import pytest

from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from tests.e2e.api_client import Object
from tests.e2e.control_plane import ControlPlane
from tests.e2e.handover.admission import Admission, annotation_of, pod_with, pods_in, timed, wait_until
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, taint

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

KEY: Final = "example.com/windows"
EVICTOR: Final = "system:serviceaccount:kube-system:node-controller"
QUIET_SECONDS: Final = 4.0
"""After a deadline: the built-in controller is late by some tenths of a second."""


class Tainted:
    """Pods of a namespace of their own on a node of their own."""

    def __init__(self, plane: ControlPlane, admission: Admission, nodes: HollowNodes, name: str) -> None:
        self._plane = plane
        self.admission = admission
        self.name = name
        nodes.add([name])
        nodes.wait_ready([name])
        client = admission.client
        labels = {"evictstream.io/handover": "off"}
        client.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        wait_until(lambda: admission.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"))

    def add(self, seconds: int) -> str:
        pod = pod_with([timed(KEY, seconds)])
        pod["spec"] |= {"nodeName": self.name, "terminationGracePeriodSeconds": 1}
        found: str = self.admission.create(pod, self.name)["metadata"]["name"]
        return found

    def taint(self) -> float:
        self.admission.client.patch(f"{NODES}/{self.name}", {"spec": {"taints": [taint(KEY)]}})
        return time.time()

    def opt(self, value: str | None) -> None:
        change = {"metadata": {"labels": {"evictstream.io/handover": value}}}
        path = f"/api/v1/namespaces/{self.name}"
        self.admission.client.call("PATCH", path, change, "application/merge-patch+json")
        wait_until(lambda: (self._probe() is None) == (value == "off"))

    def _probe(self) -> str | None:
        return annotation_of(self.admission.dry(pod_with([timed(KEY, 1)]), self.name))

    def command(self, word: str) -> None:
        where = ["--kubeconfig", str(self._plane.kubeconfig), "--context", "admin", "-n", self.name]
        assert run(["handover", word, *where]) == ExitCode.DONE

    def alive(self) -> set[str]:
        items = self.admission.client.items(pods_in(self.name))
        return {each["metadata"]["name"] for each in items if "deletionTimestamp" not in each["metadata"]}

    def deleted(self) -> dict[str, float]:
        """Return when the built-in controller has deleted which pods."""
        found = dict[str, float]()
        for each in self._plane.deletes():
            of = each["objectRef"]
            if of.get("namespace") == self.name and each["user"]["username"] == EVICTOR:
                found.setdefault(of["name"], _instant(each))
        return found


def _instant(event: Object) -> float:
    return dt.datetime.fromisoformat(str(event["requestReceivedTimestamp"])).timestamp()


@pytest.fixture
def tainted(plane: ControlPlane, admission: Admission, more: int | None) -> Iterator[Tainted]:
    with HollowNodes(admission.client) as nodes:
        yield Tainted(plane, admission, nodes, f"windows-{more or 0}-{time.monotonic_ns() % 10_000_000}")


def test_restored_pods_get_their_full_seconds(tainted: Tainted) -> None:
    """The built-in controller counts from the restore, whatever has passed before."""
    tainted.opt(None)
    seconds = {tainted.add(each): each for each in (0, 3, 6)}
    tainted.taint()
    time.sleep(QUIET_SECONDS)  # in which nothing may happen
    assert tainted.alive() == seconds.keys()
    tainted.opt("off")
    restored_at = time.time()
    tainted.command("restore")
    wait_until(lambda: not tainted.alive())
    deleted = tainted.deleted()
    assert deleted.keys() == seconds.keys()
    for name, at in deleted.items():
        assert at >= restored_at + seconds[name]


def test_a_pod_moved_in_its_window_depends_on_the_variant(tainted: Tainted, more: int | None) -> None:
    """A timer that runs is ended by a toleration without seconds, and is not set again by one with more seconds."""
    name = tainted.add(5)
    tainted.opt(None)
    began = tainted.taint()
    tainted.command("move")
    assert tainted.alive() == {name}
    time.sleep(max(0.0, began + 5 + QUIET_SECONDS - time.time()))
    assert tainted.deleted().keys() == (set() if more is None else {name})
    assert tainted.alive() == ({name} if more is None else set())
