"""The look into the rows that a service leaves."""

from __future__ import annotations

import msgspec
import pytest

from evictstream.kit.oracle.records import InputRecord
from tests.faults.node_rows import check_nodes
from tests.faults.numbers import NUMBERS
from tests.faults.objects import UNREACHABLE, Json, Node, watch_event

AT_US = 1_760_000_000_000_000
TAINT: Json = {"key": UNREACHABLE, "effect": "NoExecute"}
RIGHT = [1, "uid", 2, [[UNREACHABLE, "", AT_US, AT_US, None]], AT_US, None, []]


def heard(node: Node, offset: int) -> InputRecord:
    value = watch_event(node.cluster, "MODIFIED", node.shown(offset + 1), AT_US)
    return InputRecord(topic="nodes", partition=0, offset=offset, append_at_us=AT_US, key=node.key, value=value)


INPUTS = [heard(Node("c0", "n0", "uid"), 0), heard(Node("c0", "n0", "uid", [TAINT], "Unknown"), 1)]


@pytest.mark.parametrize(
    ("row", "taken", "is_wrong"),
    [
        pytest.param(RIGHT, 2, False, id="as heard"),
        pytest.param(None, 2, True, id="no row"),
        pytest.param([1, "other", *RIGHT[2:]], 2, True, id="another node"),
        pytest.param([*RIGHT[:3], [], *RIGHT[4:]], 2, True, id="no taint"),
        pytest.param([*RIGHT[:3], [[UNREACHABLE, "", AT_US + 1, AT_US, None]], *RIGHT[4:]], 2, True, id="since later"),
        pytest.param([*RIGHT[:4], None, None, []], 2, True, id="no outage"),
        pytest.param([1, "uid", 1, [], None, None, []], 1, False, id="the taint is not taken in yet"),
        pytest.param(None, 0, False, id="nothing is taken in yet"),
    ],
)
def test_a_nodes_row_says_what_was_heard(row: list[object] | None, taken: int, *, is_wrong: bool) -> None:
    table = {} if row is None else {b"node\0c0/n0": msgspec.msgpack.encode(row)}
    positions = {0: {"nodes": taken}}
    found = list(check_nodes(table, INPUTS, positions=positions, limits=NUMBERS.limits(), partitions=1))
    assert [violation.rule for violation in found] == ["state: node"] * is_wrong
