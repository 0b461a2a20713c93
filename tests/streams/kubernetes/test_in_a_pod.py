"""In a pod without a kubeconfig the service account is used, whoever the container runs as."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from evictstream.streams.kubernetes.access import ClusterAccess, ClusterTarget

IN_CLUSTER = ClusterTarget(server="https://10.0.0.1:443")


@pytest.fixture(autouse=True)
def _pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_a_user_without_a_home_has_the_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("as for a user that the image does not know")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert ClusterAccess().target() == IN_CLUSTER


def test_an_empty_home_has_the_service_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ClusterAccess().target() == IN_CLUSTER


def test_an_unreadable_home_has_the_service_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(path: str | Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("os.stat", refused)
    assert ClusterAccess().target() == IN_CLUSTER


def test_a_kubeconfig_at_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / ".kube" / "config"
    file.parent.mkdir()
    file.write_text(
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://c.example'}}]\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ClusterAccess().target() == ClusterTarget(context="c", server="https://c.example")
