"""Where requests go is fixed when a process begins, and no other cluster gets one, whatever an address leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.errors import ClusterChangedError, ClusterMovedError, CredentialsError, KubernetesError
from evictstream.streams.kubernetes import expected_cluster
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection

PODS = "/api/v1/pods"


@pytest.fixture
def prod() -> Iterator[FakeApi]:
    with FakeApi() as found:
        yield found


@pytest.fixture
def staging() -> Iterator[FakeApi]:
    with FakeApi() as found:
        yield found


def config(current: str, **servers: str) -> dict[str, Any]:
    return {
        "current-context": current,
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in servers],
    }


def write(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content))
    return file


def test_the_context_stays_what_it_was_at_the_start(prod: FakeApi, staging: FakeApi, tmp_path: Path) -> None:
    servers = {"prod": prod.url, "staging": staging.url}
    file = write(tmp_path / "config", config("prod", **servers))
    access = ClusterAccess(kubeconfig=str(file))
    access.target()
    write(file, config("staging", **servers))  # kubectl config use-context staging
    connection = Connection(access)
    assert connection.get(PODS)
    prod.trouble["list pods"] = [401]
    assert connection.get(PODS)
    assert Connection(access).get(PODS)
    assert len(prod.requests) == 4
    assert not staging.requests


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"server": "STAGING"}, id="another server"),
        pytest.param({"proxy-url": "http://127.0.0.1:1"}, id="another proxy"),
        pytest.param({"tls-server-name": "staging"}, id="another name in the certificate"),
        pytest.param({"insecure-skip-tls-verify": True}, id="no look at certificates"),
    ],
)
def test_credentials_that_belong_elsewhere_are_not_taken(
    change: dict[str, Any], prod: FakeApi, staging: FakeApi, tmp_path: Path
) -> None:
    file = write(tmp_path / "config", config("prod", prod=prod.url))
    connection = Connection(ClusterAccess(kubeconfig=str(file)))
    assert connection.get(PODS)
    before = config("prod", prod=prod.url)
    after = config("prod", prod=prod.url)
    after["clusters"][0]["cluster"] |= {k: staging.url if v == "STAGING" else v for k, v in change.items()}
    write(file, after)
    prod.trouble["list pods"] = [401]
    with pytest.raises(ClusterMovedError, match="restart this process"):
        connection.get(PODS)
    assert not staging.requests
    write(file, before)
    assert connection.get(PODS)  # it is tried again, and works once the file is as it was


def test_the_first_file_says_which_context_is_current(prod: FakeApi, staging: FakeApi, tmp_path: Path) -> None:
    first = write(tmp_path / "first", config("prod", prod=prod.url))
    second = write(tmp_path / "second", config("staging", staging=staging.url, prod=staging.url))
    connection = Connection(ClusterAccess(kubeconfig=f"{tmp_path / 'none'}:{first}:{second}"))
    assert connection.get(PODS)
    assert not staging.requests


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda found: found.pop("current-context"), id="no current context"),
        pytest.param(lambda found: found.pop("clusters"), id="no cluster"),
        pytest.param(lambda found: found.pop("users"), id="no user"),
        pytest.param(lambda found: found["clusters"][0]["cluster"].pop("server"), id="no server"),
        pytest.param(lambda found: found["contexts"][0]["context"].update(user="you"), id="another user"),
    ],
)
def test_a_context_that_leads_nowhere_is_refused(wrong: Any, prod: FakeApi, tmp_path: Path) -> None:
    found = config("prod", prod=prod.url)
    wrong(found)
    access = ClusterAccess(kubeconfig=str(write(tmp_path / "config", found)))
    with pytest.raises(CredentialsError):
        access.target()


@pytest.fixture
def connection(prod: FakeApi, tmp_path: Path) -> Iterator[Connection]:
    found = Connection(ClusterAccess(kubeconfig=str(write(tmp_path / "config", config("prod", prod=prod.url)))))
    found.expect_cluster(prod.uid)
    yield found
    found.close()


def test_the_cluster_is_asked_who_it_is_before_all_else(prod: FakeApi, connection: Connection) -> None:
    connection.send("DELETE", f"{PODS}/a")
    connection.get(PODS)
    assert list(prod.requests) == ["get namespaces", "delete pods", "list pods"]


@pytest.mark.parametrize("gap", ["new credentials", "a cut connection", "time"])
def test_another_cluster_at_the_address_gets_no_request(
    gap: str, prod: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.get(PODS)
    prod.rebuild(uid="another")
    if gap == "time":
        monkeypatch.setattr(expected_cluster, "IDENTITY_SECONDS", 0.0)
    else:
        prod.trouble["list pods"] = [401 if gap == "new credentials" else "cut"]
        with pytest.raises(KubernetesError):
            connection.get(PODS)
    prod.requests.clear()
    with pytest.raises(ClusterChangedError, match="another"):
        connection.send("DELETE", f"{PODS}/a")
    with pytest.raises(ClusterChangedError), connection.watch(PODS, {"watch": "true"}, quiet_seconds=5):
        pass
    assert set(prod.requests) == {"get namespaces"}
    assert connection.cluster_uid() == "another"  # to ask who it is stays possible
    connection.expect_cluster("another")
    assert connection.get(PODS)
