"""What a hold in outages of zones would have done in recorded ones, against counts made anew from the recording."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evictstream.kit.cli.policy_files import read_policy_files
from evictstream.kit.inputs.opening import Input
from evictstream.kit.replay.policy_trial import PolicyTrial, try_policies
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.sources import open_source
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.taints import HEALTH_KEYS
from evictstream.models.messages.codec import encode
from evictstream.models.messages.decision import decode_decision
from evictstream.models.steering.policies import NO_POLICIES, Policies
from tests.harness.incidents import INCIDENTS, events_of
from tests.kit.replay.test_policy_trial import SETTINGS, ZONE, issued, policies_of
from tests.models.steering.test_policies import policy_record, read_policies

RECOVERS = INCIDENTS / ZONE
DEAD = Path(__file__).parents[2] / "incidents" / "zones" / "zone-dead"
EXAMPLE = Path(__file__).parents[3] / "examples" / "policies" / "zone-outage.yaml"
PERCENT, AT_LEAST, SPREAD = 55, 3, 10
HOLD: dict[str, Any] = {
    "while": {"zone": {"unhealthyPercent": PERCENT, "atLeast": AT_LEAST}},
    "spreadSeconds": SPREAD,
}
LOOKS_US = 250_000  # what held an eviction is looked at five times a second


def trial(folder: Path, policies: Policies, *, plays_executor: bool = True) -> PolicyTrial:
    source = open_source([Input(folder.name, folder / "events.jsonl.gz")], cluster=None, partitions=1, at=None)
    return try_policies(
        SETTINGS, policies, source.read, partitions=1, plays_executor=plays_executor, run_on_seconds=120.0
    )


class Spell(NamedTuple):
    """When a zone was in an outage; the last may have no end."""

    from_us: int
    to_us: int


def outages(folder: Path) -> tuple[dict[str, str], dict[str, list[Spell]]]:
    """Work out the zones of nodes, and the outages of zones, from the objects themselves."""
    zones: dict[str, str] = {}
    sick: dict[str, bool] = {}
    spells: dict[str, list[Spell]] = {}
    for event in events_of(folder):
        node = event["object"]
        if node["kind"] != "Node":
            continue
        name, at_us = node["metadata"]["name"], instant_us(event["observedAt"])
        ready = next((one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"), "True")
        taints = node["spec"].get("taints") or ()
        is_tainted = any(taint["key"] in HEALTH_KEYS and taint["effect"] == "NoExecute" for taint in taints)
        zone = zones[name] = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        sick[name] = ready != "True" or is_tainted
        nodes = [one for one in sick if zones[one] == zone]
        count, known = sum(map(sick.__getitem__, nodes)), spells.setdefault(zone, [])
        is_out = count >= AT_LEAST and count * 100 // len(nodes) >= PERCENT
        is_open = bool(known) and known[-1].to_us == 1 << 62
        if is_out and not is_open:
            known.append(Spell(at_us, 1 << 62))
        elif is_open and not is_out:
            known[-1] = known[-1]._replace(to_us=at_us)
    return zones, spells


@pytest.mark.parametrize("folder", [pytest.param(RECOVERS, marks=pytest.mark.slow), DEAD], ids=["recovers", "dead"])
def test_nothing_goes_in_an_outage_and_spread_afterwards(folder: Path) -> None:
    zones, spells = outages(folder)
    found = trial(folder, policies_of(hold=HOLD))
    held = 0
    for one in found.governed:
        if one.issued_at_us is None or not one.taint.startswith("node.kubernetes.io/"):
            continue
        for spell in spells[zones[one.node]]:
            assert not spell.from_us <= one.issued_at_us < spell.to_us, one
            if (
                one.deadline_us <= spell.to_us < one.issued_at_us
            ):  # it waited, or the spell was over before its deadline
                share_us = zlib.crc32(one.pod_uid.encode()) * SPREAD * SECOND_US // 2**32
                assert spell.to_us + share_us <= one.issued_at_us <= spell.to_us + share_us + LOOKS_US
                held += 1
    assert any(spells.values())
    assert held == sum(one.delayed for one in found.clauses)


def test_a_dead_zone_keeps_all_its_pods() -> None:
    """The controller taints a node each ten seconds: by taints alone, pods of half the zone would have gone."""
    found = trial(DEAD, policies_of(hold=HOLD))
    assert (*issued(found), found.spared) == (100, 0, 100), "Kubernetes' own controller has deleted them"


@pytest.mark.slow
def test_after_a_zone_has_recovered_few_have_to_go() -> None:
    found = trial(RECOVERS, policies_of(hold=HOLD))
    assert (*issued(found), found.spared, found.held_at_end) == (68, 58, 10, {})


def windows(folder: Path, policies: Policies) -> Counter[tuple[str, str]]:
    """Count pods and deadlines as they were first decided; what an executor does is left as it was recorded."""
    replay = Replay(SETTINGS, partitions=1, plays_executor=False, steering=RecordedSteering(policies))
    source = open_source([Input(folder.name, folder / "events.jsonl.gz")], cluster=None, partitions=1, at=None)
    found: dict[str, tuple[str, str]] = {}
    for message in itertools.chain(replay.run(source.read()), replay.run_on(120)):
        if message.topic == "decisions":
            one = decode_decision(message.value)
            found.setdefault(one.eviction_id, (one.pod_uid, one.deadline))
    return Counter(found.values())


@pytest.mark.parametrize("folder", [pytest.param(RECOVERS, marks=pytest.mark.slow), DEAD], ids=["recovers", "dead"])
def test_a_hold_moves_no_window(folder: Path) -> None:
    without, governed = windows(folder, NO_POLICIES), windows(folder, policies_of(hold=HOLD))
    assert without == governed
    assert without


def test_the_example_holds_a_dead_zone() -> None:
    records = []
    for policy in read_policy_files([EXAMPLE]):
        text = policy_record(policy.name)
        records.append(text[:-1] + b', "spec": ' + encode(policy.spec) + b"}")
    found = trial(DEAD, read_policies(*records, appended_us=0))
    assert (*issued(found), found.spared) == (100, 0, 100)
