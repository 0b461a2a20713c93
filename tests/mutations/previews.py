"""Mutations of what foresees a change: each would promise people something that does not happen."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

REPLAYED = "tests/kit/replay/test_what_if.py::test_a_preview_is_what_the_service_decides"
PREVIEW = "tests/kit/what_if/test_preview.py"
PLACES = "tests/kit/what_if/test_places.py"
FACTS = "tests/kit/what_if/test_facts.py"
TABLES = "tests/kit/replay/test_cluster_tables.py"
LEASES = "tests/kit/upstream/lifecycle/test_live_leases.py"

OF_PREVIEWS = (
    Mutation(
        "judge nodes while the cache of leases is behind",
        (Change(product.NODE_LIFECYCLE, "NodeLifecycle._judge", "leases.are_awaited", "False"),),
        (LEASES,),
    ),
    Mutation(
        "call a node silent whose lease could not be read",
        (Change(product.LEASES, "WatchedLeases.look", "return LiveLease.UNREAD", "return LiveLease.AS_REMEMBERED"),),
        (LEASES,),
    ),
    Mutation(
        "call a node silent whose lease is another one",
        (Change(product.LEASES, "WatchedLeases.look", "live.version == remembered.version", "True"),),
        (LEASES,),
    ),
    Mutation(
        "read leases without asking the limiter",
        (Change(product.NODE_LIFECYCLE, "NodeLifecycle._judge", "now_us = yield API_REQUEST", "now_us = yield NOW"),),
        (LEASES,),
    ),
    Mutation(
        "foresee a pod with the taints that its node has now",
        (Change(product.WHAT_IF_PREVIEW, "_outcomes", "changed.node", "known.node"),),
        (REPLAYED, f"{PREVIEW}::test_what_becomes_of_a_pod"),
    ),
    Mutation(
        "foresee a pod with the tolerations that it has now",
        (Change(product.WHAT_IF_CHANGE, "_changed_pod", "tolerations != pod.tolerations", "False"),),
        (REPLAYED, f"{PREVIEW}::test_what_becomes_of_a_pod"),
    ),
    Mutation(
        "begin windows anew that run already",
        (
            Change(
                product.WHAT_IF_CHANGE,
                "changed_aggregate",
                "changed.node = current.node",
                "changed.node = current.node and type(known.node)(uid=known.node.uid, version=known.node.version)",
            ),
        ),
        (REPLAYED, f"{PREVIEW}::test_what_becomes_of_a_pod"),
    ),
    Mutation(
        "send pods to nodes that would evict them again",
        (Change(product.WHAT_IF_PLACES, "Places._welcome_at", "verdict.eviction is EvictionTiming.NEVER", "True"),),
        (f"{PLACES}::test_where_a_pod_could_go",),
    ),
    Mutation(
        "take what a trimmed pod does not say for no wish",
        (Change(product.WHAT_IF_FACTS, "_pod_facts", "is_whole or ...", "True"),),
        (f"{FACTS}::test_what_a_pod_asks_of_its_node",),
    ),
    Mutation(
        "believe facts of an older version",
        (Change(product.CLUSTER_TABLES, "ClusterTables.take_facts", "is_older(...)", "False"),),
        (f"{TABLES}::test_facts_of_an_older_version_do_not_count",),
    ),
)
