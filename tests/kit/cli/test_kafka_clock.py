"""Commands that show what is held, on a machine whose clock is wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest

from evictstream.kit.cli import explain, known_steering, policy, policy_names
from evictstream.kit.replay import live_tables
from evictstream.kit.replay.cluster_tables import ClusterTables
from evictstream.kit.see import reading
from evictstream.kit.see.window_texts import read_window
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import PolicyHold
from evictstream.streams.broker import newest_times
from evictstream.streams.broker.steering_readers import BrakesReader, PoliciesReader
from evictstream.streams.cli import brakes as cli_brakes
from evictstream.streams.cli.main import run
from evictstream.streams.errors import BrokerRefusedError
from tests.harness.rows import State
from tests.kit.see.test_evictions import SETTINGS, UNREACHABLE, read
from tests.models.steering.test_brakes import record
from tests.models.steering.test_policies import policy_record
from tests.streams.cli.steering_topic import KAFKA_US, SteeringTopic, set_clock

HOUR = 3_600
WINDOW = "Fri 10:00-12:00 UTC"
"""Opens two hours after `KAFKA_US`; the clock of this machine is three hours ahead."""

FILE = f"name: day\nwhy: w\nhold: {{outsideOf: {WINDOW}}}\n"

HOLDING = {
    "holds": "night  Holds",
    "holds --count -o json": '"evictions":1',
    "get evictions": "held night",
    "describe pod x/web": "held night",
    "describe node n-1": "held night",
    "explain x/web": "The brake night holds it until ",
    "what-if --cluster lab": "brake night of anna holds evictions here",
}
"""What commands show while the brake `night` holds."""


class Service:
    """A node whose pod is due, brakes and policies, in this process.

    Attributes:
        asked: how often Kafka was asked for its clock.
        heard: the newest heartbeat; None where Kafka refuses.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.brakes, self.policies = SteeringTopic(BrakesReader), SteeringTopic(PoliciesReader)
        self.asked = 0
        self.heard: int | None = KAFKA_US
        self.rows = State(SETTINGS)
        self.rows.node("lab", "n-1", UNREACHABLE)
        self.rows.pod("lab", "n-1", "web", 20, more=60)
        readers = {BrakesReader: self.brakes.reader, PoliciesReader: self.policies.reader}
        whole = reading.ReadState(read(self.rows), {}, ())
        for module, name, instead in (
            (known_steering, "_opened", lambda *arguments: readers[arguments[-1]]),
            (cli_brakes, "open_brakes", lambda _: contextlib.nullcontext(self.brakes.reader)),
            (policy, "_reading", lambda _: contextlib.nullcontext(self.policies.reader)),
            (policy, "_writing", lambda *_: contextlib.nullcontext(self.policies.writer)),
            (policy_names, "warn_of_unknown", lambda *_: None),
            (reading, "read_stored_state", lambda *_, **__: whole),
            (live_tables, "read_live_rows", lambda *_, **__: self.tables()),
            (live_tables, "read_live", lambda *_, **__: self.tables()),
            (explain, "_read_decisions", lambda *_: iter(())),
            (newest_times, "newest_times_us", self.newest),
        ):
            monkeypatch.setattr(module, name, instead)

    def tables(self) -> ClusterTables:
        tables = ClusterTables(SETTINGS, partitions=SETTINGS.partitions)
        for number, outbox in enumerate(self.rows.outboxes):
            for key, value in outbox.rows.items():
                tables.load(number, key, value)
        tables.loaded()
        return tables

    def newest(self, *_: object) -> dict[tuple[str, int], int]:
        self.asked += 1
        if self.heard is None:
            raise BrokerRefusedError("read it", reason="no")
        return {("nodes", 0): self.heard}

    def brake(self, hours: int = 2) -> None:
        """Set a brake for so long; this was read just now."""
        self.brakes.put(b"night", record("night", endsAt=instant_text(KAFKA_US + hours * HOUR * SECOND_US)))
        self.brakes.reader.kafka_time.note_record(KAFKA_US // 1_000)

    def policy(self) -> None:
        """Apply a policy that holds until `WINDOW`."""
        spec = PolicySpec(hold=PolicyHold(outside_of=(read_window(WINDOW),), spread_seconds=60))
        self.policies.put(b"day", policy_record("day", spec=msgspec.to_builtins(spec)))
        self.policies.reader.kafka_time.note_record(KAFKA_US // 1_000)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """This machine is three hours ahead of Kafka."""
    set_clock(monkeypatch, 3 * HOUR)
    return Service(monkeypatch)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["-b", "127.0.0.1:1", *arguments]) == 0
    told = capsys.readouterr()
    return told.out + told.err


@pytest.mark.parametrize("command", HOLDING)
def test_a_clock_ahead_ends_no_brake(command: str, service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.brake()
    assert HOLDING[command] in shown(capsys, *command.split())
    assert service.asked == 1


@pytest.mark.parametrize("command", ["get evictions", "describe pod x/web", "describe node n-1", "explain x/web"])
def test_a_clock_ahead_opens_no_window(command: str, service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.policy()
    holds = "The policy day (revision 1, hold) holds it until " if "explain" in command else "held policy/day/1/hold"
    assert holds in shown(capsys, *command.split())
    assert service.asked == 1


@pytest.mark.parametrize(("is_braked", "counts"), [(False, '"held": {"lab": 1}'), (True, '"still": {"lab": 1}')])
def test_a_dry_run_counts_by_kafkas_clock(
    is_braked: bool,  # noqa: FBT001 - a case
    counts: str,
    service: Service,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if is_braked:
        service.brake()
    (file := tmp_path / "p.yaml").write_text(FILE)
    service.policies.reader.kafka_time.note_record(0)
    assert counts in shown(capsys, "policy", "apply", str(file), "--dry-run", "-o", "json")
    assert service.asked == 1


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["apply", "dry run"])
def test_what_a_policy_outlasts_is_told_by_kafkas_clock(
    options: list[str], service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "p.yaml").write_text(FILE)
    service.policies.reader.kafka_time.note_record(0)
    assert "with the pod that policy day holds" in shown(capsys, "policy", "apply", str(file), *options)


@pytest.mark.parametrize(("after", "state"), [(0, "Holds"), (2, "Spreads"), (3, "no brakes")])
def test_a_brake_ends_as_heartbeats_say(
    after: int, state: str, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.brake()
    service.heard = KAFKA_US + after * HOUR * SECOND_US
    assert state in shown(capsys, "holds")


def test_where_no_heartbeat_is_read_brakes_stay_shown(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.brake()
    service.policy()
    service.heard = None
    told = shown(capsys, "holds")
    assert "night  Holds" in told
    assert "brakes that are over may be shown" in told


def test_a_clock_that_is_right_counts(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest heartbeat is older than the clock, and no end is in doubt: times are as exact as the clock."""
    service.brake(hours=4)
    service.heard = KAFKA_US + 2 * HOUR * SECOND_US
    line = " ".join(shown(capsys, "holds").splitlines()[1].split())
    assert line.startswith("night Holds all evictions 2h59m ago 1h0m ")


def test_a_clock_behind_shows_no_brake_that_is_over(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service.brake()
    set_clock(monkeypatch, -3 * HOUR)
    service.heard = KAFKA_US + 3 * HOUR * SECOND_US
    assert "no brakes" in shown(capsys, "holds")
    assert "held" not in shown(capsys, "get", "evictions")


def test_policies_need_a_heartbeat_to_doubt_a_clock(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.policy()
    service.heard = None
    assert "held" not in shown(capsys, "get", "evictions")
