"""Mutations of what is known of nodes and pods for brakes and policies."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

READ = "tests/models/kubernetes/test_traits.py"
ROWS = "tests/models/eviction/test_traits_in_rows.py"
FAST = "tests/streams/partition/test_fast_path_traits.py"
PATTERNS = "tests/models/steering/test_patterns.py"
HELD = "tests/streams/partition/test_traits_held.py"

OF_TRAITS = (
    Mutation(
        "lose the zones at a takeover",
        (Change(product.NODE_ROWS, "node_value", "node.labels if node is not None else None", "None"),),
        (ROWS, HELD),
    ),
    Mutation(
        "lose the owners at a takeover",
        (Change(product.POD_ROWS, "pod_value", "traits is None", "True"),),
        (ROWS,),
    ),
    Mutation(
        "pass over another owner on the fast path",
        (Change(product.FAST_PATH, "_are_traits", "read_pod_traits(metadata, spec) != traits", "False"),),
        (FAST,),
    ),
    Mutation(
        "keep another owner from being written",
        (Change(product.POD_STEPS, "apply_pod", "seen.traits != pod.traits", "False"),),
        (ROWS, FAST),
    ),
    Mutation(
        "count a window from the change of an owner",
        (Change(product.POD_STEPS, "_take_traits", "pod.traits = event.pod.traits", "$0\npod.since_us = event.at_us"),),
        (ROWS,),
    ),
    Mutation(
        "pass over what a newer feed tells of a known version",
        (Change(product.NODE_STEPS, "_take_labels", "labels is node.labels", "True"),),
        (ROWS,),
    ),
    Mutation(
        "take an owner that is not the controller",
        (Change(product.TRAITS, "_controller", "owner.controller", "True"),),
        (READ,),
    ),
    Mutation(
        "take a name of any length",
        (Change(product.TRAITS, "_short", "len(text) <= LONGEST_TRAIT", "True"),),
        (READ,),
    ),
    Mutation(
        "hold nothing by its zone before it is issued",
        (Change(product.HELD_ATTEMPTS, "subject_of", "node.zone", "None"),),
        (HELD, ROWS),
    ),
    Mutation(
        "let go what is of no known zone",
        (Change(product.STEERING_PATTERNS, "TraitPatterns._match_name", "self._is_unknown_in", "False"),),
        (PATTERNS,),
    ),
    Mutation(
        "except what nobody knows",
        (Change(product.STEERING_POLICIES, "_Clauses.__init__", "is_unknown_in=False", "is_unknown_in=True"),),
        (PATTERNS,),
    ),
    Mutation(
        "hold a pod without owner for the owners' policy",
        (Change(product.STEERING_PATTERNS, "TraitPatterns._match_name", "name != ''", "True"),),
        (PATTERNS,),
    ),
    Mutation(
        "hold the highest priority that is not below",
        (
            Change(
                product.STEERING_PATTERNS,
                "TraitPatterns._match_priority",
                "subject.traits.priority < below",
                "subject.traits.priority <= below",
            ),
        ),
        (PATTERNS,),
    ),
    Mutation(
        "write labels of any size into a row",
        (Change(product.RECORD_SIZES, "_without_large_traits", "_size(event.node.labels) >= limit_bytes", "False"),),
        ("tests/streams/partition/test_partitioner_and_sizes.py",),
    ),
)
