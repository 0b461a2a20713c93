"""Policies from the command line: what becomes of them on a real Kafka, and on a recording without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.harness.rows import State
from tests.kit.cli.test_policy_files import WHOLE
from tests.kit.see.test_fleet import level
from tests.streams.cli.running import run


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


def shown(settings: Settings, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(settings, "policy", "get", "-o", "json", *arguments).stdout)["items"]
    return found


@pytest.mark.kafka
def test_a_policy_is_applied_changed_and_deleted(declared: Settings, tmp_path: Path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text(WHOLE)
    file = str(path)
    assert run(declared, "policy", "diff", file).returncode == ExitCode.FOUND_PROBLEM
    dry = run(declared, "policy", "apply", file, "--dry-run")
    assert dry.stdout.splitlines()[0] == b"policy agents would get revision 1"
    assert run(declared, "policy", "get").stderr == b"evictstream: no policies\n"

    applied = run(declared, "policy", "apply", file)
    assert applied.stdout == b"policy agents is now at revision 1\n"
    assert f"{file}:4: for.clusters[0]: no known cluster matches prod-*".encode() in applied.stderr
    assert run(declared, "policy", "apply", file).stdout == b"policy agents stays at revision 1\n"
    assert run(declared, "policy", "diff", file).returncode == 0
    (policy,) = shown(declared)
    assert (policy["name"], policy["policy"]["spec"]["settleSeconds"]) == ("agents", 90)

    path.write_text(WHOLE.replace("settle: 90s", "settle: 60s"))
    compared = run(declared, "policy", "diff", file).stdout.decode()
    assert "-settle: 90s" in compared
    assert "+settle: 1m" in compared
    assert run(declared, "policy", "apply", file, "--why", "sooner").returncode == 0
    (policy,) = shown(declared, "agents")
    assert (policy["policy"]["revision"], policy["policy"]["why"]) == (2, "sooner")
    assert [one["spec"]["settleSeconds"] for one in policy["policy"]["earlier"]] == [90]

    assert run(declared, "policy", "delete", "agents", "odd", "--why", "done").returncode == ExitCode.FOUND_PROBLEM
    assert shown(declared) == []
    assert run(declared, "policy", "apply", file).stdout == b"policy agents is now at revision 4\n"


@pytest.mark.kafka
def test_a_policy_that_outlasts_the_backstop_says_so(declared: Settings, tmp_path: Path) -> None:
    rows = State(declared)
    rows.node("lab", "n-1", {"key": "k", "effect": "NoExecute"})
    for name, more in (("moved", 20), ("not-moved", None)):
        rows.pod("lab", "n-1", name, 8, more=more)
    rows.write()
    path = tmp_path / "p.yaml"
    path.write_text("name: watch\nwhy: rehearsal\nobserve: true\n")
    told = "the built-in controller goes on at 2026-11-21T12:00:32.000000Z with the pod that policy watch holds"
    for options in (["--dry-run", "-o", "json"], []):
        applied = run(declared, "policy", "apply", str(path), *options)
        assert (applied.returncode, applied.stderr.decode()) == (0, f"evictstream: {told}\n")
    path.write_text("name: watch\nwhy: rehearsal\npatience: 1h\n")
    assert run(declared, "policy", "apply", str(path)).stderr == b""
    path.write_text("name: watch\nwhy: rehearsal\nsettle: 1h\n")
    unread = run(declared, "policy", "apply", str(path), EVICTSTREAM_APPLICATION_ID="nothing")
    assert (unread.returncode, unread.stdout) == (0, b"policy watch is now at revision 3\n")
    assert b"whether the built-in controller goes on before the end is not known: " in unread.stderr


@pytest.mark.kafka
def test_a_centre_knows_clusters_but_not_their_state(declared: Settings, tmp_path: Path) -> None:
    with open_producer(declared, delivery_seconds=30.0) as producer:
        for zone in ("", "eu-1a"):
            key, value = f"prod-eu-1/{zone}".encode(), level("prod-eu-1", zone=zone or None)
            producer.send(declared.fleet_topic, key=key, value=value).get(30)
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: a\nwhy: w\nsettle: 5s\nfor: {clusters: [prod-*], zones: [eu-1a, eu-1b], nodeLabels: [a=b]}\n"
    )
    dry = run(declared, "policy", "apply", str(path), "--dry-run")
    assert (dry.returncode, dry.stdout) == (ExitCode.FOUND_PROBLEM, b"")
    assert b"the state of the clusters is not in this Kafka" in dry.stderr
    applied = run(declared, "policy", "apply", str(path))
    told = f"evictstream: {path}:4: for.zones[1]: no known node is in a zone eu-1b\n"
    assert (applied.returncode, applied.stderr.decode()) == (0, told)
    held = run(declared, "hold", "--cluster", "prod-eu-1", "--cluster", "prod-eu-2", "--why", "w", "--for", "1m")
    assert b"nothing is known of the cluster prod-eu-2 yet" in held.stderr
    assert b"cluster prod-eu-1 yet" not in held.stderr


@pytest.mark.kafka
def test_a_policy_that_cannot_be_read_is_shown_and_removed(declared: Settings) -> None:
    with open_producer(declared, delivery_seconds=30.0) as producer:
        producer.send(declared.policies_topic, key=b"odd", value=b"{").get(30)
    assert [one["name"] for one in shown(declared)] == ["odd"]
    assert b"unreadable: nothing is evicted" in run(declared, "policy", "get").stdout
    removed = run(declared, "policy", "delete", "odd", "--why", "typing error")
    assert removed.returncode == 0
    assert b"could not be read; what nothing else holds goes at once" in removed.stdout
    assert shown(declared) == []


RECOVERY = Path(__file__).parents[3] / "examples/incidents/recovery-before-deadline-no-evictor/events.jsonl.gz"
SINGLETONS = Path(__file__).parents[3] / "examples/situations/singletons.jsonl.gz"


NOWHERE = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1"})


def test_policies_are_tried_on_a_recording_without_kafka(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: calm\nsettle: 60s\n---\nname: pace\nlimit: {rate: 1/s}\nfor: {nodes: [none]}\n")
    result = run(NOWHERE, "policy", "test", str(path), "--on", str(RECOVERY), "-o", "json")
    assert (result.returncode, result.stderr) == (0, b"")
    found = json.loads(result.stdout)
    assert [one["name"] for one in found["policies"]] == ["calm", "pace"]
    assert (found["without"]["issued"], found["with"]["issued"], found["spared"]) == (12, 0, 12)
    assert {(one["kind"], one["with"]) for one in found["differences"]} == {("OnlyThere", None)}

    told = run(NOWHERE, "policy", "test", str(path), "--on", str(RECOVERY)).stdout.decode()
    assert "its reason went while it waited: TaintRemoved" in told


def test_a_trial_counts_the_owners_that_lose_all(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: last\nfor: {namespaces: [tenant-solo]}\n"
        "guard: {moreThan: {count: 3}, of: ownersLosingAll, within: 30m}\n"
    )
    told = run(NOWHERE, "policy", "test", str(path), "--on", str(SINGLETONS)).stdout.decode()
    assert "more than 3 owners lose all of their pods for example.com/maintenance, on 3 nodes (last)" in told
    assert "only without them  18 " in told


def test_a_trial_without_a_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: calm\nsettle: 60s\n")
    for arguments in (["--on", str(tmp_path / "nothing")], []):
        assert run(NOWHERE, "policy", "test", str(path), *arguments).returncode == ExitCode.WRONG_USE
