"""Mutations of how guards count what belongs to nodes or taints that are gone."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

GONE = "tests/streams/partition/test_guards_gone_nodes.py"
HELD = "tests/streams/partition/test_guards_held.py"
MACHINE = "tests/streams/partition/test_guards_machine.py"
ORACLE = "tests/kit/oracle/test_guards.py"

OF_GONE_NODES = (
    Mutation(
        "forget the taints of a node with it",
        (Change(product.NODE_STANDING, "node_left", "node.taints", "False"),),
        (GONE, MACHINE),
    ),
    Mutation(
        "forget the taints of deleted nodes after a takeover",
        (Change(product.NODE_ROWS, "_earlier_node", "tuple(row.taints)", "()"),),
        (GONE,),
    ),
    Mutation(
        "forget how many pods have left a deleted node",
        (Change(product.NODE_STANDING, "node_left", "pods[key]", "0"),),
        (GONE,),
    ),
    Mutation(
        "keep an incident alive by deleted nodes",
        (Change(product.STEERING_GUARDS, "GuardCount._in_span", "name not in self._gone", "True"),),
        (GONE, MACHINE),
    ),
    Mutation(
        "count taints of a deleted node that were excluded by its labels",
        (Change(product.STEERING_GUARDS, "GuardCount.see", "key in before", "True"),),
        (GONE,),
    ),
    Mutation(
        "count a pod for the taint that is gone, as long as its eviction is not repeated",
        (Change(product.LEAVING_PODS, "_known_leaving", "rules is not None", "False"),),
        (HELD,),
    ),
    Mutation(
        "remember all keys of a deleted node",
        (Change(product.NODE_STANDING, "node_left", "MOST_TAINTS_LEFT", "len(since_us)"),),
        (GONE,),
    ),
)
