"""Within three seconds each command says why Kafka cannot be used, whatever stands in the way."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.demo.workers import environment
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.settings import Settings
from tests.harness import copies
from tests.harness.secured import PASSWORD, secured_settings, secured_ways, server_tls
from tests.kit.demo.test_demo_command import incident
from tests.streams.cli.connecting import CONNECTING, EVENT, command_line
from tests.streams.cli.running import COMMAND, PATIENCE_SECONDS, ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.kit, pytest.mark.alone]

WORDS_SECONDS = 3.0

TROUBLES = {
    "refused": "connection refused",
    "unknown-host": "the host name cannot be resolved",
    "silent": "NoAnswer",
    "tls-to-plain": "speaks PLAINTEXT (no TLS, no login), but the settings say SSL",
    "plain-to-tls": "speaks SASL_SSL (TLS, a login), but the settings say PLAINTEXT",
    "wrong-login": "refused the login",
    "no-right": "right",
    "no-topics": "missing",
    "no-inputs": "missing",
}
"""What stands in the way, with words of its cause; `NoAnswer` is that of a line of the log."""

PASSING = {"refused", "silent", "unknown-host"}
"""Whatever may pass is waited for."""

WAITING = {"execute", "feed", "worker"}
"""Services wait for missing topics, which may be created while they start."""

MAKE_THEIR_OWN = {"conformance executor", "conformance feed", "demo", "topics check", "topics declare"}
"""No topics are no trouble for these: they make or check them."""


@pytest.fixture(scope="module")
def settings_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Settings]]:
    """Settings that lead into each trouble; `alice` may log in, and has no right to anything."""
    way, folder = "listener.name.detour0", tmp_path_factory.mktemp("tls")
    tls, authority = server_tls(folder, way)
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
    properties = tls | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # the plain listener
        f"{way}.sasl.enabled.mechanisms": "PLAIN",
        f"{way}.plain.sasl.jaas.config": login,
    }
    with ExitStack() as stack:
        plain, (secured,) = stack.enter_context(secured_ways(["SASL_SSL"], properties))
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        alice = secured_settings(secured, authority)
        nobody = Settings(bootstrap_servers=plain, partitions=2)
        declare_topics(nobody)
        yield {
            "refused": nobody.model_copy(update={"bootstrap_servers": f"127.0.0.1:{free_ports(1)[0]}"}),
            "unknown-host": nobody.model_copy(update={"bootstrap_servers": "no-such-host.invalid:9092"}),
            "silent": nobody.model_copy(update={"bootstrap_servers": f"127.0.0.1:{silent.getsockname()[1]}"}),
            "tls-to-plain": nobody.model_copy(update={"security_protocol": "SSL"}),
            "plain-to-tls": nobody.model_copy(update={"bootstrap_servers": secured}),
            "wrong-login": alice.model_copy(update={"sasl_password": SecretStr("not-the-right-1")}),
            "no-right": alice,
            "no-topics": nobody.model_copy(update={"topic_prefix": "nothing.", "application_id": "nothing"}),
            "no-inputs": nobody.model_copy(update={"topic_prefix": "nothing."}),
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("places")
    incident(folder)
    with FakeApi() as api:
        (folder / "kubeconfig").write_text(api.kubeconfig())
        yield folder


CASES = [
    (name, trouble)
    for trouble, words in TROUBLES.items()
    for name in CONNECTING
    if words != "missing" or name not in MAKE_THEIR_OWN
]


@pytest.mark.parametrize(("name", "trouble"), CASES)
def test_the_cause_is_said_within_three_seconds(
    name: str, trouble: str, settings_in: Mapping[str, Settings], folder: Path, tmp_path: Path
) -> None:
    settings = settings_in[trouble]
    places = {"folder": tmp_path, "incident": folder, "kubeconfig": folder / "kubeconfig"}
    process = copies.start(
        [*COMMAND, *command_line(name, servers=settings.bootstrap_servers, **places)],
        env=os.environ | environment(settings),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdin is not None
            process.stdin.write(EVENT)
            process.stdin.close()
            said = words_until(process, TROUBLES[trouble])
            assert TROUBLES[trouble] in said, said
            if trouble not in PASSING and not (TROUBLES[trouble] == "missing" and name in WAITING):
                assert process.wait(PATIENCE_SECONDS) == 1
        finally:
            process.kill()


def words_until(process: subprocess.Popen[Any], words: str) -> str:
    """Read stderr until it has the words, or time is up."""
    assert process.stderr is not None
    give_up_at, said = time.monotonic() + WORDS_SECONDS, b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while words.encode() not in said and (left := give_up_at - time.monotonic()) > 0:
            if selector.select(left):
                piece = os.read(process.stderr.fileno(), 65_536)
                said += piece
                if not piece:
                    break
    return said.decode()
