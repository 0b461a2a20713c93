"""`cluster forget` and `accept-gap`: what they show and send, that they ask first, and what they refuse."""

from __future__ import annotations

import contextlib
import json
import os
import pty
from pathlib import Path

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import TopicReader, commands
from tests.harness.rows import State
from tests.harness.workers import WorkerProcess
from tests.streams.cli.running import run, started
from tests.streams.feed.reading import read_one

FORGET = ("cluster", "forget", "prod-eu-1", "--wait", "0")
HERE = 1
"""The partition of `prod-eu-1` and of `staging`, of two; `heard` is in the other one."""


TAINT: dict[str, object] = {"key": "lab", "effect": "NoExecute"}
LOST_IN = {"nodes": 7, "pods": 100}


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


@pytest.fixture
def state(declared: Settings) -> State:
    """Three clusters: `prod-eu-1` with all there is, `staging` with a node, `heard` with heartbeats only."""
    state = State(declared)
    state.heartbeat("prod-eu-1")
    state.heartbeat("heard")
    for n in range(6):
        state.node("prod-eu-1", f"n{n}", *([TAINT] if n % 2 else []))
        for p in range(3):
            state.pod("prod-eu-1", f"n{n}", f"p{n}-{p}")
    state.pod("prod-eu-1", "n1", "p1-0", event_type="DELETED")  # its row is gone, its eviction has ended
    state.node("prod-eu-1", "n0", event_type="DELETED")
    state.node("staging", "n0")
    return state


@pytest.fixture
def known(state: State) -> Settings:
    """A service that knows these, and has a gap in the partition of two of them."""
    state.gap(HERE, **LOST_IN)
    state.write()
    return state.settings


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


def test_forget_is_one_record_in_the_partition_of_the_cluster(known: Settings) -> None:
    result = run(known, *FORGET, "--yes")
    assert result.returncode == 0
    assert result.stdout.decode() == "wrote the signal to forget prod-eu-1\n"
    assert orders(known) == [(HERE, b"prod-eu-1", "FORGET")]


def test_forget_shows_before_how_much_it_forgets(known: Settings) -> None:
    result = run(known, *FORGET, "--yes", "-o", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["known"] == {"nodes": 5, "pods": 17, "openEvictions": 8}
    assert (found["partition"], found["isRead"]) == (HERE, None)
    assert found["heartbeatAt"].startswith("2026-11-21T12:00:0")
    assert found["forgottenAt"] is None
    said = run(known, *FORGET, "--yes").stderr.decode()
    assert "prod-eu-1 has 5 nodes, 17 pods and 8 open evictions; the last heartbeat of its feed: 2026-" in said


def test_rows_of_another_cluster_of_the_partition_do_not_count(known: Settings) -> None:
    result = run(known, "cluster", "forget", "staging", "--yes", "--wait", "0", "-o", "json")
    assert json.loads(result.stdout)["known"] == {"nodes": 1, "pods": 0, "openEvictions": 0}


def test_a_cluster_known_by_heartbeats_alone_can_be_forgotten(known: Settings) -> None:
    result = run(known, "cluster", "forget", "heard", "--yes", "--wait", "0")
    assert result.returncode == 0
    assert len(orders(known)) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("prd-eu-1", "did you mean prod-eu-1?", id="mistyped"),
        pytest.param("x", "known clusters: heard, prod-eu-1, staging", id="like no other"),
    ],
)
def test_a_cluster_that_nobody_knows_is_not_forgotten(name: str, said: str, known: Settings) -> None:
    result = run(known, "cluster", "forget", name, "--yes")
    assert result.returncode == 1
    assert f"nothing is known of {name}; nothing was sent" in result.stderr.decode()
    assert said in result.stderr.decode()
    assert result.stdout == b""
    as_data = run(known, "cluster", "forget", name, "--yes", "-o", "json")
    assert as_data.returncode == 1
    found = json.loads(as_data.stdout)
    assert (found["known"], found["partition"], found["unreadInputs"]) == (None, None, [])
    assert found["clusters"] == ["heard", "prod-eu-1", "staging"]
    assert orders(known) == []


def test_a_cluster_that_was_forgotten_is_not_forgotten_twice(state: State) -> None:
    state.forget("prod-eu-1")
    state.write()
    result = run(state.settings, *FORGET, "--yes")
    assert result.returncode == 1
    assert b"nothing is known of prod-eu-1: it was forgotten at 2026-11-21T12:0" in result.stderr
    assert orders(state.settings) == []


def test_a_cluster_all_of_whose_rows_are_gone_is_unknown(declared: Settings) -> None:
    state = State(declared)
    state.node("gone", "n0")
    state.write()
    state.outboxes[state.partition_of("gone")].rows.update({b"node\0gone/n0": None})
    state.write()
    assert run(declared, "cluster", "forget", "gone", "--yes").returncode == 1


def test_an_unread_cluster_is_reported_as_perhaps_there(known: Settings) -> None:
    with Feed(known, "new") as feed:
        feed.node("n0")
        feed.flush()
    result = run(known, "cluster", "forget", "new", "--yes")
    assert result.returncode == 1
    said = result.stderr.decode()
    assert f"workers have not read all of {known.nodes_topic} yet" in said
    as_data = run(known, "cluster", "forget", "new", "--yes", "-o", "json")
    assert json.loads(as_data.stdout)["unreadInputs"] == [known.nodes_topic]


def test_forget_waits_until_a_worker_has_read_it(declared: Settings, tmp_path: Path) -> None:
    """Its pods come by another topic: a feed that comes back too soon would be forgotten in part."""
    with WorkerProcess(declared, tmp_path) as worker, Feed(declared, "prod-eu-1") as feed:
        worker.wait_ready()
        feed.node("n0", taint())
        feed.pod("n0", "a", tolerates(300))
        feed.flush()
        with contextlib.closing(TopicReader(declared, declared.commands_topic)) as reader:
            reader.wait_for(lambda seen: "a" in commands(seen, "Schedule"), "a schedule")
        result = run(declared, "cluster", "forget", "prod-eu-1", "--yes", "-o", "json")
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        assert found["isRead"]
        assert found["known"] == {"nodes": 1, "pods": 1, "openEvictions": 1}
        again = run(declared, "cluster", "forget", "prod-eu-1", "--yes", "-o", "json")
        assert again.returncode == 1
        assert json.loads(again.stdout)["forgottenAt"] is not None
        assert worker.stop() == 0


def test_forget_says_that_no_worker_has_read_it(known: Settings) -> None:
    result = run(known, "cluster", "forget", "prod-eu-1", "--yes", "--wait", "1")
    assert result.returncode == 1
    assert b"no worker has read it within 1 s" in result.stderr
    assert len(orders(known)) == 1


def test_accept_gap_is_a_record_of_each_cluster_that_waits(known: Settings) -> None:
    result = run(known, "accept-gap", "-y", "-o", "json")
    assert result.returncode == 0
    found = json.loads(result.stdout)
    (gap,) = found.pop("gaps")
    assert found == {"type": "ACCEPT_GAP", "topic": known.nodes_topic, "clusters": ["prod-eu-1", "staging"]}
    unlisted = gap.pop("unlisted")
    assert gap == {"partition": HERE, "foundAt": "2026-11-21T12:00:00.000000Z", "lost": LOST_IN}
    assert unlisted == {"prod-eu-1": ["nodes", "pods"], "staging": ["nodes", "pods"]}
    assert orders(known) == [(HERE, b"prod-eu-1", "ACCEPT_GAP"), (HERE, b"staging", "ACCEPT_GAP")]


def test_accept_gap_shows_before_what_was_lost(known: Settings) -> None:
    said = run(known, "accept-gap", "--yes").stderr.decode()
    assert "partition 1: 7 records of nodes, 100 records of pods were lost, found at 2026-11-21T12:00:00" in said
    assert "prod-eu-1 (nodes and pods)" in said


def test_accept_gap_tells_the_one_named(known: Settings) -> None:
    result = run(known, "accept-gap", "--cluster", "staging", "--yes")
    assert result.stdout.decode() == "accepted the gap of staging\n"
    assert orders(known) == [(HERE, b"staging", "ACCEPT_GAP")]


@pytest.mark.parametrize(
    ("arguments", "has_gap", "said"),
    [
        pytest.param([], False, "there is no gap", id="none anywhere"),
        pytest.param(
            ["--cluster", "heard"],
            True,
            "no gap to accept in heard; there is one in prod-eu-1, staging",
            id="others",
        ),
    ],
)
def test_where_no_gap_is_none_is_accepted(arguments: list[str], has_gap: bool, said: str, state: State) -> None:  # noqa: FBT001 - a case
    if has_gap:
        state.gap(HERE, **LOST_IN)
    state.write()
    result = run(state.settings, "accept-gap", "--yes", *arguments)
    assert result.returncode == 1
    assert said in result.stderr.decode()
    as_data = run(state.settings, "accept-gap", "--yes", "-o", "json", *arguments)
    assert as_data.returncode == 1
    found = json.loads(as_data.stdout)
    assert (found["clusters"], bool(found["gaps"])) == ([], has_gap)
    assert orders(state.settings) == []


@pytest.mark.parametrize("arguments", [FORGET, ("accept-gap",)])
class TestAsking:
    def test_without_a_terminal_it_is_shown_and_refused(self, arguments: tuple[str, ...], known: Settings) -> None:
        result = run(known, *arguments)
        assert result.returncode == 2
        shown, refused = result.stderr.decode().splitlines()[-2:]
        assert "prod-eu-1" in shown
        assert "add --yes" in refused
        assert orders(known) == []

    def test_a_yes_sends(self, arguments: tuple[str, ...], known: Settings) -> None:
        code, stdout, stderr = answer(known, *arguments, "-o", "json", typed=b"y\n")
        assert code == 0
        assert str(known.bootstrap_servers) in stderr
        told = json.loads(stdout)
        assert {key for _, key, _ in orders(known)} <= {b"prod-eu-1", b"staging"}
        assert {order for _, _, order in orders(known)} == {told["type"]}

    @pytest.mark.parametrize("typed", [b"n\n", b"\n"])
    def test_a_no_sends_nothing(self, typed: bytes, arguments: tuple[str, ...], known: Settings) -> None:
        code, stdout, stderr = answer(known, *arguments, typed=typed)
        assert code == 1
        assert "nothing was sent" in stderr
        assert stdout == ""
        assert orders(known) == []

    def test_missing_topics_are_reported_before_the_question(
        self, arguments: tuple[str, ...], settings: Settings
    ) -> None:
        code, _, stderr = answer(settings, *arguments, typed=b"")
        assert code == 1
        assert "is missing" in stderr
        assert "?" not in stderr


@pytest.mark.parametrize("name", ["a/b", ""])
def test_a_name_that_is_none_is_wrong_use(name: str) -> None:
    result = run(Settings(bootstrap_servers="127.0.0.1:1"), "cluster", "forget", name, "--yes")
    assert result.returncode == 2
    assert b"cannot be the name of a cluster" in result.stderr
