"""`evictstream get` and `describe` of a service whose workers do not run: its rows are all that is read."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
from typing import Any

import pytest
from kafka import KafkaProducer

from evictstream.models.instants import instant_text
from evictstream.models.messages.codec import encode
from evictstream.models.messages.vocabulary import DecisionKind, Verdict
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.settings import Settings
from tests.harness.rows import NOON_US, SECOND_US, State
from tests.kit.replay.test_story import decision
from tests.models.steering.test_brakes import record
from tests.streams.cli.running import read_terminal, run, started

NOWHERE = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1", "admin_timeout_seconds": 1})
TAINT: dict[str, object] = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
LONG = "payments-api-5f6d8c9b7-x2kq9"


@pytest.fixture
def rows(settings: Settings) -> State:
    """Two clusters; `lab` has two pods on a tainted node."""
    declare_topics(settings)
    rows = State(settings)
    rows.node("lab", "n-1", TAINT)
    rows.pod("lab", "n-1", "web")
    rows.pod("lab", "n-1", LONG)
    rows.node("other", "m-1")
    rows.pod("other", "m-1", "quiet")
    rows.write()
    return rows


def shown(settings: Settings, *arguments: str, code: int = 0) -> str:
    result = run(settings, *arguments)
    assert result.returncode == code, result.stderr
    return (result.stdout if code == 0 else result.stderr).decode()


def on_terminal(settings: Settings, columns: int, *arguments: str) -> str:
    """Run on a terminal of so many columns; returns what it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        with started(settings, *arguments, stdout=theirs) as process:
            assert process.wait(timeout=30) == 0
            os.close(theirs)
        return read_terminal(ours).decode()
    finally:
        os.close(ours)


def test_what_a_brake_holds_names_it(rows: State) -> None:
    settings = rows.settings
    with open_producer(settings, delivery_seconds=30.0) as producer:
        producer.send(settings.brakes_topic, key=b"b-1", value=record("b-1", clusters=["lab"])).get(30)
    found = json.loads(shown(settings, "get", "evictions", "-o", "json"))
    assert [(one["pod"], one["heldBy"]) for one in found["items"]] == [("web", "b-1"), (LONG, "b-1")]
    assert "held b-1" in shown(settings, "describe", "pod", "x/web")
    assert "held b-1" in shown(settings, "describe", "node", "n-1")


def test_what_outlasts_the_backstop_is_shown(rows: State) -> None:
    settings = rows.settings
    rows.pod("lab", "n-1", "moved", 20, more=60)
    rows.write()
    with open_producer(settings, delivery_seconds=30.0) as producer:
        producer.send(settings.brakes_topic, key=b"b-1", value=record("b-1", clusters=["lab"])).get(30)
    found = json.loads(shown(settings, "get", "evictions", "-o", "json"))
    at = next(one["builtInAt"] for one in found["items"] if one["pod"] == "moved")
    assert {one["pod"] for one in found["items"] if "builtInAt" in one} == {"moved"}
    assert f"held b-1, built-in at {at[11:16]}Z" in shown(settings, "get", "evictions")
    assert at in shown(settings, "get", "evictions", "-o", "wide")
    described = shown(settings, "describe", "pod", "x/moved")
    assert re.search(f"^Built-in: +the built-in controller goes on in -.*, at {at}$", described, re.MULTILINE)
    assert "Built-in" not in shown(settings, "describe", "pod", "x/web")
    explained = shown(settings, "explain", "x/moved")
    assert f"until somebody releases it. The built-in controller goes on at {at}." in explained
    (pod,) = json.loads(shown(settings, "explain", "x/moved", "-o", "json"))["pods"]
    assert pod["held"]["builtInAt"] == at


def test_an_edit_in_an_open_window_is_told(settings: Settings) -> None:
    declare_topics(settings)
    rows = State(settings.model_copy(update={"built_in": "lab"}))
    rows.node("lab", "n-1", TAINT)
    rows.pod("lab", "n-1", "edited", 20, more=60)
    rows.pod("lab", "n-1", "edited", 10**9, more=60, event_type="MODIFIED")
    rows.write()
    (one,) = json.loads(shown(settings, "get", "evictions", "-o", "json"))["items"]
    at = instant_text(NOON_US + (4 + 80) * SECOND_US)
    assert (one["state"], one["builtInAt"]) == ("Scheduled", at)
    assert f"built-in at {at[11:16]}Z" in shown(settings, "get", "evictions")
    assert "the built-in controller goes on in -" in shown(settings, "describe", "pod", "x/edited")


def test_what_is_pending_is_one_command(rows: State) -> None:
    titles, *lines = shown(rows.settings, "get", "evictions").splitlines()
    assert titles.split() == ["IN", "CLUSTER", "POD", "NODE", "TAINT", "STATE", "GATE/RESULT", "ATTEMPT"]
    assert [line.split()[1:] for line in lines] == [
        ["lab", f"x/{pod}", "n-1", TAINT["key"], "Due", "worker", "0"] for pod in ("web", LONG)
    ]
    found = json.loads(shown(rows.settings, "get", "evictions", "--cluster", "lab", "-n", "x", "-o", "json"))
    assert [one["pod"] for one in found["items"]] == ["web", LONG]


def test_a_misspelt_cluster_is_answered_with_its_name(rows: State) -> None:
    assert "did you mean lab?" in shown(rows.settings, "get", "evictions", "--cluster", "labb", code=1)


def test_nodes_are_chosen_by_their_labels(rows: State) -> None:
    settings = rows.settings
    for name, pool in (("n-1", "spot"), ("m-1", "other")):
        meta = {"name": name, "uid": f"node-{name}", "resourceVersion": "1"}
        labels = {"kubernetes.io/hostname": name, "pool": pool}
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {**meta, "labels": labels}}
        cluster = "lab" if name == "n-1" else "other"
        send(settings, settings.nodes_topic, cluster, {"cluster": cluster, "type": "ADDED", "object": node})
    assert shown(settings, "get", "nodes", "-l", "pool=spot", "-o", "name") == "n-1\n"


def send(settings: Settings, topic: str, cluster: str, value: object) -> None:
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    whole = value if isinstance(value, bytes) else json.dumps(value).encode()
    producer.send(topic, key=cluster.encode(), value=whole).get(timeout=30)
    producer.close()


def test_evictions_that_ended_come_with_since(rows: State) -> None:
    told = encode(decision(DecisionKind.CANCELLED, verdict=Verdict.TAINT_REMOVED))
    send(rows.settings, rows.settings.decisions_topic, "c", told)
    found = json.loads(shown(rows.settings, "get", "evictions", "--since", "5m", "-o", "json"))
    assert [one["state"] for one in found["items"]] == ["Cancelled", "Due", "Due"]
    assert found["items"][0]["verdict"] == "TaintRemoved"


def test_a_watch_shows_what_changes(rows: State) -> None:
    with started(rows.settings, "get", "evictions", "--watch", "-o", "json") as process:
        assert process.stdout is not None

        def event() -> tuple[str, Any]:
            found = json.loads(process.stdout.readline())  # type: ignore[union-attr] # as above
            return found["type"], found["object"]["pod"]

        assert [event(), event()] == [("ADDED", "web"), ("ADDED", LONG)]
        rows.pod("lab", "n-1", "late")
        rows.write()
        assert event() == ("ADDED", "late")
        rows.node("lab", "n-1", event_type="MODIFIED")
        rows.write()
        assert {event() for _ in range(3)} == {("DELETED", pod) for pod in ("web", LONG, "late")}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(("columns", "no_color"), [(40, "1"), (80, "")])
def test_a_table_fits_its_terminal(columns: int, no_color: str, rows: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it, and it counts more than the terminal
    lines = on_terminal(rows.settings, columns, "get", "evictions").splitlines()
    plain = [line.replace("\x1b[1m", "").replace("\x1b[31m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, plain)) <= columns
    assert ("\x1b[31m" in lines[-1], "\x1b" in "".join(lines)) == (not no_color, not no_color)


def test_a_reader_that_goes_away_is_no_error(rows: State) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with started(rows.settings, "get", "evictions", "-o", "yaml", stdout=writing) as process:
        os.close(writing)
        assert (process.wait(timeout=30), process.stderr.read() if process.stderr else None) == (0, b"")


def test_a_kafka_that_nobody_reaches_is_one_line() -> None:
    result = run(NOWHERE, "get", "evictions", EVICTSTREAM_ADMIN_TIMEOUT_SECONDS="1")
    assert (result.returncode, result.stdout, result.stderr.count(b"\n")) == (1, b"", 1)


def test_a_service_that_never_ran_says_so(settings: Settings) -> None:
    assert "is missing" in shown(settings, "get", "clusters", code=1)
    declare_topics(settings)
    result = run(settings, "get", "clusters")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"evictstream: no clusters are known\n")
