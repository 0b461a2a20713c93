"""`evictstream incidents` on a real Kafka: what stands, and what an answer writes."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evictstream.kit.cli import incidents
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.incident import IncidentVerdict
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.cli.output import OutputFormat
from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.kit.cli.test_status import send
from tests.models.messages.test_incident import INCIDENT
from tests.streams.cli.running import run

ID = INCIDENT["id"]
POLICY = "name: large\nwhy: test\nguard: {moreThan: {count: 3}, within: 10m}\nspread: 30s\n"


@pytest.fixture
def held(settings: Settings, tmp_path: Path) -> Settings:
    """An incident, one that has ended, one that is unreadable, and the policy of the first."""
    declare_topics(settings)
    file = tmp_path / "large.yaml"
    file.write_text(POLICY)
    assert run(settings, "policy", "apply", str(file)).returncode == 0
    send(settings, settings.incidents_topic, ID.encode(), json.dumps(INCIDENT | {"nodes": 1}).encode())
    send(settings, settings.incidents_topic, ID.encode(), json.dumps(INCIDENT).encode())
    ended = INCIDENT | {"id": "0000000000"}
    send(settings, settings.incidents_topic, b"0000000000", json.dumps(ended).encode())
    send(settings, settings.incidents_topic, b"0000000000", None)
    return settings


def answers(settings: Settings) -> list[dict[str, Any]]:
    found = json.loads(run(settings, "policy", "get", "large", "-o", "json").stdout)["items"]
    known: list[dict[str, Any]] = found[0]["policy"].get("answers", [])
    return known


def test_incidents_are_listed_and_shown(held: Settings) -> None:
    listed = json.loads(run(held, "incidents", "list", "-o", "json").stdout)["items"]
    assert [(one["id"], one["nodes"]) for one in listed] == [(ID, 4)]
    table = run(held, "incidents", "list").stdout.decode().splitlines()
    assert table[0].split()[:3] == ["ID", "CLUSTER", "TAINT"]
    shown = run(held, "incidents", "show", ID).stdout.decode()
    assert "x/ReplicaSet/web loses all 2" in shown
    assert f"waits for a person: evictstream incidents approve {ID}" in shown
    assert json.loads(run(held, "incidents", "show", ID, "-o", "json").stdout)["id"] == ID


def test_an_answer_is_a_revision_of_the_policy(held: Settings) -> None:
    said = run(held, "incidents", "approve", ID, "--why", "no power", "--for", "2h")
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"what is overdue goes within 30 s" in said.stdout
    (answer,) = answers(held)
    assert (answer["incident"], answer["verdict"], answer["why"]) == (ID, "Approved", "no power")
    assert instant_us(answer["expiresAt"]) - instant_us(answer["answeredAt"]) == 7_200_000_000
    assert "countsFrom" not in answer

    assert run(held, "incidents", "reject", ID, "--why", "a mistake").returncode == 0
    (answer,) = answers(held)
    assert (answer["verdict"], answer.get("expiresAt")) == ("Rejected", None)


@pytest.mark.parametrize("hours", [-5, 5])
def test_an_approval_ends_by_the_clock_of_kafka(held: Settings, hours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the machine that gives the command is hours behind, or ahead."""

    class Wrong(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return dt.datetime.now(tz) + dt.timedelta(hours=hours)

    monkeypatch.setattr(incidents, "dt", SimpleNamespace(datetime=Wrong, UTC=dt.UTC, timedelta=dt.timedelta))
    approved = IncidentVerdict.APPROVED
    incidents._answer(held, ID, approved, why="no power", seconds=7_200, output=OutputFormat.TEXT)
    (answer,) = answers(held)
    ends_us = instant_us(answer["expiresAt"])
    assert abs(ends_us - time.time_ns() // 1_000 - 7_200 * SECOND_US) < 60 * SECOND_US


def test_an_answer_outlasts_a_change_of_the_policy(held: Settings, tmp_path: Path) -> None:
    assert run(held, "incidents", "approve", ID, "--why", "no power").returncode == 0
    file = tmp_path / "large.yaml"
    file.write_text(POLICY.replace("count: 3", "count: 5"))
    assert run(held, "policy", "apply", str(file)).returncode == 0
    (answer,) = answers(held)
    assert instant_us(answer["countsFrom"]) >= instant_us(answer["answeredAt"]) - 5_000_000
    assert run(held, "policy", "delete", "large", "--why", "done").returncode == 0
    assert run(held, "policy", "apply", str(file)).returncode == 0
    assert answers(held) == []


def test_what_is_not_there_is_not_answered(held: Settings) -> None:
    assert run(held, "incidents", "approve", "0000000000", "--why", "w").returncode == ExitCode.FOUND_PROBLEM
    assert run(held, "incidents", "approve", ID, "--why", " ").returncode == ExitCode.WRONG_USE
    assert run(held, "incidents", "approve", ID, "--why", "w", "--for", "8d").returncode == ExitCode.WRONG_USE
    assert run(held, "policy", "delete", "large", "--why", "w").returncode == 0
    assert run(held, "incidents", "approve", ID, "--why", "w").returncode == ExitCode.FOUND_PROBLEM


def test_a_record_that_cannot_be_read_is_told(held: Settings) -> None:
    send(held, held.incidents_topic, b"odd", b"{")
    result = run(held, "incidents", "list")
    assert result.returncode == 0
    assert b"cannot be read" in result.stderr
    assert ID.encode() in result.stdout


def test_without_incidents_it_says_so(settings: Settings) -> None:
    declare_topics(settings)
    assert run(settings, "incidents", "list").stderr == b"evictstream: no incidents\n"
