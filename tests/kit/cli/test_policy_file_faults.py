"""Files of policies that are refused: each fault with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from evictstream.streams.errors import WrongUseError
from tests.kit.cli.test_policy_files import read


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
        pytest.param("[" * 1_000, ["p.yaml:"], id="deep"),
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
