"""What policies make of a preview is what they make of the change once it is there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.cluster_tables import ClusterTables
from evictstream.kit.replay.policy_preview import GovernedPreview, governed_preview
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.replay import Replay
from evictstream.kit.rules.kubectl import TaintChanges
from evictstream.kit.what_if.change import NodeChoice, PlannedChange
from evictstream.kit.what_if.preview import changed_nodes, preview
from evictstream.models.eviction import RuleParameters
from evictstream.models.kubernetes import Taint
from evictstream.models.steering.policies import Policies
from tests.harness.examples import examples
from tests.kit.replay.test_policy_trial import CLAUSES, policies_of
from tests.kit.replay.test_what_if import BEGIN_MS, NOW_MS, SETTINGS, Log

SECONDS = 120
ZONE = "topology.kubernetes.io/zone"
CHANGE = PlannedChange(taints=TaintChanges((Taint("down", "", "NoExecute"),), ()))


def lives(stays: list[int | None]) -> Log:
    """Return two nodes in zones of their own, each with pods that tolerate the taint for some seconds, or never."""
    log = Log()
    for name in ("n-1", "n-2"):
        metadata = {"name": name, "uid": f"uid-{name}", "labels": {ZONE: f"z-{name}"}}
        log.add(BEGIN_MS, "Node", name, {"metadata": metadata, "spec": {}})
        for number, seconds in enumerate(stays):
            toleration = {"key": "down", "operator": "Exists", "tolerationSeconds": seconds}
            log.pod(BEGIN_MS, f"p{number}-{name}", name, [] if seconds is None else [toleration], "Running")
    return log


def foreseen(records: list[RecordedRecord], policies: Policies) -> GovernedPreview:
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(records)
    nodes = changed_nodes(
        tables.cluster("lab"),
        CHANGE,
        NodeChoice(names=frozenset({"n-1"})),
        at_us=NOW_MS * 1_000,
        rules=RuleParameters(),
    )
    steering = tables.steering.given(policies)
    return governed_preview(SETTINGS, nodes, steering, at_us=NOW_MS * 1_000, seconds=SECONDS)


def happens(log: Log, policies: Policies) -> dict[str, int]:
    """Return when each pod is evicted once the taint is there; the clock has begun there, as of an empty bucket."""
    metadata = {"name": "n-1", "uid": "uid-n-1", "labels": {ZONE: "z-n-1"}}
    taint = {"key": "down", "effect": "NoExecute"}
    log.add(NOW_MS, "Node", "n-1", {"metadata": metadata, "spec": {"taints": [taint]}})
    run = Replay(SETTINGS, partitions=1, plays_executor=True, steering=RecordedSteering(policies))
    found: dict[str, int] = {}
    for message in (*run.run(log.records), *run.run_on(SECONDS)):
        command = json.loads(message.value) if message.topic == "commands" else {}
        if command.get("action") == "Evict":
            found.setdefault(command["podUid"], message.at_us)
    return found


@given(
    clauses=CLAUSES.map(lambda spec: {name: value for name, value in spec.items() if name != "limit"}),
    stays=st.lists(st.sampled_from([None, 0, 5, 40, 300]), max_size=4),
)
@hypothesis_settings(deadline=None, max_examples=examples(40))
def test_a_governed_preview_is_what_the_service_does(clauses: dict[str, object], stays: list[int | None]) -> None:
    policies = policies_of(**clauses)
    log = lives(stays)
    found = foreseen(log.records, policies)
    issued = {uid: fate.issued_us for uid, fate in found.fates.items() if fate.issued_us is not None}
    assert issued == happens(log, policies)


def test_a_limit_counts_from_an_empty_bucket() -> None:
    found = foreseen(lives([None] * 3).records, policies_of(limit={"evictions": 1, "inSeconds": 50}))
    seconds = sorted((fate.issued_us or 0) / 1_000_000 - NOW_MS / 1_000 for fate in found.fates.values())
    assert seconds[1:] == pytest.approx([50, 100])
    (held,) = [fate.hold for fate in found.fates.values() if fate.hold is not None]
    assert (held.by, held.until_us) == ("policy/p/1/limit", None)


def test_a_selection_by_zone_knows_changed_nodes() -> None:
    here, elsewhere = (
        foreseen(lives([None]).records, policies_of(observe=True, **{"for": {"zones": [zone]}}))
        for zone in ("z-n-1", "z-n-2")
    )
    assert [fate.issued_us for fate in here.fates.values()] == [None]
    assert [fate.issued_us for fate in elsewhere.fates.values()] == [NOW_MS * 1_000]


def test_the_preview_itself_stays_as_it_is() -> None:
    log = lives([None, 40])
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(log.records)
    cluster, choice = tables.cluster("lab"), NodeChoice(names=frozenset({"n-1"}))
    before = preview(cluster, CHANGE, choice, at_us=NOW_MS * 1_000, rules=RuleParameters())
    nodes = changed_nodes(cluster, CHANGE, choice, at_us=NOW_MS * 1_000, rules=RuleParameters())
    governed_preview(SETTINGS, nodes, RecordedSteering(), at_us=NOW_MS * 1_000, seconds=SECONDS)
    assert preview(cluster, CHANGE, choice, at_us=NOW_MS * 1_000, rules=RuleParameters()) == before


@pytest.mark.parametrize(("ready", "is_held"), [("True", False), ("Unknown", True)])
def test_a_changed_node_is_as_ready_as_before(*, ready: str, is_held: bool) -> None:
    log = Log()
    for number in range(4):
        metadata = {"name": f"n-{number}", "uid": f"uid-{number}", "labels": {ZONE: "z"}}
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        log.add(BEGIN_MS, "Node", f"n-{number}", {"metadata": metadata, "spec": {}, "status": status})
        log.pod(BEGIN_MS, f"p{number}", f"n-{number}", [], "Running")
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(log.records)
    nodes = changed_nodes(
        tables.cluster("lab"), CHANGE, NodeChoice(zone="z"), at_us=NOW_MS * 1_000, rules=RuleParameters()
    )
    hold = {"while": {"zone": {"unhealthyPercent": 50, "atLeast": 1}}, "atMostSeconds": 600}
    policies = policies_of(hold=hold, **{"for": {"taints": ["down"]}})
    found = governed_preview(SETTINGS, nodes, RecordedSteering(policies), at_us=NOW_MS * 1_000, seconds=SECONDS)
    assert [fate.hold is not None for fate in found.fates.values()] == [is_held] * 4
