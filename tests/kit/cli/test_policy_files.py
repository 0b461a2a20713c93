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
from evictstream.models.messages.policy import (
    GuardScope,
    HoldCondition,
    InFlightUnit,
    LimitScope,
    Policy,
    PolicyGuard,
    PolicyHold,
    PolicyInFlight,
    PolicyLimit,
    PolicySelection,
    PolicySpec,
    PolicyWindow,
    PriorityRange,
    ZoneOutage,
)
from evictstream.streams.errors import WrongUseError
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


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("name: a\nobserve: yes\n", ["p.yaml:2: observe is neither true nor false"], id="YAML 1.2"),
        pytest.param("name: a\nsettle: 22:00\n", ["p.yaml:2: settle is not a length of time"], id="a time of day"),
        pytest.param("name: a\nsettle: 5\n", ["p.yaml:2: settle is not a length of time"], id="no unit"),
        pytest.param("name: a\nsettle: 8d\n", ["p.yaml:2: settle should be less than or equal to"], id="too long"),
        pytest.param("name: a\nsettle: 5s\nname: b\n", ["p.yaml:3:", "duplicate key"], id="a key twice"),
        pytest.param("name: A b\nobserve: true", ["p.yaml:1: name is not a name"], id="name"),
        pytest.param("observe: true", ["p.yaml:1: name is missing"], id="no name"),
        pytest.param("name: a\nquota: {by: node}\n", ["p.yaml:2: quota is no field"], id="a later version's clause"),
        pytest.param("name: a\nguard: {within: 5m}\n", ["2: guard.moreThan is missing"], id="a guard of nothing"),
        pytest.param(
            "name: a\nguard: {moreThan: {}, within: 5m}\n",
            ["p.yaml:2: guard.moreThan: a guards nothing"],
            id="a guard without number",
        ),
        pytest.param("name: a\nguard: {moreThan: {count: 3}}\n", ["2: guard.within is missing"], id="no time"),
        pytest.param(
            "name: a\nguard: {moreThan: {share: 10}, within: 5m}\n", ["moreThan.share is not a share"], id="10"
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {share: 101%}, within: 5m}\n", ["moreThan.share is not a share"], id="101 %"
        ),
        pytest.param(
            "name: a\nguard:\n  moreThan: {count: 3}\n  of: owners\n  within: 5m\n",
            ["p.yaml:4: guard.of is neither nodes nor pods nor ownersLosingAll"],
            id="owners",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {count: 3}, within: 5m, by: node}\n",
            ["p.yaml:2: guard counts nodes by node, where there is one: count its pods, with `of: pods`"],
            id="one node of a node",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {share: 3%}, within: 5m, of: pods}\n",
            ["p.yaml:2: guard has a share, which is of nodes: give a count of pods"],
            id="a share of pods",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {count: 3}, within: 2h, of: pods}\n",
            ["p.yaml:2: guard counts pods within more than 1h: so long pods that have left are remembered"],
            id="too long for pods",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {share: 3%}, within: 5m, of: ownersLosingAll}\n",
            ["p.yaml:2: guard has a share, which is of nodes: give a count of owners"],
            id="a share of owners",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {count: 3}, within: 2h, of: ownersLosingAll}\n",
            ["p.yaml:2: guard counts owners within more than 1h: so long pods that have left are remembered"],
            id="too long for owners",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {count: 3}, within: 5m, of: ownersLosingAll, by: zone}\n",
            ["p.yaml:2: guard counts owners by zone, and an owner has pods on several nodes: leave `by` out"],
            id="owners of a zone",
        ),
        pytest.param(
            "name: a\nguard:\n  moreThan: {count: 3}\n  within: 5m\n  by: rack\n",
            ["p.yaml:5: guard.by is neither taintKey nor zone nor node"],
            id="rack",
        ),
        pytest.param(
            "name: a\nguard: {moreThan: {count: 3}, within: 5m, release: soon}\n",
            ["guard.release is neither"],
            id="soon",
        ),
        pytest.param("name: a\nlimit: {rate: 5}\n", ["p.yaml:2: limit.rate is not a rate"], id="no time of a rate"),
        pytest.param("name: a\nlimit: {rate: 1.5/s}\n", ["p.yaml:2: limit.rate is not a rate"], id="half of one"),
        pytest.param("name: a\nlimit: {rate: 0/s}\n", ["p.yaml:2: limit.rate is out of range"], id="no rate"),
        pytest.param("name: a\nlimit: {rate: 1/2d}\n", ["p.yaml:2: limit.rate is out of range"], id="too slow"),
        pytest.param("name: a\nlimit: {burst: 5}\n", ["p.yaml:2: limit needs either rate"], id="a burst alone"),
        pytest.param("name: a\nlimit: {rate: 1/s, burst: 0}\n", ["p.yaml:2: limit.burst"], id="no burst"),
        pytest.param("name: a\nlimit: {rate: 1/s, per: rack}\n", ["p.yaml:2: limit.per"], id="an unknown scope"),
        pytest.param("name: a\nlimit: {rate: 1/s, per: label}\n", ["p.yaml:2: limit.per"], id="a label without key"),
        pytest.param("name: a\nlimit: {rate: 1/s, per: zone/a}\n", ["p.yaml:2: limit.per"], id="a zone with a name"),
        pytest.param(
            "name: a\nobserve: true\nlimit: {rate: 1/s}\n",
            ["p.yaml:2: observe: a observes, so"],
            id="limited and observed",
        ),
        pytest.param("name: a\nlimit: {atMost: {}}\n", ["2: limit.atMost needs a count"], id="no number at once"),
        pytest.param("name: a\nlimit: {atMost: {count: 0}}\n", ["2: limit.atMost.count"], id="none at once"),
        pytest.param("name: a\nlimit: {atMost: {share: 5%}}\n", ["limit has a share, which is"], id="share of pods"),
        pytest.param("name: a\nlimit: {rate: 1/s, of: pods}\n", ["2: limit is a rate"], id="a rate of pods"),
        pytest.param("name: a\nlimit: {rate: 1/s, atMost: {count: 1}}\n", ["limit needs either"], id="rate and number"),
        pytest.param("name: a\nlimit: {atMost: {count: 1}, burst: 2}\n", ["limit has a burst"], id="a burst at once"),
        pytest.param(
            "name: a\nlimit: {atMost: {count: 1}, until: replaced}\n", ["2: limit.until should be"], id="replaced"
        ),
        pytest.param("name: a\nhold: {spread: 5s}\n", ["p.yaml:2: hold needs either"], id="no window"),
        pytest.param(
            "name: a\nhold:\n  while: {zone: {unhealthy: 0.5}}\n", ["3: hold.while.zone.unhealthy is not a"], id="share"
        ),
        pytest.param("name: a\nhold: {while: {zone: {unhealthy: 101%}}}\n", ["2: hold.while.zone"], id="over all"),
        pytest.param("name: a\nhold: {while: {zones: allFull}}\n", ["hold needs atMost"], id="an outage without end"),
        pytest.param("name: a\nhold: {while: {zones: some}}\n", ["2: hold.while.zones should be"], id="no word"),
        pytest.param("name: a\nhold: {while: {}}\n", ["2: hold.while is one of two"], id="no condition"),
        pytest.param("name: a\nhold: {outsideOf: 7}\n", ["p.yaml:2: hold.outsideOf is not a window"], id="a number"),
        pytest.param("name: a\nhold:\n  outsideOf: []\n", ["p.yaml:3: hold.outsideOf"], id="an empty list of windows"),
        pytest.param(
            "name: a\nhold:\n  outsideOf: [1:00-2:00 UTC]\n", ["3: hold.outsideOf is not a window"], id="an hour"
        ),
        pytest.param("name: a\nobserve: true\nfor:\n  racks: [a]\n", ["p.yaml:4: for.racks is no field"], id="racks"),
        pytest.param("name: a\nobserve: true\nfor:\n  zones: []\n", ["p.yaml:4: for.zones"], id="no zone"),
        pytest.param(
            "name: a\nobserve: true\nfor:\n  nodeLabels:\n  - pool\n", ["5: for.nodeLabels[0] is not a label"], id="key"
        ),
        pytest.param(
            "name: a\nobserve: true\nfor: {nodeLabels: ['a*=b']}\n", ["3: for.nodeLabels[0] is not"], id="key with *"
        ),
        pytest.param(
            f"name: a\nobserve: true\nfor: {{nodeLabels: [a={'b' * 600}]}}\n", ["3: for.nodeLabels[0]"], id="long label"
        ),
        pytest.param(
            "name: a\nobserve: true\nfor: {priority: 7}\n", ["3: for.priority has no fields"], id="a bare priority"
        ),
        pytest.param("name: a\nobserve: true\nfor: {priority: {}}\n", ["3: for.priority.below is missing"], id="none"),
        pytest.param(
            "name: a\nobserve: true\nfor: {priority: {below: high}}\n",
            ["3: for.priority.below is not a whole number"],
            id="a word",
        ),
        pytest.param("name: a\nobserve: true\nfor: {priority: {below: 2147483649}}\n", ["3: for.prio"], id="too high"),
        pytest.param(
            "name: a\nobserve: true\nfor: {priority: {below: 5}}\nexcept: {priority: {below: 5}}\n",
            ["p.yaml:4: except: a selects nothing"],
            id="no priority left",
        ),
        pytest.param(
            "name: a\nobserve: true\nfor:\n  nodes:\n  - 7\n", ["p.yaml:5: for.nodes[0] is not a text"], id="number"
        ),
        pytest.param("name: a\nobserve: true\nfor:\n  nodes: x\n", ["p.yaml:4: for.nodes is not a list"], id="no list"),
        pytest.param("name: a\nobserve: true\nfor:\n  nodes: []\n", ["p.yaml:4: for.nodes"], id="an empty list"),
        pytest.param("name: a\nobserve: true\nfor: x\n", ["p.yaml:3: for has no fields"], id="no fields"),
        pytest.param("name: a\n", ["p.yaml:1: a does nothing"], id="no clause"),
        pytest.param(
            "name: a\nobserve: true\nsettle: 5s\n", ["2: observe: a observes, so its other clauses"], id="contradiction"
        ),
        pytest.param(
            "name: a\nobserve: true\nexcept: {}\n", ["p.yaml:3: except: a has an empty except"], id="nothing excluded"
        ),
        pytest.param(
            "name: a\nobserve: true\nfor: {nodes: [x]}\nexcept: {nodes: [x, y]}\n",
            ["p.yaml:4: except: a selects nothing"],
            id="nothing left",
        ),
        pytest.param(
            "name: a\nobserve: true\n---\nname: a\nobserve: true\n", ["p.yaml:4: name: there are two"], id="twice"
        ),
        pytest.param("name: a\nobserve: true\nexcept:\n", ["3: except has no value"], id="an empty except"),
        pytest.param("name: a\nobserve: true\nfor:\n  taints:\n", ["4: for.taints has no value"], id="no taints"),
        pytest.param("%YAML 1.1\n---\nname: a\nobserve: yes\n", ["a line begins with %"], id="another YAML"),
        pytest.param("? a: [b]\n: c\n", ["p.yaml:"], id="a key that is a list"),
        pytest.param("- a\n", ["a document is not a policy"], id="a list"),
        pytest.param("name: [\n", ["p.yaml:"], id="no YAML"),
        pytest.param("a: &x [*x]\nname: !!python/object:os.system b\n", ["p.yaml:"], id="tags and cycles"),
        pytest.param("[" * 10_000, ["p.yaml:"], id="deep"),
        pytest.param("# nothing\n", ["no policy in"], id="nothing"),
        pytest.param("x" * 1_048_577, ["has more than 1048576 bytes"], id="too large"),
        pytest.param(
            "name: A b\nsettle: 5\nfor:\n  nodes: x\n",
            ["p.yaml:1: name", "p.yaml:2: settle", "p.yaml:4: for.nodes"],
            id="all faults at once",
        ),
    ],
)
def test_what_no_policy_can_be_is_refused(tmp_path: Path, text: str, faults: list[str]) -> None:
    with pytest.raises(WrongUseError) as refused:
        read(tmp_path, text)
    for fault in faults:
        assert fault in refused.value.problem
    assert len(refused.value.problem) < 3_000


def test_a_file_that_multiplies_itself_costs_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in range(1, 30)]
    with pytest.raises(WrongUseError):
        read(tmp_path, "\n".join([*lines, "name: a", "for: {nodes: *a29}", "observe: true"]))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_policies(path: Path) -> None:
    assert all(one.why for one in read_policy_files([path]))
