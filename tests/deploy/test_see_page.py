"""docs/see.md: its commands print what stands behind them, of rows that a partition has made, at one instant.

`tests/kit/cli/test_get.py` has the same commands on a real Kafka.
"""

from __future__ import annotations

import collections
import contextlib
import re

import pytest

from evictstream.kit.cli import get, known_steering, seeing
from evictstream.kit.see import fleet_topics, reading
from evictstream.kit.see.steering import UNSTEERED
from evictstream.kit.see.stored_state import StoredState
from evictstream.streams.cli import dead_letter_list
from evictstream.streams.cli.main import run
from evictstream.streams.settings import Settings
from tests.deploy.pages import Example, examples, page
from tests.harness.rows import NOON_US, SECOND_US, State
from tests.streams.cli.test_dead_letters import letter_of

NOW_US = NOON_US + 136 * SECOND_US
UNREACHABLE: dict[str, object] = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
MAINTENANCE: dict[str, object] = {"key": "maintenance", "value": "tonight", "effect": "NoExecute"}
BROKEN = b'{"cluster":"prod-eu-1","type":"ADDED"}'

CONSOLES = [example for example in examples(page("see.md")) if example.words == ("console",)]
COMMAND = re.compile(r"^\$ evictstream (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def service() -> State:
    """The service of the page: a node is unreachable, two are in maintenance, and no executor runs for `lab`."""
    rows = State(Settings.model_validate({"partitions": 8}))
    rows.node("prod-eu-1", "n-1", UNREACHABLE)
    rows.node("prod-eu-1", "n-2", MAINTENANCE)
    rows.node("prod-eu-1", "n-3")
    rows.pod("prod-eu-1", "n-1", "cart-7d9f8b6c4-x2kq9", namespace="shop")
    rows.pod("prod-eu-1", "n-1", "search-5b7d-0", namespace="shop")
    rows.pod("prod-eu-1", "n-2", "db-0", 110, namespace="shop")
    rows.pod("prod-eu-1", "n-3", "web-0", 20, namespace="shop")
    rows.node("lab", "w-1", MAINTENANCE)
    rows.pod("lab", "w-1", "job-1", 60, namespace="batch")
    rows.heartbeat("lab")
    lab = rows.partition_of("lab")
    rows.partitions[lab].fire(NOON_US + 79 * SECOND_US, 10, rows.outboxes[lab])
    rows._count = 125
    rows.heartbeat("prod-eu-1", clusterLabels={"tier": "gold"})
    rows.heartbeat("lab")
    return rows


def state_of(rows: State) -> StoredState:
    """What somebody finds who reads the rows."""
    state = StoredState()
    for number, outbox in enumerate(rows.outboxes):
        for key, value in outbox.rows.items():
            state.load(number, key, value)
    return state


def read_published(rows: State, reader: fleet_topics.FleetReader) -> None:
    """Read what the partitions publish, as of four seconds ago."""
    for partition, outbox in zip(rows.partitions, rows.outboxes, strict=True):
        collections.deque(partition.published.turn(NOW_US - 4 * SECOND_US, outbox), maxlen=0)
        for message in outbox.messages.get(rows.settings.fleet_topic, ()):
            reader.view.take_level(message.key, message.value)
        for message in outbox.messages.get(rows.settings.clusters_topic, ()):
            reader.view.take_cluster(message.key, message.value)


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state comes from the rows above instead of Kafka, and the clock stands."""
    rows = service()
    state = state_of(rows)
    monkeypatch.setattr(fleet_topics.FleetReader, "read", lambda reader: read_published(rows, reader))
    monkeypatch.setattr("evictstream.kit.cli.status.present_us", lambda: NOW_US)
    monkeypatch.setattr(reading, "read_stored_state", lambda *_, **__: reading.ReadState(state, {}, ()))
    monkeypatch.setattr(dead_letter_list, "read_dead_letters", lambda *_: iter([letter_of(BROKEN)]))
    monkeypatch.setattr(known_steering, "known_steering", lambda _, **__: contextlib.nullcontext(lambda: UNSTEERED))
    monkeypatch.setattr(get, "present_us", lambda: NOW_US)
    monkeypatch.setattr(seeing, "present_us", lambda: NOW_US)
    monkeypatch.setattr("evictstream.kit.cli.describe.present_us", lambda: NOW_US)


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize("example", CONSOLES, ids=lambda example: f"line {example.line}")
def test_commands_print_what_stands_behind_them(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    commands = COMMAND.findall(example.text)
    assert commands
    shown = ""
    for words, _ in commands:
        run(["-b", "127.0.0.1:1", *words.split()])
        said = capsys.readouterr()
        shown += f"$ evictstream {words}\n{said.out}{said.err}"
    assert shown == example.text


def test_the_page_has_examples() -> None:
    assert len(CONSOLES) == 10
