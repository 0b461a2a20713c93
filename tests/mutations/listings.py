"""Mutations of what feeds say of whole clusters: listings, epochs, who a cluster is; and of what executors accept."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

LISTINGS = "tests/streams/service/test_listings.py"
CLUSTERS = "tests/streams/service/test_clusters.py"
EXECUTING = "tests/models/eviction/test_executing.py"

OF_LISTINGS = (
    Mutation(
        "keep what a listing does not hold",
        (Change(product.EVICTION_PARTITION, "EvictionPartition._unlisted", "listed.covers(aggregate.name)", "False"),),
        (f"{LISTINGS}::test_pods_that_a_listing_does_not_hold_are_gone",),
    ),
    Mutation(
        "let a listing speak for nodes outside of its range",
        (Change(product.SIGNALS, "Listed.covers", "self.after < node", "True"),),
        (f"{LISTINGS}::test_pods_that_a_listing_does_not_hold_are_gone",),
    ),
    Mutation(
        "fire nodes in the middle of a listing",
        (Change(product.EFFECTS, "StepEffects.put_listing", "self.stepped.add(aggregate)", "pass"),),
        (f"{LISTINGS}::test_a_large_listing_is_written_whole",),
    ),
    Mutation(
        "let another cluster speak under a name",
        (Change(product.CLUSTERS, "Clusters.admit", "signal.cluster_uid not in ('', state.uid)", "False"),),
        (f"{CLUSTERS}::test_another_cluster_with_this_name_does_not_count",),
    ),
    Mutation(
        "take in records of an earlier epoch",
        (Change(product.CLUSTERS, "Clusters.is_stale", "epoch < state.epoch", "False"),),
        (f"{LISTINGS}::test_records_of_an_earlier_epoch_are_stale",),
    ),
    Mutation(
        "hold a repeat back for as long as an executor says so",
        (Change(product.POD_STEPS, "apply_result", "min(next_attempt_us, ...)", "next_attempt_us"),),
        (f"{EXECUTING}::test_accepted_holds_the_repeat_back_while_it_is_repeated",),
    ),
)
