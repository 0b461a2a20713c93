"""Policies from the command line: what a file may say, and how it is written and told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from evictstream.kit.cli.policy_files import WrittenPolicy, read_policy_files
from evictstream.kit.cli.policy_names import known_labels, unmatched_names
from evictstream.kit.cli.policy_table import file_text
from evictstream.kit.see.policies import clauses_text
from evictstream.models.messages.fleet import MOST_ZONES
from evictstream.models.messages.policy import Policy, PolicySpec
from evictstream.models.messages.policy_clauses import (
    GuardScope,
    HoldCondition,
    InFlightUnit,
    LimitScope,
    PolicyGuard,
    PolicyHold,
    PolicyInFlight,
    PolicyLimit,
    PolicySelection,
    PolicyWindow,
    PriorityRange,
    ZoneOutage,
)
from evictstream.streams.settings import Settings
from tests.deploy.test_see_page import state_of
from tests.harness.rows import State
from tests.models.steering.test_policies import policy_record

EXAMPLES = Path(__file__).parents[3] / "examples" / "policies"

WHOLE = """\
name: agents
why: agents taint their node while they start
for:
  clusters: [prod-*]
  taints: ["node.cilium.io/*"]
  nodes: [gpu-?]
  namespaces: [shop, bank]
  zones: [eu-1a, "eu-2*"]
  owners: [Job, StatefulSet/db-*]
  nodeLabels: [pool=gpu, example.com/rack=r?]
  priority: {below: 1000}
except:
  namespaces: [bank]
settle: 90s
patience: 2h
limit: {rate: 5/10m, burst: 3, per: namespace}
hold:
  outsideOf: Sat,Sun 22:00-05:00 UTC
  spread: 10m
  atMost: 2d
guard:
  moreThan: {count: 20, share: 10%}
  of: nodes
  within: 10m
  by: zone
  release: after 2h
spread: 5m
"""


def read(folder: Path, text: str) -> list[WrittenPolicy]:
    path = folder / "p.yaml"
    path.write_text(text)
    return read_policy_files([path])


def test_a_file_has_all_fields(tmp_path: Path) -> None:
    (policy,) = read(tmp_path, WHOLE)
    assert [(name.place.partition("p.yaml:")[2], name.pattern) for name in policy.names] == [
        ("4: for.clusters[0]", "prod-*"),
        ("8: for.zones[0]", "eu-1a"),
        ("8: for.zones[1]", "eu-2*"),
        ("10: for.nodeLabels[0]", "pool=gpu"),
        ("10: for.nodeLabels[1]", "example.com/rack=r?"),
    ]
    assert msgspec.structs.replace(policy, names=()) == WrittenPolicy(
        name="agents",
        why="agents taint their node while they start",
        spec=PolicySpec(
            selected=PolicySelection(
                clusters=("prod-*",),
                taints=("node.cilium.io/*",),
                nodes=("gpu-?",),
                namespaces=("shop", "bank"),
                zones=("eu-1a", "eu-2*"),
                owners=("Job", "StatefulSet/db-*"),
                node_labels=("pool=gpu", "example.com/rack=r?"),
                priority=PriorityRange(below=1000),
            ),
            excluded=PolicySelection(namespaces=("bank",)),
            settle_seconds=90,
            patience_seconds=7_200,
            limit=PolicyLimit(evictions=5, in_seconds=600, burst=3, per=LimitScope.NAMESPACE),
            hold=PolicyHold(
                outside_of=(PolicyWindow(begins="22:00", ends="05:00", zone="UTC", days=("Sat", "Sun")),),
                spread_seconds=600,
                at_most_seconds=172_800,
            ),
            guard=PolicyGuard(
                count=20, share_percent=10, within_seconds=600, by=GuardScope.ZONE, release_after_seconds=7_200
            ),
        ),
        spread_seconds=300,
    )


@pytest.mark.parametrize(
    ("text", "condition", "words"),
    [
        (
            "{zone: {unhealthy: 55%, atLeast: 4}}",
            HoldCondition(zone=ZoneOutage(unhealthy_percent=55, at_least=4)),
            "hold while 55% of a zone is unhealthy",
        ),
        ("{zones: allFull}", HoldCondition(zones="allFull"), "hold while all zones are in full disruption"),
    ],
)
def test_an_outage_is_read_written_and_told(tmp_path: Path, text: str, condition: HoldCondition, words: str) -> None:
    (policy,) = read(tmp_path, f"name: a\nwhy: w\nhold: {{while: {text}, atMost: 1h}}\n")
    assert policy.spec.hold == PolicyHold(condition=condition, at_most_seconds=3_600)
    assert clauses_text(policy.spec) == words
    record = msgspec.json.decode(policy_record("a", why="w"), type=Policy)
    (again,) = read(tmp_path, file_text(msgspec.structs.replace(record, spec=policy.spec)).replace("for: {}\n", ""))
    assert again.spec == policy.spec


@pytest.mark.parametrize(
    ("text", "limit", "words"),
    [
        ("{atMost: {count: 5}}", PolicyInFlight(count=5), "5 pods in flight per cluster"),
        (
            "{atMost: {share: 10%}, of: nodes, per: zone, until: gone, stuckAfter: 1h}",
            PolicyInFlight(share_percent=10, of=InFlightUnit.NODES, per=LimitScope.ZONE, counts_seconds=3_600),
            "10% of the nodes in flight per zone",
        ),
        (
            "{atMost: {count: 3, share: 10%}, of: nodes}",
            PolicyInFlight(count=3, share_percent=10, of=InFlightUnit.NODES),
            "3 nodes, 10% at most in flight per cluster",
        ),
        (
            "{atMost: {count: 1}, of: groups, per: label/rack}",
            PolicyInFlight(count=1, of=InFlightUnit.GROUPS, per=LimitScope.LABEL, label="rack"),
            "1 groups in flight per label/rack",
        ),
    ],
)
def test_what_is_in_flight_is_read_written_and_told(
    tmp_path: Path, text: str, limit: PolicyInFlight, words: str
) -> None:
    (policy,) = read(tmp_path, f"name: a\nwhy: w\nlimit: {text}\n")
    assert (policy.spec.limit, policy.spec.in_flight) == (None, limit)
    assert clauses_text(policy.spec) == words
    record = msgspec.json.decode(policy_record("a", why="w"), type=Policy)
    (again,) = read(tmp_path, file_text(msgspec.structs.replace(record, spec=policy.spec)).replace("for: {}\n", ""))
    assert again.spec == policy.spec


def test_names_that_nothing_has_are_told_with_their_place(tmp_path: Path) -> None:
    limited = read(
        tmp_path,
        """\
name: a
observe: true
---
name: b
for:
  clusters: [prod, "dev-*", lab]
  zones:
  - eu-1a
  - "eu-2*"
  nodeLabels: [pool=gpu, "pool=c*"]
except: {clusters: [gone], zones: [eu-1b], nodeLabels: [rack=r1]}
limit: {rate: 1/s, per: label/example.com/rack}
""",
    )
    clusters = {"prod": {"eu-1a", "eu-1c"}, "lab": set[str]()}
    labels = {("pool", "cpu"), ("rack", "r2")}
    told = [
        "6: for.clusters[1]: no known cluster matches dev-*",
        "9: for.zones[1]: no known node is in a zone eu-2*",
        "10: for.nodeLabels[0]: no known node has a label pool=gpu",
        "11: except.clusters[0]: no known cluster matches gone",
        "11: except.zones[0]: no known node is in a zone eu-1b",
        "11: except.nodeLabels[0]: no known node has a label rack=r1",
        "12: limit.per: no known node has a label example.com/rack=*",
    ]
    assert unmatched_names(limited, clusters, labels) == [f"{tmp_path}/p.yaml:{one}" for one in told]
    assert [one for one in unmatched_names(limited, clusters, None) if "label" in one] == []
    many = {"prod": {f"z-{number}" for number in range(MOST_ZONES)}}
    assert [one for one in unmatched_names(limited, many, labels) if "zone" in one] == []


def test_labels_count_only_if_all_are_known() -> None:
    rows = State(Settings.model_validate({"partitions": 2}))
    assert known_labels(None) is None
    assert known_labels(state_of(rows)) is None
    rows.node("prod", "n-1", zone="eu-1a")
    rows.node("lab", "n-2", zone="eu-1b")
    rows.pod("lab", "n-3", "alone")
    zones = {label[1] for label in known_labels(state_of(rows)) or ()}
    assert zones == {"eu-1a", "eu-1b"}
    state = state_of(rows)
    (prod,) = (one.aggregate for one in state.nodes() if one.aggregate.name == "n-1")
    assert prod.node is not None
    prod.node = msgspec.structs.replace(prod.node, labels=None)
    assert known_labels(state) is None


def test_a_file_has_several_policies(tmp_path: Path) -> None:
    found = read(tmp_path, "name: a\nobserve: true\n---\n---\nname: b\nsettle: 5s\n")
    assert [one.name for one in found] == ["a", "b"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_policies(path: Path) -> None:
    assert all(one.why for one in read_policy_files([path]))
