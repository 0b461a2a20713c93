"""The command: wrong use without a Kafka, and the whole story on a small incident with one."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from evictstream.kit.cli.demo import next_steps
from evictstream.kit.demo import judgement, story
from evictstream.kit.oracle import InputRecord, MessageRecord
from evictstream.streams.broker.locate import Broker
from evictstream.streams.broker.run_names import delete_own, named
from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import Event, node, pod, taint, tolerates

PATIENCE_SECONDS = 20
COMMAND = [sys.executable, "-m", "evictstream.streams.cli.main"]

# So that a killed worker is missed soon.
QUICK = {
    "EVICTSTREAM_SESSION_TIMEOUT_SECONDS": "3",
    "EVICTSTREAM_HEARTBEAT_INTERVAL_SECONDS": "0.5",
    "EVICTSTREAM_LEASE_MARGIN_SECONDS": "1",
    "EVICTSTREAM_PARTITIONS": "4",
}


def incident(folder: Path) -> Path:
    """Six nodes with three pods each. All get a taint after 1 s, half of them lose it again after 4 s."""
    events: list[Event] = []
    for number in range(6):
        name, uid = f"n-{number}", f"node-{number}"
        events.append(node(0, kind="ADDED", name=name, uid=uid))
        events.append(node(1 + number / 100, taint(), name=name, uid=uid))
        if number % 2:
            events.append(node(5 + number / 100, name=name, uid=uid))
        for kind, tolerations in {"now": (), "soon": (tolerates(seconds=2),), "late": (tolerates(seconds=9),)}.items():
            me = f"{kind}-{number}"
            events.append(pod(0.5, *tolerations, kind="ADDED", uid=me, name=me, node_name=name))
    events.sort(key=lambda event: str(event["observedAt"]))
    with gzip.open(folder / "events.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(event) + "\n" for event in events)
    return folder


@contextlib.contextmanager
def playing(*arguments: str, until: bytes, **more: str) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
    """Start a command line and wait until it has said something; gives the process and what it said so far."""
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | QUICK | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            assert process.stdout is not None
            said = b""
            for line in process.stdout:
                said += line
                if until in line:
                    break
            yield process, said
        finally:
            process.terminate()


def topics(kafka: Broker) -> set[str]:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    try:
        return {name for name in client.list_topics() if "demo" in name}
    finally:
        client.close()


def soon(kafka: Broker, expected: set[str]) -> set[str]:
    """The topics, once they are these: a broker tells of a deletion some time after the controller has done it."""
    until = time.monotonic() + 10
    while (found := topics(kafka)) != expected and time.monotonic() < until:
        time.sleep(0.2)
    return found


def workers(said: bytes) -> list[int]:
    pids = [int(number) for number in re.findall(rb"process (\d+)", said)]
    assert len(pids) >= story.DEMO_WORKERS, said
    return pids


def test_who_does_not_find_the_program_is_told_where(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(next_steps())
    monkeypatch.setenv("PATH", os.defpath)
    assert list(next_steps()) == [
        f'to type `evictstream` in this shell: export PATH="{Path(sys.executable).parent}:$PATH"',
        found[-1],
    ]


@pytest.mark.slow
def test_a_killed_worker_is_survived(kafka: Broker, tmp_path: Path) -> None:
    before = topics(kafka)
    done = subprocess.run(
        [*COMMAND, "-b", kafka.bootstrap_servers, "demo", "--incident", str(incident(tmp_path))],
        env=os.environ | QUICK,
        capture_output=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == ExitCode.DONE, (done.stdout, done.stderr)
    assert b"deadlines pending" in done.stdout
    assert b"has taken over" in done.stdout
    assert b"the oracle agrees" in done.stdout
    assert b"next: `evictstream broker`" in done.stdout.splitlines()[-1]
    assert soon(kafka, before) == before


@pytest.mark.slow
@pytest.mark.kit  # the demo that ends by itself leaves nothing behind either
def test_sigterm_in_the_middle_leaves_nothing_behind(kafka: Broker, tmp_path: Path) -> None:
    before = topics(kafka)
    arguments = ("-b", kafka.bootstrap_servers, "demo", "--incident", str(incident(tmp_path)))
    with playing(*arguments, until=b"evictions: ") as (process, said):
        pids = workers(said)
        assert len(topics(kafka)) > len(before)
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"stopped; everything that was started" in rest
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert soon(kafka, before) == before


@pytest.mark.slow
@pytest.mark.kit
def test_a_killed_demo_leaves_no_worker_and_is_named(kafka: Broker, tmp_path: Path) -> None:
    before = topics(kafka)
    arguments = ("-b", kafka.bootstrap_servers, "demo", "--incident", str(incident(tmp_path)))
    with playing(*arguments, until=b"are played") as (process, said):
        process.kill()
        give_up = time.monotonic() + PATIENCE_SECONDS
        while any(Path(f"/proc/{pid}").exists() for pid in workers(said)):
            assert time.monotonic() < give_up
            time.sleep(0.05)
    left = topics(kafka) - before
    name = min(left)[: len(f"{story.PREFIX}01234567")]
    try:
        with playing(*arguments, until=b"of another demo") as (process, said):
            assert f"topics {name}* are of another demo".encode() in said
        assert soon(kafka, before | left) == before | left
    finally:
        delete_own(named(Settings(bootstrap_servers=kafka.bootstrap_servers), name))


@pytest.mark.slow
@pytest.mark.kit
def test_it_starts_its_own_kafka_despite_the_shells_settings(kafka: Broker, tmp_path: Path) -> None:
    before = topics(kafka)
    shell = {
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "EVICTSTREAM_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "EVICTSTREAM_SASL_MECHANISM": "PLAIN",
        "EVICTSTREAM_SASL_USERNAME": "me",
        "EVICTSTREAM_SASL_PASSWORD": "hunter2",
        "EVICTSTREAM_REPLICATION_FACTOR": "3",
        "EVICTSTREAM_MIN_INSYNC_REPLICAS": "2",
    }
    with playing("demo", "--incident", str(incident(tmp_path)), until=b"(process ", **shell) as (process, said):
        assert f"the demo does not use the configured Kafka at {kafka.bootstrap_servers}".encode() in said
        assert soon(kafka, before) == before
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


ELSEWHERE = "elsewhere:9092"


@pytest.mark.parametrize(
    ("arguments", "variables", "used"),
    [
        pytest.param(["demo"], {"KAFKA_BOOTSTRAP_SERVERS": ELSEWHERE}, None, id="variable of many programs"),
        pytest.param(["demo"], {"EVICTSTREAM_BOOTSTRAP_SERVERS": ELSEWHERE}, None, id="variable of the service"),
        pytest.param(["--config", "{config}", "demo"], {}, None, id="file of the service"),
        pytest.param(["-b", ELSEWHERE, "demo"], {}, ELSEWHERE, id="flag"),
        pytest.param(["-b", ELSEWHERE, "demo"], {"KAFKA_BOOTSTRAP_SERVERS": "x:1"}, ELSEWHERE, id="flag and variable"),
    ],
)
def test_only_a_flag_names_a_kafka_for_the_demo(
    arguments: list[str], variables: dict[str, str], used: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "evictstream.toml"
    config.write_text(f'bootstrap_servers = "{ELSEWHERE}"')
    seen: list[str | None] = []

    def tell(settings: Settings, *_: object, **__: object) -> Generator[str]:
        seen.append(settings.bootstrap_servers)
        yield "once upon a time"

    monkeypatch.setattr(story, "tell", tell)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run([argument.format(config=config) for argument in arguments]) == ExitCode.DONE
    assert seen == [used]


def test_folder_without_an_incident_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--incident", str(tmp_path)]) == ExitCode.WRONG_USE
    assert "events.jsonl.gz" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--help"]) == ExitCode.DONE
    assert "evictstream demo --incident" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("found", "code"), [([], ExitCode.DONE), (["late"], ExitCode.FOUND_PROBLEM)])
def test_exit_code_says_whether_there_were_problems(
    found: list[str], code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(_settings: Settings, _incident: Path, problems: list[str], **_: object) -> Generator[str]:
        yield "once upon a time"
        problems += found

    monkeypatch.setattr(story, "tell", tell)
    assert run(["demo"]) == code


@pytest.mark.slow
@pytest.mark.kit  # test_judgement.py finds missing commands, and what is found is an exit code above
def test_a_command_that_is_missing_fails_the_demo(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_log(settings: Settings) -> tuple[list[InputRecord], list[MessageRecord]]:
        inputs, messages = judgement.read_log(settings)
        messages.remove(next(one for one in messages if one.topic == "commands" and b'"Evict"' in one.value))
        return inputs, messages

    monkeypatch.setattr(story, "read_log", read_log)
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    arguments = ["-b", kafka.bootstrap_servers, "demo", "--no-kill", "--incident", str(incident(tmp_path))]
    assert run(arguments) == ExitCode.FOUND_PROBLEM
    shown = capsys.readouterr().out
    (logs,) = re.findall(r"the workers' logs are in (\S+)", shown)
    assert "1 problem(s)" in shown
    assert (Path(logs) / "worker-1.log").stat().st_size > 0
    shutil.rmtree(logs)
