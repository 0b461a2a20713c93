"""Who the requests come from: as client-go has it, refused by name, or an error that passes; never anonymous."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.errors import CredentialsError
from evictstream.streams.kubernetes import access
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection

PODS = "/api/v1/pods"
VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        yield found


def connect(api: FakeApi, folder: Path, user: dict[str, Any], **cluster: Any) -> Connection:
    config = json.loads(api.kubeconfig())
    config["users"][0]["user"] = user
    config["clusters"][0]["cluster"] |= cluster
    (folder / "config").write_text(json.dumps(config))
    return Connection(ClusterAccess(kubeconfig=str(folder / "config")))


def plugin(folder: Path, script: str, **more: Any) -> dict[str, Any]:
    """Make a user with a plugin, which is found from the folder of the kubeconfig."""
    file = folder / "plugin.sh"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return {"exec": {"apiVersion": VERSION, "command": "./plugin.sh", "interactiveMode": "Never"} | more}


def shows(**status: Any) -> str:
    return "echo '" + json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status}) + "'"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo the sign-in service does not answer >&2; exit 1", id="fails"),
        pytest.param(None, id="is missing"),
        pytest.param("true", id="prints nothing"),
        pytest.param("echo sign in at https://example.com", id="prints a text"),
        pytest.param(shows(), id="prints no token"),
        pytest.param(shows(token=""), id="prints an empty token"),
        pytest.param(shows(token=None), id="prints null"),
        pytest.param(shows(clientCertificateData="x"), id="prints half a pair"),
        pytest.param(shows(token="t").replace("ExecCredential", "Status"), id="prints another kind"),
        pytest.param(shows(token="t").replace("/v1", "/v1beta1"), id="prints another version"),
        pytest.param("yes", id="prints without an end"),
    ],
)
def test_a_plugin_without_credentials_is_an_error_that_passes(script: str | None, api: FakeApi, tmp_path: Path) -> None:
    connection = connect(api, tmp_path, plugin(tmp_path, shows(token="first")))
    assert connection.get(PODS)
    api.token = "second"
    plugin(tmp_path, script or "")
    if script is None:
        (tmp_path / "plugin.sh").unlink()
    for _ in range(2):
        with pytest.raises(CredentialsError):
            connection.get(PODS)
    plugin(tmp_path, shows(token="second"))
    assert connection.get(PODS)
    assert all("authorization" in one for one in api.headers)


def test_credentials_that_vanish_are_an_error(api: FakeApi, tmp_path: Path) -> None:
    api.token = "first"
    connection = connect(api, tmp_path, {"token": "first"})
    assert connection.get(PODS)
    api.token = "second"
    connect(api, tmp_path, {})
    with pytest.raises(CredentialsError, match="no longer has any"):
        connection.get(PODS)
    assert all("authorization" in one for one in api.headers)


def test_a_context_that_asks_for_none_sends_none(api: FakeApi, tmp_path: Path) -> None:
    assert connect(api, tmp_path, {}).get(PODS)
    assert "authorization" not in api.headers[-1]


def test_a_user_that_impersonates_says_so_with_each_request(api: FakeApi, tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "system:serviceaccount:ops:evictor",
        "as-uid": "06f6ce97",
        "as-groups": ["ops", "é, with a comma"],
        "as-user-extra": {"example.com/scope": ["one", "two"], "50%": ["x"], "ok-key_1": ["y"]},
    }
    connection = connect(api, tmp_path, user)
    connection.get(PODS)
    connection.send("DELETE", f"{PODS}/a")
    for headers in api.headers:
        assert headers["authorization"] == ["Bearer t"]
        assert headers["impersonate-user"] == ["system:serviceaccount:ops:evictor"]
        assert headers["impersonate-uid"] == ["06f6ce97"]
        assert headers["impersonate-group"] == ["ops", "é, with a comma".encode().decode("latin-1")]
        assert headers["impersonate-extra-example.com%2fscope"] == ["one", "two"]
        assert headers["impersonate-extra-50%25"] == ["x"]
        assert headers["impersonate-extra-ok-key_1"] == ["y"]
    assert len(api.headers) == 2


@pytest.mark.parametrize(
    ("user", "named"),
    [
        ({"token": "t", "as-groups": ["ops"]}, "as-groups"),
        ({"token": "t", "as-uid": "1"}, "as-uid"),
        ({"token": "t", "as-user-extra": {"a": ["b"]}}, "as-user-extra"),
        ({"token": "t", "as": "a", "as-groups": "ops"}, "as-groups"),
        ({"token": "t", "as": "a\r\nImpersonate-Group: system:masters"}, "Impersonate-User"),
        ({"token": "a\nb"}, "Authorization"),
        ({"token": 1}, "token"),
        ({"token": "t", "username": "me", "password": "p"}, "username"),
        ({"password": "p"}, "password"),
        ({"client-certificate-data": "eA=="}, "client-key"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}}, "auth-provider"),
        ({"exec": {"apiVersion": VERSION}}, "command"),
        ({"exec": {"apiVersion": VERSION, "command": "true", "interactiveMode": "Always"}}, "interactiveMode"),
        ({"tokenFile": "/nowhere/token"}, "/nowhere/token"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    user: dict[str, Any], named: str, api: FakeApi, tmp_path: Path
) -> None:
    with pytest.raises(CredentialsError, match=named):
        connect(api, tmp_path, user).get(PODS)
    assert not api.headers


def test_an_empty_file_for_a_token_is_an_error(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    connection = connect(api, tmp_path, {"tokenFile": "token", "token": "old"})
    with pytest.raises(CredentialsError, match="tokenFile"):
        connection.get(PODS)
    (tmp_path / "token").write_text("new\n")  # the file comes before the token beside it, as for kubectl
    connection.get(PODS)
    assert [one["authorization"] for one in api.headers] == [["Bearer new"]]


def test_a_name_with_a_password_is_sent(api: FakeApi, tmp_path: Path) -> None:
    connect(api, tmp_path, {"username": "me", "password": "ä:b"}).get(PODS)
    assert api.headers[0]["authorization"] == ["Basic " + base64.b64encode("me:ä:b".encode()).decode()]


def test_a_token_beside_a_plugin_is_taken(api: FakeApi, tmp_path: Path) -> None:
    connect(api, tmp_path, {"token": "t"} | plugin(tmp_path, "exit 1")).get(PODS)
    assert api.headers[0]["authorization"] == ["Bearer t"]


def test_a_plugin_is_told_of_its_cluster_and_its_environment(api: FakeApi, tmp_path: Path) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; echo "$1 $WHO" >> {tmp_path}/info; {shows(token="t")}'
    user = plugin(tmp_path, script, args=["in"], env=[{"name": "WHO", "value": "me"}], provideClusterInfo=True)
    connect(api, tmp_path, user, extensions=[{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}]).get(
        PODS
    )
    info, words = (tmp_path / "info").read_text().splitlines()
    spec = json.loads(info)["spec"]
    assert spec == {"interactive": False, "cluster": {"server": api.url, "config": {"a": 1}}}
    assert words == "in me"


def test_credentials_that_have_expired_are_not_sent(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600))
    connection = connect(api, tmp_path, plugin(tmp_path, shows(token="first", expirationTimestamp=soon)))
    connection.get(PODS)
    connection.get(PODS)
    plugin(tmp_path, shows(token="second"))
    monkeypatch.setattr(access, "time", SimpleNamespace(time=lambda: time.time() + 601))
    connection.get(PODS)
    assert [one["authorization"] for one in api.headers] == [["Bearer first"]] * 2 + [["Bearer second"]]


def socks_server(names: list[str], port: int) -> socket.socket:
    """Serve one connection of SOCKS 5 to a port of loopback, whatever name is asked for."""
    listener = socket.create_server(("127.0.0.1", 0))

    def forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the other side has hung up
            while piece := source.recv(65_536):
                target.sendall(piece)

    def serve() -> None:
        with listener.accept()[0] as one, socket.create_connection(("127.0.0.1", port)) as server:
            one.recv(16)
            one.sendall(b"\x05\x00")
            asked = one.recv(512)
            names.append(asked[5 : 5 + asked[4]].decode() if asked[3] == 3 else "an address")
            one.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
            back = threading.Thread(target=forward, args=(server, one), daemon=True)
            back.start()
            forward(one, server)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            back.join()  # before its sockets are closed

    threading.Thread(target=serve, daemon=True).start()
    return listener


def test_a_socks_proxy_looks_the_name_up_and_serves(api: FakeApi, tmp_path: Path) -> None:
    names: list[str] = []
    port = int(api.url.rpartition(":")[2])
    with socks_server(names, port) as listener:
        proxy = f"socks5://127.0.0.1:{listener.getsockname()[1]}"
        connection = connect(
            api, tmp_path, {"token": "t"}, server=f"http://api.lab.example:{port}", **{"proxy-url": proxy}
        )
        assert connection.get(PODS)
        connection.close()
    assert names == ["api.lab.example"]


def test_a_http_proxy_is_told_the_whole_address(api: FakeApi, tmp_path: Path) -> None:
    """The fake API server is the proxy here."""
    connection = connect(api, tmp_path, {"token": "t"}, server="http://api.lab.example", **{"proxy-url": api.url})
    assert connection.get(PODS)
    assert api.headers[-1]["host"] == ["api.lab.example"]


def test_a_proxy_that_no_client_knows_is_refused(api: FakeApi, tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="proxy-url"):
        connect(api, tmp_path, {"token": "t"}, **{"proxy-url": "socks4://127.0.0.1:1"})
