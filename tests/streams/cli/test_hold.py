"""Brakes from the command line: set, shown and released, and what is refused."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.brake import decode_brake
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.cli import brakes
from evictstream.streams.cli.brakes import open_brakes_writer
from evictstream.streams.cli.main import run as run_here
from evictstream.streams.cli.steering_records import REMEMBERED_SECONDS
from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.harness.rows import State
from tests.models.steering.test_brakes import record
from tests.streams.cli.running import run

WHY = ("--why", "storm")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--for", "2h"], "give --all, or what is held", id="nothing-chosen"),
        pytest.param(["--all", "--zone", "a", "--for", "2h"], "give --all, or what is held", id="all-and-a-zone"),
        pytest.param(["--all"], "give either --for or --until-released", id="no-end"),
        pytest.param(["--all", "--for", "2h", "--until-released"], "give either --for", id="two-ends"),
        pytest.param(["--all", "--for", "soon"], "is not a length of time", id="no-length"),
        pytest.param(["--all", "--for", "0s"], "is out of range", id="no-time"),
        pytest.param(["--all", "--for", "2h", "--spread", "2d"], "--spread 2d is out of range", id="long-spread"),
        pytest.param(["--taint", "", "--for", "2h"], "--taint is empty", id="empty-name"),
        pytest.param(["--all", "--for", "2h", "--id", "B 1"], "'B 1' cannot be the name of a brake", id="bad-id"),
    ],
)
def test_what_no_brake_can_be_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_here(["hold", *WHY, *arguments]) == ExitCode.WRONG_USE
    shown = capsys.readouterr()
    assert problem in shown.err
    assert not shown.out


@pytest.mark.parametrize("arguments", [["hold", "--all", "--for", "2h"], ["release", "b1"]])
@pytest.mark.parametrize("why", ["", " ", "x" * 501])
def test_a_reason_is_needed(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here([*arguments, "--why", why]) == ExitCode.WRONG_USE
    assert "--why" in capsys.readouterr().err


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


def shown(settings: Settings, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(settings, "holds", "-o", "json", *arguments).stdout)["items"]
    return found


@pytest.mark.kafka
def test_a_brake_is_set_shown_and_released(declared: Settings) -> None:
    held = run(declared, "hold", *WHY, "--for", "2h", "--cluster", "prod", "-n", "shop", "-n", "bank", "--id", "b1")
    assert held.returncode == 0
    assert held.stdout.decode().splitlines()[1] == "to release it: evictstream release b1 --why TEXT"
    assert b"nothing is known of the cluster prod yet" in held.stderr

    (brake,) = shown(declared, "--count")
    assert (brake["id"], brake["state"], brake["evictions"]) == ("b1", "Holds", 0)
    assert brake["brake"]["namespaces"] == ["shop", "bank"]
    lasts_us = instant_us(brake["endsAt"]) - instant_us(brake["brake"]["heldAt"])
    assert abs(lasts_us - 7_200 * SECOND_US) < 60 * SECOND_US
    assert run(declared, "hold", *WHY, "--all", "--until-released", "--id", "b1").returncode == ExitCode.FOUND_PROBLEM
    longer = ("hold", *WHY, "--until-released", "--cluster", "prod", "-n", "bank", "-n", "shop", "--id", "b1")
    assert run(declared, *longer).returncode == 0
    assert "endsAt" not in shown(declared)[0]

    released = run(declared, "release", "b1", "unknown", *WHY)
    assert released.returncode == ExitCode.FOUND_PROBLEM
    assert released.stdout.startswith(b"released brake b1 at ")
    assert b"there is no brake unknown" in released.stderr
    (brake,) = shown(declared)
    assert (brake["state"], brake["brake"]["releasedWhy"]) == ("Spreads", "storm")
    assert run(declared, "release", "b1", *WHY).returncode == ExitCode.FOUND_PROBLEM


@pytest.mark.kafka
def test_what_cannot_be_read_is_shown_and_removed(declared: Settings) -> None:
    with open_producer(declared, delivery_seconds=30.0) as producer:
        producer.send(declared.brakes_topic, key=b"odd", value=b"{").get(30)
    (brake,) = shown(declared)
    assert (brake["id"], brake["state"]) == ("odd", "Unreadable")
    released = run(declared, "release", "odd", *WHY)
    assert released.returncode == 0
    assert b"could not be read; what nothing else holds goes at once" in released.stdout
    assert run(declared, "holds").stderr == b"evictstream: no brakes\n"


@pytest.mark.kafka
def test_old_brakes_are_forgotten(declared: Settings) -> None:
    for name in ("old", "standing"):
        assert run(declared, "hold", *WHY, "--all", "--until-released", "--id", name).returncode == 0
    assert run(declared, "release", "old", *WHY).returncode == 0
    with open_brakes_writer(declared) as writer:
        released_us = writer.brakes.standing["old"].appended_us
        writer.remove_old(released_us + REMEMBERED_SECONDS * SECOND_US)
        assert writer.brakes.standing.keys() == {"old", "standing"}
        writer.remove_old(released_us + (REMEMBERED_SECONDS + 61) * SECOND_US)
        assert writer.brakes.standing.keys() == {"standing"}


@pytest.mark.kafka
def test_only_the_newest_brakes_that_are_over_are_kept(declared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brakes, "MOST_BRAKES_REMEMBERED", 1)
    with open_brakes_writer(declared) as writer:
        for name in ("first", "second"):
            writer.write(decode_brake(record(name, releasedBy="anna")))
        writer.remove_old(writer.brakes.standing["second"].appended_us + 61 * SECOND_US)
        assert writer.brakes.standing.keys() == {"second"}


@pytest.fixture
def moved(declared: Settings) -> Settings:
    """A pod of `lab` whose spec has ten years more, one of `prod` whose spec has 20 s more, and one without."""
    rows = State(declared)
    for cluster, more in (("lab", 315_360_000), ("prod", 20), ("plain", None)):
        rows.node(cluster, "n-1", {"key": "k", "effect": "NoExecute"})
        rows.pod(cluster, "n-1", f"of-{cluster}", 8, more=more)
    rows.write()
    return declared


BUILT_IN_OF_PROD = "2026-11-21T12:00:36.000000Z"


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param(["--cluster", "lab", "--for", "2h"], "", id="ends before"),
        pytest.param(["--cluster", "plain", "--until-released"], "", id="not moved"),
        pytest.param(
            ["--cluster", "lab", "--until-released"],
            "goes on at 2036-11-18T12:00:12.000000Z with the pod that brake b1 holds",
            id="no end",
        ),
        pytest.param(
            ["--all", "--until-released", "-o", "json"],
            f"goes on at {BUILT_IN_OF_PROD} with the first of 2 pods that brake b1 holds",
            id="all",
        ),
    ],
)
def test_a_brake_that_outlasts_the_backstop_says_so(options: list[str], told: str, moved: Settings) -> None:
    held = run(moved, "hold", *WHY, "--id", "b1", *options)
    assert held.returncode == 0
    assert held.stderr.decode() == (f"evictstream: the built-in controller {told}\n" if told else "")
    assert held.stdout.startswith((b"brake b1 holds", b"{"))


@pytest.mark.kafka
def test_lists_of_brakes_say_what_outlasts_the_backstop(moved: Settings) -> None:
    for name, options in (("all", ("--all", "--until-released")), ("lab", ("--cluster", "lab", "--for", "2h"))):
        assert run(moved, "hold", *WHY, "--id", name, *options).returncode == 0
    brakes = {one["id"]: one.get("builtInAt") for one in shown(moved)}
    assert brakes == {"all": BUILT_IN_OF_PROD, "lab": None}
    for more in ([], ["--count"]):
        listed = run(moved, "holds", *more)
        assert (listed.returncode, len(listed.stdout.splitlines())) == (0, 3)
        told = f"the built-in controller goes on at {BUILT_IN_OF_PROD} with the first of 2 pods that brake all holds"
        assert listed.stderr.decode() == f"evictstream: {told}\n"
    assert run(moved, "holds", "-o", "name").stdout == b"all\nlab\n"


@pytest.mark.kafka
def test_a_state_that_cannot_be_read_is_a_line(declared: Settings) -> None:
    for arguments in (["hold", *WHY, "--all", "--for", "2h", "--id", "b1"], ["holds"], ["holds", "-o", "json"]):
        found = run(declared, *arguments, EVICTSTREAM_APPLICATION_ID="nothing")
        assert (found.returncode, b"b1" in found.stdout) == (0, True)
        assert b"whether the built-in controller goes on before the end is not known: " in found.stderr


@pytest.mark.kafka
def test_each_region_says_what_outlasts_its_backstop(moved: Settings) -> None:
    (dead,) = free_ports(1)
    regions = f"near={moved.required_bootstrap_servers()} far=127.0.0.1:{dead}"
    told = f"evictstream: near: the built-in controller goes on at {BUILT_IN_OF_PROD} with the first of 2 pods"
    for arguments in (["hold", *WHY, "--all", "--until-released", "--id", "b1"], ["holds"]):
        found = run(moved, *arguments, EVICTSTREAM_REGIONS=regions, EVICTSTREAM_ADMIN_TIMEOUT_SECONDS="0.5")
        assert found.returncode == ExitCode.FOUND_PROBLEM
        assert told in found.stderr.decode()


@pytest.mark.kafka
def test_each_region_is_asked_and_one_that_is_gone_reported(declared: Settings) -> None:
    (dead,) = free_ports(1)
    regions = f"near={declared.required_bootstrap_servers()} far=127.0.0.1:{dead}"

    def asked(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return run(declared, *arguments, EVICTSTREAM_REGIONS=regions, EVICTSTREAM_ADMIN_TIMEOUT_SECONDS="0.5")

    held = asked("hold", "--all", *WHY, "--for", "2h", "--id", "b1")
    assert held.returncode == ExitCode.FOUND_PROBLEM
    assert held.stdout.startswith(b"near: brake b1 holds all evictions since ")
    assert b"region far: no Kafka answered at 127.0.0.1" in held.stderr
    again = asked("hold", "--all", *WHY, "--for", "2h", "--id", "b1", "-o", "json")
    answer = json.loads(again.stdout)
    assert (list(answer["regions"]), list(answer["notHeld"])) == (["near"], ["far"])

    seen = asked("holds", "-o", "json")
    assert seen.returncode == ExitCode.FOUND_PROBLEM
    assert [(one["region"], one["id"]) for one in json.loads(seen.stdout)["items"]] == [("near", "b1")]
    (plain,) = shown(declared.model_copy(), "-b", declared.required_bootstrap_servers())
    assert "region" not in plain

    released = asked("release", "b1", "b2", *WHY, "-o", "json")
    answer = json.loads(released.stdout)
    assert (list(answer["released"]["regions"]["near"]), answer["notReleased"]) == (["b1"], ["b2"])
    assert list(answer["released"]["notReached"]) == ["far"]


@pytest.mark.kafka
def test_brakes_of_a_region_without_state_are_shown(declared: Settings) -> None:
    assert run(declared, "hold", "--all", *WHY, "--for", "2h", "--id", "b1").returncode == 0
    regions = f"near={declared.required_bootstrap_servers()}"
    seen = run(
        declared, "holds", "--count", "-o", "json", EVICTSTREAM_REGIONS=regions, EVICTSTREAM_APPLICATION_ID="nothing"
    )
    assert seen.returncode == ExitCode.FOUND_PROBLEM
    assert [(one["id"], "evictions" in one) for one in json.loads(seen.stdout)["items"]] == [("b1", False)]
    assert b"region near: " in seen.stderr


@pytest.mark.kafka
def test_with_b_given_regions_are_not_asked(declared: Settings) -> None:
    (dead,) = free_ports(1)
    asked = ("-b", declared.required_bootstrap_servers(), "hold", "--all", *WHY, "--for", "2h", "-o", "json")
    held = run(declared, *asked, EVICTSTREAM_REGIONS=f"far=127.0.0.1:{dead}")
    assert (held.returncode, json.loads(held.stdout)["why"]) == (0, "storm")


@pytest.mark.parametrize(
    ("regions", "problem"),
    [
        *((text, "write NAME=host:port") for text in ("eu", "eu=", "eu=host", "EU=h:1", "eu=h:1;us=h:1", "eu=:1")),
        ("eu=h:1 us=h:1 eu=h:2", "a region is there twice"),
    ],
)
def test_wrong_regions_are_refused(
    regions: str, problem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVICTSTREAM_REGIONS", regions)
    assert run_here(["hold", "--all", *WHY, "--for", "2h"]) == ExitCode.WRONG_USE
    assert problem in capsys.readouterr().err
