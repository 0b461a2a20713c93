"""The product's processes beside a control plane, with no more rights there than `deploy/` grants."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from evictstream.streams.settings import Settings
from tests.e2e.api_client import ApiClient
from tests.e2e.control_plane import ControlPlane
from tests.harness.product_process import ProductProcess

DEPLOYED = Path(__file__).parents[2] / "deploy" / "kubernetes"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
PATIENCE_SECONDS = 90.0


def feed(settings: Settings, plane: ControlPlane) -> ProductProcess:
    """Start a feed of the cluster `lab` with the rights of the user `feed`."""
    return ProductProcess(settings, "feed", "--cluster", "lab=feed", "--kubeconfig", str(plane.kubeconfig))


def executor(settings: Settings, plane: ControlPlane, mode: str, *more: str, log: Path | None = None) -> ProductProcess:
    """Start an executor for the cluster `lab` with the rights of the user `executor`."""
    where = ("--cluster", "lab=executor", "--kubeconfig", str(plane.kubeconfig))
    return ProductProcess(settings, "execute", *where, "--mode", mode, *more, log=log)


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
