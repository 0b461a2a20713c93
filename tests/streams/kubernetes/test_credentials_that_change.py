"""Tokens, certificates and authorities that are replaced while a connection is used: no restart is needed."""

from __future__ import annotations

import base64
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, CredentialsError, KubernetesError
from evictstream.streams.kubernetes.access import ClusterAccess, ClusterClient
from evictstream.streams.kubernetes.connection import Connection
from tests.harness.certificates import OPENSSL, Certificate, certificate, server_context

PODS = "/api/v1/pods"

needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="the program openssl makes the certificates")


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        found.put("Pod", "a", spec={"nodeName": "n-1"})
        yield found


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


@pytest.fixture
def opened() -> Iterator[list[Connection]]:
    """Connections to be closed at the end."""
    found: list[Connection] = []
    yield found
    for one in found:
        one.close()


def connect(opened: list[Connection], kubeconfig: Path) -> Connection:
    opened.append(Connection(ClusterAccess(kubeconfig=str(kubeconfig))))
    return opened[-1]


def secured(api: FakeApi, authority: Certificate, client: Certificate | None = None, *, is_inline: bool = True) -> str:
    """Write a kubeconfig with an authority, and a client's certificate; in the file itself, or as names of files."""
    config = json.loads(api.kubeconfig())

    def put(section: dict[str, Any], name: str, file: Path) -> None:
        inline = {f"{name}-data": base64.b64encode(file.read_bytes()).decode()}
        section.update(inline if is_inline else {name: str(file)})

    put(config["clusters"][0]["cluster"], "certificate-authority", authority.certificate)
    if client is not None:
        put(config["users"][0]["user"], "client-certificate", client.certificate)
        put(config["users"][0]["user"], "client-key", client.key)
    return json.dumps(config)


def test_a_token_that_is_replaced_is_read_anew(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    api.token = "first"
    token.write_text("first")
    kubeconfig.write_text(api.kubeconfig(token))
    connection = connect(opened, kubeconfig)
    assert connection.get(PODS)
    api.token = "second"
    with pytest.raises(ApiRefusedError) as refused:
        connection.get(PODS)
    assert refused.value.status == 401
    token.write_text("second")
    assert connection.get(PODS)


def test_a_token_that_expires_during_a_watch(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    api.token = "first"
    token.write_text("first")
    kubeconfig.write_text(api.kubeconfig(token))
    connection = connect(opened, kubeconfig)
    query = {"watch": "true", "resourceVersion": str(api.version), "timeoutSeconds": "5"}
    with connection.watch(PODS, query, quiet_seconds=10) as lines:
        api.token = "second"
        token.write_text("second")
        api.put("Pod", "b", spec={"nodeName": "n-1"})
        assert b'"b"' in next(lines)
        api.end_watches()
        assert not list(lines)
    query["resourceVersion"] = str(api.version)
    with connection.watch(PODS, query, quiet_seconds=10) as lines:
        api.put("Pod", "c", spec={"nodeName": "n-1"})
        assert b'"c"' in next(lines)


@pytest.mark.parametrize(
    "torn",
    [
        pytest.param(lambda whole: whole[: len(whole) // 2], id="half of it"),
        pytest.param(lambda _: "", id="empty"),
        pytest.param(lambda _: "[]", id="a list"),
        pytest.param(lambda whole: whole.replace('"users"', '"user"'), id="without users"),
        pytest.param(lambda whole: whole.replace('"somebody"', '"anybody"', 1), id="a user of another name"),
        pytest.param(lambda whole: whole.replace('"token"', '"client-certificate-data"'), id="no base64"),
    ],
)
def test_a_torn_configuration_is_an_error_that_passes(
    torn: Callable[[str], str], api: FakeApi, kubeconfig: Path, opened: list[Connection]
) -> None:
    api.token = "first"
    kubeconfig.write_text(api.kubeconfig())
    connection = connect(opened, kubeconfig)
    api.token = "second"
    whole = api.kubeconfig()
    kubeconfig.write_text(torn(whole))  # as it is being written
    with pytest.raises(KubernetesError):
        connection.get(PODS)
    kubeconfig.write_text(whole)
    assert connection.get(PODS)


def test_threads_refused_together_read_the_configuration_once(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    api.token = "first"
    kubeconfig.write_text(api.kubeconfig())
    connection = connect(opened, kubeconfig)
    assert connection.get(PODS)
    api.token = "second"
    kubeconfig.write_text(api.kubeconfig())
    reads, real = list[str](), ClusterAccess.client

    def read(access: ClusterAccess) -> ClusterClient:
        reads.append(access.place)
        return real(access)

    monkeypatch.setattr(ClusterAccess, "client", read)
    together, answers = threading.Barrier(8), []

    def ask() -> None:
        together.wait()
        answers.append(connection.get(PODS))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(reads) == 1


@needs_openssl
@pytest.mark.parametrize("is_inline", [True, False], ids=["in the file", "files"])
def test_an_authority_that_is_replaced_is_read_anew(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], tmp_path: Path, *, is_inline: bool
) -> None:
    before = certificate(tmp_path, "server")
    api.tls = server_context(before)
    kubeconfig.write_text(secured(api, before, is_inline=is_inline))
    connection = connect(opened, kubeconfig)
    assert connection.get(PODS)
    after = certificate(tmp_path, "server")
    api.tls = server_context(after)
    kubeconfig.write_text(secured(api, after, is_inline=is_inline))
    hang_up(connection)
    assert connection.get(PODS)


@needs_openssl
def test_a_server_that_nobody_vouches_for_is_told_nothing(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], tmp_path: Path
) -> None:
    known, foreign = certificate(tmp_path, "known"), certificate(tmp_path, "foreign")
    api.tls = server_context(foreign)
    kubeconfig.write_text(secured(api, known))
    with pytest.raises(ApiUnreachableError, match="certificate verify failed"):
        connect(opened, kubeconfig).get(PODS)
    assert not api.requests


@needs_openssl
@pytest.mark.parametrize("is_asked", [True, False], ids=["refused by TLS", "refused with 401"])
def test_a_client_certificate_that_is_replaced_is_read_anew(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], tmp_path: Path, *, is_asked: bool
) -> None:
    """The server ends the hand-shake with the old one, or knows its name no more."""
    server, before, after = (certificate(tmp_path, name) for name in ("server", "before", "after"))
    api.tls, api.user = server_context(server, before, after), "before"
    kubeconfig.write_text(secured(api, server, before))
    connection = connect(opened, kubeconfig)
    assert connection.get(PODS)
    api.user = "after"
    if is_asked:
        api.tls = server_context(server, after)
        hang_up(connection)
    kubeconfig.write_text(secured(api, server, after))
    if is_asked:  # the server may have taken a request that ends so: who sent it decides about another
        with pytest.raises(ApiUnreachableError):
            connection.get(PODS)
    assert connection.get(PODS)


@needs_openssl
def test_certificates_within_a_kubeconfig_need_room_for_files(
    api: FakeApi, kubeconfig: Path, opened: list[Connection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL reads files alone, so the client library makes some of them."""
    server = certificate(tmp_path, "server")
    api.tls = server_context(server)
    kubeconfig.write_text(secured(api, server))
    with monkeypatch.context() as full:
        full.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        with pytest.raises(CredentialsError, match="No such file"):
            connect(opened, kubeconfig).get(PODS)
        kubeconfig.write_text(secured(api, server, is_inline=False))
        assert connect(opened, kubeconfig).get(PODS)
    kubeconfig.write_text(secured(api, server))
    assert connect(opened, kubeconfig).get(PODS)


def hang_up(connection: Connection) -> None:
    """End connections that are kept, as a server does that has begun anew."""
    client = connection._clients._client
    assert client is not None
    for kept in client.pool.pool.queue:
        if kept is not None:
            kept.close()
