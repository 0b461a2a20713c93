from __future__ import annotations

import json
import os
import pty
import signal

import pytest
from kafka import KafkaProducer

from evictstream.models.messages.codec import encode
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.settings import Settings
from tests.streams.cli.running import read_terminal, run, started
from tests.streams.cli.samples import command

FIRST_MS = 1_790_000_000_000  # 2026-09-21T14:13:20Z; Kafka refuses times that lie ahead
KEPT_HOURS = 1_000_000.0
ALL = ("commands", "--from", "beginning", "--idle-seconds", "0.5")


@pytest.fixture
def declared(settings: Settings) -> Settings:
    # A broker drops what is older than the retention, each five minutes: between writing and reading as well.
    declare_topics(settings.model_copy(update={"command_retention_hours": KEPT_HOURS}))
    return settings


def write(settings: Settings, *values: bytes | None, partition: int = 0) -> None:
    producer = KafkaProducer(**client_arguments(settings))
    try:
        for at_ms, value in enumerate(values, start=FIRST_MS):
            sent = producer.send(settings.commands_topic, value, b"lab", partition=partition, timestamp_ms=at_ms)
            sent.get(timeout=30)
    finally:
        producer.close()


def pods(stdout: bytes) -> list[str]:
    return [json.loads(line)["pod"] for line in stdout.splitlines()]


class TestOnAPipe:
    def test_messages_as_they_are_one_per_line(self, declared: Settings) -> None:
        values = [encode(command(pod=name)) for name in ("a", "b", "c")]
        write(declared, *values)
        result = run(declared, *ALL)
        assert result.returncode == 0
        assert result.stdout == b"".join(value + b"\n" for value in values)
        assert result.stderr == b""

    def test_line_breaks_inside_a_message_are_taken_out(self, declared: Settings) -> None:
        write(declared, json.dumps(json.loads(encode(command(pod="a"))), indent=2).encode())
        assert pods(run(declared, *ALL).stdout) == ["a"]

    def test_text_if_asked_for(self, declared: Settings) -> None:
        write(declared, encode(command()))
        titles, row = run(declared, *ALL, "-o", "text").stdout.decode().splitlines()
        assert titles.startswith("TIME")
        assert "shop/p-1" in row

    def test_a_long_name_moves_no_row_from_its_title(self, declared: Settings) -> None:
        write(declared, encode(command()), encode(command(cluster="c" * 40)), encode(command(pod="p-2")))
        titles, *rows = run(declared, *ALL, "-o", "text").stdout.decode().splitlines()
        assert [row.index("shop/p-") for row in rows] == [titles.index("POD")] * 3

    def test_a_pipe_has_titles_without_any_row(self, declared: Settings) -> None:
        assert run(declared, *ALL, "-o", "text").stdout.startswith(b"TIME")

    def test_unreadable_records_are_reported_and_the_rest_goes_on(self, declared: Settings) -> None:
        other = encode(command()).replace(b"EvictionCommand", b"SomethingElse!!")
        write(declared, b"nope", None, b"{}", other, encode(command(pod="a")))
        result = run(declared, *ALL)
        assert result.returncode == 0
        assert pods(result.stdout) == ["a"]
        told = result.stderr.decode().splitlines()
        assert [line.rpartition(f"{declared.commands_topic}, partition 0, offset ")[2] for line in told] == [
            "0 cannot be read: BadJson: JSON is malformed: invalid character (byte 4)",
            "1 cannot be read: no value",
            "2 cannot be read: MissingField: Object missing required field `apiVersion`",
            "3 cannot be read: not an eviction command",
        ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--cluster", "other"], ["b"], id="cluster"),
        pytest.param(["--node", "n-2"], ["c"], id="node"),
        pytest.param(["--action", "Evict"], ["c"], id="action"),
        pytest.param(["--action", "evict", "--action", "Cancel"], ["c", "d"], id="actions"),
        pytest.param(["--cluster", "lab", "--action", "Schedule"], ["a"], id="both"),
        pytest.param(["--max", "2"], ["a", "b"], id="max"),
        pytest.param(["--cluster", "lab", "--max", "2"], ["a", "c"], id="max-counts-what-is-shown"),
        pytest.param(["--from", "2026-09-21T14:13:20.002Z"], ["c", "d"], id="instant"),
        pytest.param(["--from", "now"], [], id="now"),
    ],
)
def test_only_what_is_asked_for(arguments: list[str], expected: list[str], declared: Settings) -> None:
    write(
        declared,
        encode(command(pod="a")),
        encode(command(pod="b", cluster="other")),
        encode(command(Action.EVICT, pod="c", node="n-2")),
        encode(command(Action.CANCEL, pod="d")),
    )
    result = run(declared, *ALL, *arguments)
    assert result.returncode == 0
    assert pods(result.stdout) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_follows_until_stopped_and_that_is_0(number: signal.Signals, declared: Settings) -> None:
    write(declared, encode(command(pod="before")))
    with started(declared, "commands", "--from", "beginning") as process:
        assert process.stdout is not None
        assert pods(process.stdout.readline()) == ["before"]
        write(declared, encode(command(pod="meanwhile")), partition=1)
        assert pods(process.stdout.readline()) == ["meanwhile"]
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (0, b"", b"")


def test_a_reader_that_goes_away_is_no_error(declared: Settings) -> None:
    write(declared, encode(command()))
    with started(declared, "commands", "--from", "beginning") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        write(declared, encode(command()))
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_rows_on_a_terminal(declared: Settings) -> None:
    write(declared, encode(command()))
    ours, theirs = pty.openpty()
    try:
        with started(declared, *ALL, stdout=theirs) as process:
            assert process.wait(timeout=30) == 0
            os.close(theirs)
        shown = read_terminal(ours).decode()
    finally:
        os.close(ours)
    titles, row = shown.splitlines()
    assert titles.index("NODE") == row.index("n-1")


@pytest.mark.parametrize("start", ["yesterday", "2026-11-21T02:15:00", "1960-01-01T00:00:00Z"])
def test_a_start_that_is_none_is_wrong_use(start: str) -> None:
    result = run(Settings(bootstrap_servers="127.0.0.1:1"), "commands", "--from", start)
    assert result.returncode == 2
    assert f"--from {start} is not a time" in result.stderr.decode()


def test_a_missing_topic_is_one_line_and_1(settings: Settings) -> None:
    result = run(settings, "commands")
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1
    assert json.loads(result.stderr)["fields"] == {"differences": [f"{settings.commands_topic} is missing"]}


def test_nobody_there_is_one_line_and_1() -> None:
    (port,) = free_ports(1)
    settings = Settings(bootstrap_servers=f"127.0.0.1:{port}")
    result = run(settings, "-s", "admin_timeout_seconds=1", "commands")
    assert result.returncode == 1
    assert result.stderr.count(b"\n") == 1
    assert json.loads(result.stderr)["fields"]["bootstrapServers"] == f"127.0.0.1:{port}"
