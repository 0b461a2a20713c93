"""`cluster forget` and `accept-gap`: what they send, and that they ask first."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

from streams.broker.admin import declare_topics
from streams.settings import Settings
from tests.harness.workers import WorkerProcess
from tests.streams.cli.running import run, started
from tests.streams.feed.reading import read_one

FORGET = ("cluster", "forget", "prod-eu-1", "--wait", "0")


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


def orders(settings: Settings) -> list[tuple[int, bytes | None, str]]:
    records = read_one(settings, settings.nodes_topic)
    return sorted((record.partition, record.key, json.loads(record.value or b"")["type"]) for record in records)


def answer(settings: Settings, *arguments: str, typed: bytes) -> tuple[int | None, str, str]:
    """Run with a terminal on stdin on which somebody types."""
    ours, theirs = pty.openpty()
    try:
        with started(settings, *arguments, stdin=theirs) as process:
            os.write(ours, typed)
            stdout, stderr = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    return process.returncode, stdout.decode(), stderr.decode()


def test_forget_tells_every_partition(declared: Settings) -> None:
    result = run(declared, *FORGET, "--yes")
    assert result.returncode == 0
    assert result.stdout.decode() == f"told all 2 partitions of {declared.nodes_topic} to forget prod-eu-1\n"
    assert result.stderr == b""
    assert orders(declared) == [(0, b"prod-eu-1/", "FORGET"), (1, b"prod-eu-1/", "FORGET")]


def test_forget_waits_until_a_worker_has_read_it(declared: Settings, tmp_path: Path) -> None:
    """Its pods come by another topic: a feed that comes back too soon would be forgotten in part."""
    with WorkerProcess(declared, tmp_path) as worker:
        worker.wait_ready()
        result = run(declared, "cluster", "forget", "prod-eu-1", "--yes", "-o", "json")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["unread"] == []
        assert worker.stop() == 0


def test_forget_says_which_partitions_have_not_read_it(declared: Settings) -> None:
    result = run(declared, "cluster", "forget", "prod-eu-1", "--yes", "--wait", "1")
    assert result.returncode == 1
    assert b"not read within 1 s by partitions 0, 1" in result.stderr
    assert len(orders(declared)) == 2


def test_accept_gap_tells_every_partition(declared: Settings) -> None:
    result = run(declared, "accept-gap", "-y", "-o", "json")
    assert result.returncode == 0
    assert json.loads(result.stdout) == {
        "type": "ACCEPT_GAP",
        "topic": declared.nodes_topic,
        "partitions": [0, 1],
    }
    assert orders(declared) == [(0, b"*/", "ACCEPT_GAP"), (1, b"*/", "ACCEPT_GAP")]


def test_accept_gap_tells_the_one_named(declared: Settings) -> None:
    result = run(declared, "accept-gap", "--partition", "1", "--yes")
    assert result.stdout.decode() == f"told 1 partitions of {declared.nodes_topic} to accept their gap: 1\n"
    assert orders(declared) == [(1, b"*/", "ACCEPT_GAP")]


def test_a_partition_that_is_none_is_wrong_use(declared: Settings) -> None:
    result = run(declared, "accept-gap", "--partition", "2", "--yes")
    assert result.returncode == 2
    assert b"has 2 partitions, none numbered 2" in result.stderr
    assert orders(declared) == []


@pytest.mark.parametrize("arguments", [FORGET, ("accept-gap",)])
class TestAsking:
    def test_without_a_terminal_it_is_refused(self, arguments: tuple[str, ...], declared: Settings) -> None:
        result = run(declared, *arguments)
        assert result.returncode == 2
        assert b"add --yes" in result.stderr
        assert orders(declared) == []

    def test_a_yes_sends(self, arguments: tuple[str, ...], declared: Settings) -> None:
        code, stdout, stderr = answer(declared, *arguments, "-o", "json", typed=b"y\n")
        assert code == 0
        assert str(declared.bootstrap_servers) in stderr
        assert json.loads(stdout)["partitions"] == [0, 1]
        assert len(orders(declared)) == 2

    @pytest.mark.parametrize("typed", [b"n\n", b"\n"])
    def test_a_no_sends_nothing(self, typed: bytes, arguments: tuple[str, ...], declared: Settings) -> None:
        code, stdout, stderr = answer(declared, *arguments, typed=typed)
        assert code == 1
        assert "nothing was sent" in stderr
        assert stdout == ""
        assert orders(declared) == []

    def test_missing_topics_are_told_before_the_question(self, arguments: tuple[str, ...], settings: Settings) -> None:
        code, _, stderr = answer(settings, *arguments, typed=b"")
        assert code == 1
        assert "is missing" in stderr
        assert "?" not in stderr


@pytest.mark.parametrize("name", ["*", "a/b", ""])
def test_a_name_that_is_none_is_wrong_use(name: str) -> None:
    result = run(Settings(bootstrap_servers="127.0.0.1:1"), "cluster", "forget", name, "--yes")
    assert result.returncode == 2
    assert b"cannot be the name of a cluster" in result.stderr
