"""Mutations that the whole loop on a real Kafka has to notice, with one trouble from outside at a time."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

OUTSIDE = "tests/faults/loop/test_outside.py"

FROM_OUTSIDE = (
    Mutation(
        "outside: keep credentials that are refused",
        (Change(product.CONNECTION_TO_API, "Connection._opened", "exchange.status == UNAUTHORIZED", "False"),),
        (f"{OUTSIDE}::test_credentials_that_are_replaced_or_fail",),
    ),
    Mutation(
        "outside: stay with a watch that shows nothing",
        (Change(product.KIND_FEED, "KindFeed.run", "self.progress.is_behind(time.monotonic())", "False"),),
        (f"{OUTSIDE}::test_a_watch_cache_that_stands_still",),
    ),
    Mutation(
        "outside: take the records of an open transaction",
        (Change(product.FETCHED_BATCHES, "DecodedRecords._opened", "reading.refuses_transactions", "False"),),
        (f"{OUTSIDE}::test_transactions_that_are_left_open",),
    ),
    Mutation(
        "outside: give up on an object that is too deep",
        (
            Change(product.UNREAD_OBJECTS, "read_anyway", "BROKEN", "()"),
            Change(product.UNREAD_OBJECTS, "read_anyway", "shallow(...)", "text"),
        ),
        (f"{OUTSIDE}::test_unlike_executors_a_tenant_and_a_dead_cluster",),
    ),
    Mutation(
        "outside: serve one cluster after the other",
        (Change(product.EXECUTION, "execute_commands", "life.start()", "life.run()"),),
        (f"{OUTSIDE}::test_unlike_executors_a_tenant_and_a_dead_cluster",),
    ),
)
