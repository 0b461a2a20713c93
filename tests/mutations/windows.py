"""Mutations of windows, of what is called late, and of what is played: random lives that are replayed notice them."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

LIVES = "tests/faults/replayed/test_sample.py::test_random_lives_are_replayed_as_the_oracle_says"
VALUES = "tests/models/eviction/test_value_windows.py"
KNOWN = "tests/models/eviction/test_known.py"
OUTAGES = "tests/streams/partition/test_outages.py::test_when_pods_of_dead_nodes_leave"
LOGS = "tests/streams/partition/test_outages.py::test_rows_know_of_outages_what_the_log_tells"
READY = "tests/models/eviction/test_ready_nodes.py"
RECORDED = "tests/incidents/test_outages.py"
PLAYED = "tests/kit/replay/test_simulated_executor.py"

OF_WINDOWS = (
    Mutation(
        "begin no window with a value",
        (Change(product.DECISION, "_began_with_value", "finder.looks_at_value(...)", "False"),),
        (VALUES, LIVES),
    ),
    Mutation(
        "call late what was not known before",
        (Change(product.LIFECYCLE, "_known_us", "known_us > due.deadline_us", "False"),),
        (KNOWN, LIVES),
    ),
    Mutation(
        "begin another outage after each long gap",
        (Change(product.CLUSTER, "one_is_ready_since", "return True", "return False"),),
        (READY, OUTAGES, RECORDED),
    ),
    Mutation(
        "go on with an outage after a full disruption",
        (Change(product.CLUSTER, "one_is_ready_since", "node.ready_since_us <= at_us", "True"),),
        (READY, OUTAGES, RECORDED),
    ),
    Mutation(
        "forget at a restart since when nodes are ready",
        (Change(product.NODE_ROWS, "read_node_value", "row.ready_since_us", "None"),),
        (READY, OUTAGES, RECORDED),
    ),
    Mutation(
        "take a listed node for one that was watched",
        (Change(product.NODE_STEPS, "_update", "event.type is EventType.ADDED", "False"),),
        (READY, LOGS),
    ),
    Mutation(
        "play evictions with versions above those of other clusters",
        (
            Change(product.SIMULATED_EXECUTOR, "_next_version", "version + 1", "10**12"),
            Change(product.SIMULATED_EXECUTOR, "SimulatedExecutor.admit", "[self._end(before, now_us)]", "[]"),
        ),
        (PLAYED, LIVES),
    ),
)
