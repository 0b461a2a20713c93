"""Each command, at level debug, against a broker that wants a password: none of its secrets is shown."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.demo.workers import environment
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.harness import copies
from tests.harness.secured import secured_broker
from tests.kit.demo.test_demo_command import QUICK, incident
from tests.streams.cli.connecting import CONNECTING, EVENT
from tests.streams.cli.running import COMMAND, PATIENCE_SECONDS, ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# What each one that runs until it is stopped says when it is at work.
AT_WORK = {"worker": b"partitions taken over", "feed": b"epoch", "execute": b"health endpoint started"}
# There is no cluster, gap, incident, pod or policy, the watch that is imported ends, the worker is stopped while it
# starts, and the executor that is played to does nothing.
FIND_NOTHING = {
    "cluster",
    "accept-gap",
    "conformance",
    "dead-letters",
    "describe",
    "explain",
    "import",
    "incidents approve",
    "incidents reject",
    "incidents show",
    "policy delete",
    "release",
    "what-if",
    "worker",
}
API_TOKEN = "api-token-of-nobody"

RUNS = {name: [*name.split(), *more.split()] for name, more in CONNECTING.items()}


# One command for each way to Kafka; `make faults` runs the others too, and each of these in every way.
OF_EACH_CLIENT = {"topics declare", "import", *AT_WORK}


def marks(name: str, *, is_usual: bool) -> list[pytest.MarkDecorator]:
    """Leave to `make faults` what differs only in the command, the form of a line, or how early it is refused."""
    return [] if is_usual and any(name.startswith(client) for client in OF_EACH_CLIENT) else [pytest.mark.kit]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as settings:
        declare_topics(settings)
        yield settings


def secrets(settings: Settings) -> dict[str, str]:
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    return {name: value.get_secret_value() for name, value in values.items() if isinstance(value, SecretStr)}


def run(settings: Settings, arguments: list[str], folder: Path, **more: str) -> tuple[int, str]:
    """Run to the end, what has none until it is at work; all that was written comes back."""
    with FakeApi() as api:
        api.token = API_TOKEN
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        places = {
            "folder": folder,
            "incident": incident(folder),
            "servers": settings.bootstrap_servers,
            "kubeconfig": kubeconfig,
        }
        return _run(settings, [argument.format(**places) for argument in arguments], more)


def _run(settings: Settings, arguments: list[str], more: dict[str, str]) -> tuple[int, str]:
    environ = {**environment(settings), **QUICK, "EVICTSTREAM_PARTITIONS": "2"}
    environ |= {"EVICTSTREAM_LOG_LEVEL": "debug", "EVICTSTREAM_ADMIN_TIMEOUT_SECONDS": "5", **more}
    at_work = AT_WORK.get(arguments[0])
    with copies.start(
        [*COMMAND, "--debug", *arguments],
        env=os.environ | environ,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(EVENT)
        process.stdin.close()
        said = b""
        for line in process.stdout:
            said += line
            if at_work is not None and at_work in line:
                process.send_signal(signal.SIGTERM)
                at_work = None
        return process.wait(PATIENCE_SECONDS), said.decode()


def test_each_secret_setting_is_in_use(secured: Settings) -> None:
    assert set(secrets(secured)) == {n for n, field in Settings.model_fields.items() if "SecretStr" in str(field)}


@pytest.mark.parametrize(
    ("arguments", "log_format"),
    [
        pytest.param(arguments, log_format, id=f"{name}-{log_format}", marks=marks(name, is_usual=log_format == "json"))
        for name, arguments in RUNS.items()
        for log_format in ("json", "console")
    ],
)
def test_no_secret_is_shown_at_debug(arguments: list[str], log_format: str, secured: Settings, tmp_path: Path) -> None:
    code, said = run(secured, arguments, tmp_path, EVICTSTREAM_LOG_FORMAT=log_format)
    assert code == 0 or (code == 1 and not FIND_NOTHING.isdisjoint({arguments[0], " ".join(arguments[:2])})), said[
        -2000:
    ]
    assert "client_id=evictstream" in said  # the library speaks
    assert "Starting KafkaAdminClient with configuration" not in said  # but not at debug, where it quotes what it sends
    assert [name for name, secret in secrets(secured).items() if secret in said] == []
    assert API_TOKEN not in said


@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        pytest.param(wrong, arguments, id=f"{name}-{wrong}", marks=marks(name, is_usual=wrong == "sasl_password"))
        for name, arguments in RUNS.items()
        for wrong in ("sasl_password", "ssl_password")  # with the second one wrong it ends before anything is sent
    ],
)
def test_no_secret_is_shown_where_it_is_refused(
    wrong: str, arguments: list[str], secured: Settings, tmp_path: Path
) -> None:
    settings = secured.model_copy(update={wrong: SecretStr("not-the-right-1")})
    code, said = run(settings, arguments, tmp_path, EVICTSTREAM_ADMIN_TIMEOUT_SECONDS="2")
    assert code not in {0, None}
    assert "Traceback" in said or '"exception": [' in said
    assert [name for name, secret in secrets(settings).items() if secret in said] == []
