from __future__ import annotations

import json

import pytest

from evictstream.streams.broker.admin import Difference, TopicsReport, advice
from evictstream.streams.broker.first_contact import KafkaFacts
from evictstream.streams.broker.locate import Broker
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.cli.topics import _show_choice
from evictstream.streams.settings import Settings
from tests.streams.cli.conftest import RunCli


def environment_of(settings: Settings) -> dict[str, str]:
    return {
        f"EVICTSTREAM_{name.upper()}": str(getattr(settings, name))
        for name in ("bootstrap_servers", "topic_prefix", "application_id", "partitions")
    }


def test_check_declare_check(cli: RunCli, settings: Settings) -> None:
    environment = environment_of(settings)

    missing = cli("topics", "check", "-o", "json", **environment)
    assert missing.returncode == 1
    assert {difference["what"] for difference in json.loads(missing.stdout)["differences"]} == {"topic"}

    declared = cli("topics", "declare", "-o", "json", **environment)
    assert declared.returncode == 0
    assert json.loads(declared.stdout)["created"] == json.loads(declared.stdout)["topics"]

    checked = cli("topics", "check", **environment)
    assert checked.returncode == 0
    count = len(topic_specs(settings))
    assert checked.stdout == f"all {count} topics at {settings.bootstrap_servers} match the settings\n"
    assert checked.stderr == ""


def test_differences_are_a_found_problem(cli: RunCli, settings: Settings) -> None:
    environment = environment_of(settings)
    cli("topics", "declare", **environment)
    result = cli("--set", "partitions=5", "topics", "check", **environment)
    assert result.returncode == 1
    assert [settings.nodes_topic, "partitions", "2", "5", "breaks"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert "set EVICTSTREAM_PARTITIONS" in result.stderr


@pytest.mark.parametrize(
    ("whats", "words"),
    [
        (["topic", "topic"], ["declare"]),
        (["partitions"], ["EVICTSTREAM_PARTITIONS", "never add"]),
        (["cleanup.policy", "retention.ms"], ["yourself"]),
        (["retention.ms", "topic"], ["declare", "yourself"]),
    ],
)
def test_advice_is_about_what_differs_and_nothing_else(whats: list[str], words: list[str]) -> None:
    said = advice(Difference(topic="t", what=what, expected="", actual="", severity="breaks") for what in whats)
    known = {"declare", "EVICTSTREAM_PARTITIONS", "never add", "yourself"}
    assert {word for word in known if word in said} == set(words)
    assert said.count(words[0]) == 1


def test_the_address_may_be_a_flag(cli: RunCli, kafka: Broker) -> None:
    result = cli("-b", kafka.bootstrap_servers, "--set", "topic_prefix=none.", "topics", "check", "-o", "json")
    assert json.loads(result.stdout)["bootstrapServers"] == kafka.bootstrap_servers


def test_what_stays_as_it_is_made_is_said(cli: RunCli, settings: Settings) -> None:
    lines = cli("topics", "declare", **environment_of(settings)).stdout.splitlines()
    assert "2 partitions, 1 copy each: this stays so" in lines
    assert "2 partitions" not in cli("topics", "declare", **environment_of(settings)).stdout


@pytest.mark.parametrize(("brokers", "copies", "warnings"), [(1, 1, 0), (2, 1, 0), (3, 1, 1), (3, 2, 1), (3, 3, 0)])
def test_few_copies_on_a_kafka_of_three_are_warned_of(
    brokers: int, copies: int, warnings: int, capsys: pytest.CaptureFixture[str]
) -> None:
    report = TopicsReport(
        bootstrap_servers="x:1",
        topics=("nodes",),
        created=("nodes",),
        differences=(),
        kafka=KafkaFacts("", "4.1", brokers),
    )
    _show_choice(Settings(replication_factor=copies), report)
    assert capsys.readouterr().err.count("EVICTSTREAM_REPLICATION_FACTOR=3") == warnings


def test_nobody_there_is_one_line_and_1(cli: RunCli) -> None:
    (port,) = free_ports(1)
    result = cli("-b", f"127.0.0.1:{port}", "--set", "admin_timeout_seconds=1", "topics", "check")
    assert result.returncode == 1
    assert result.stderr == (
        f"evictstream: no Kafka answered at 127.0.0.1:{port} within 1 s: connection refused; "
        "check the port, and that the broker runs\n"
    )
