"""Each command that cannot use Kafka says why, in the same words, and ends with 1."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from tests.kit.demo.test_demo_command import incident
from tests.streams.cli.command_tree import commands
from tests.streams.cli.connecting import ALONE, CONNECTING, EVENT, command_line, takes_json

SERVICES = {"execute", "feed", "worker"}


def test_every_command_is_in_the_table_or_needs_no_kafka() -> None:
    assert CONNECTING.keys() | ALONE == {" ".join(words) for words, _ in commands() if words}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    folder = tmp_path_factory.mktemp("places")
    with FakeApi() as api:
        (folder / "kubeconfig").write_text(api.kubeconfig())
        (folder / "event").write_bytes(EVENT)
        names = {name: folder / name for name in ("event", "kubeconfig")}
        yield {**names, "folder": folder, "incident": incident(folder)}


def last_words(stderr: str) -> tuple[str, str]:
    """The sentence of the last line, and what it is: a line of a log, an error as JSON, or text."""
    *_, last = stderr.splitlines()
    if not last.startswith("{"):
        return last.removeprefix("evictstream: "), "text"
    said = json.loads(last)
    if "exit_code" in said:
        return said["error"], "log"
    assert (said["error"], said["exitCode"]) == ("BrokerUnreachableError", ExitCode.FOUND_PROBLEM)
    return f"{said['message']}; {said['nextStep']}", "json"


@pytest.mark.parametrize(
    ("host", "cause"),
    [
        ("127.0.0.1", "connection refused; check the port, and that the broker runs"),
        ("no-such-host.invalid", "the host name cannot be resolved"),
        ("an..empty.label", "the host name cannot be resolved (it is no name of a host)"),
    ],
    ids=["refused", "unknown-host", "no-host-name"],
)
@pytest.mark.parametrize("name", CONNECTING)
def test_each_command_says_the_cause(
    name: str,
    host: str,
    cause: str,
    places: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (port,) = free_ports(1)
    address = f"{host}:{port}"
    monkeypatch.setenv("EVICTSTREAM_BOOTSTRAP_SERVERS", address)
    monkeypatch.setenv("EVICTSTREAM_ADMIN_TIMEOUT_SECONDS", "0.1")
    wants = ["-o", "json"] if takes_json(name) else []
    with Path(str(places["event"])).open(encoding="utf-8") as event:
        monkeypatch.setattr(sys, "stdin", event)
        assert run(command_line(name, *wants, servers=address, **places)) == ExitCode.FOUND_PROBLEM
    said = capsys.readouterr()
    sentence, form = last_words(said.err)
    assert said.out == "" or not wants
    assert sentence.startswith(f"no Kafka answered at {address} within 0.1 s: {cause}")
    assert form == ("log" if name in SERVICES else "json" if wants else "text")
