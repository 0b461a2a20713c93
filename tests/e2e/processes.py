"""The product's processes beside a control plane, with no more rights there than `deploy/` grants."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import yaml  # type: ignore[import-untyped]

from evictstream.streams.settings import Settings
from tests.e2e.api_client import ApiClient
from tests.e2e.control_plane import ControlPlane

DEPLOYED = Path(__file__).parents[2] / "deploy" / "kubernetes"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
PATIENCE_SECONDS = 90.0
STOP_SECONDS = 30


class ProductProcess:
    """A command of the product. Use as a context manager: it is stopped at the end, and has to exit with 0."""

    def __init__(self, settings: Settings, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "evictstream.streams.cli.main", *arguments]
        self._environment = os.environ | {
            "EVICTSTREAM_BOOTSTRAP_SERVERS": str(settings.bootstrap_servers),
            "EVICTSTREAM_TOPIC_PREFIX": settings.topic_prefix,
            "EVICTSTREAM_APPLICATION_ID": settings.application_id,
            "EVICTSTREAM_PARTITIONS": str(settings.partitions),
            "EVICTSTREAM_HEALTH_PORT": "0",
        }
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, env=self._environment)

    def kill_and_start(self) -> None:
        """Kill it as a machine that fails does, and start another one."""
        self._process.kill()
        self._process.wait()
        self._process = self._started()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._process.send_signal(signal.SIGTERM)
                assert self._process.wait(STOP_SECONDS) == 0
        finally:
            self._process.kill()
            self._process.wait()


def feed(settings: Settings, plane: ControlPlane) -> ProductProcess:
    """Start a feed of the cluster `lab` with the rights of the user `feed`."""
    return ProductProcess(settings, "feed", "--cluster", "lab=feed", "--kubeconfig", str(plane.kubeconfig))


def executor(settings: Settings, plane: ControlPlane, mode: str, *more: str) -> ProductProcess:
    """Start an executor for the cluster `lab` with the rights of the user `executor`."""
    where = ("--cluster", "lab=executor", "--kubeconfig", str(plane.kubeconfig))
    return ProductProcess(settings, "execute", *where, "--mode", mode, *more)


def grant(client: ApiClient, file: str, user: str) -> None:
    """Give a user what a file of `deploy/kubernetes` grants, and no more."""
    objects = list(yaml.safe_load_all((DEPLOYED / file).read_text()))
    role, binding = (
        next(one for one in objects if one["kind"] == kind) for kind in ("ClusterRole", "ClusterRoleBinding")
    )
    client.create(ROLES, role)
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    client.create(BINDINGS, binding | {"subjects": [subject]})


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until it holds, for `PATIENCE_SECONDS` at most."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.5)
