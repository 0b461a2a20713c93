"""Mutations of what is made of files of others: audit logs, and times that nobody has recorded."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

AUDITED = "tests/kit/recordings/test_audited_objects.py::test_what_a_watch_would_have_shown"
AUDIT_LOG = "tests/kit/recordings/test_audit_log.py::test_what_is_left_out_is_counted"
ASSUMED = "tests/kit/recordings/test_assumed_times.py::test_instants_that_are_over"

OF_RECORDINGS = (
    Mutation(
        "take answers in the order in which they are complete",
        (
            Change(
                product.AUDIT_ORDER,
                "_Order._arrived",
                "0 < _version(one) < change.version and one.at_us > arrived.at_us",
                "False",
            ),
        ),
        (AUDITED,),
    ),
    Mutation(
        "end a pod that a finalizer keeps",
        (Change(product.AUDITED_OBJECTS, "_is_gone", "metadata.finalizers", "False"),),
        (AUDITED,),
    ),
    Mutation(
        "let a late answer take an eviction back",
        (
            Change(
                product.AUDITED_OBJECTS,
                "_no_news",
                "previous.is_terminating and about.metadata.deletion_timestamp is None",
                "False",
            ),
        ),
        (AUDITED,),
    ),
    Mutation(
        "bring back what has been deleted",
        (Change(product.AUDITED_OBJECTS, "AuditedObjects._seen", "uid in self._gone", "False"),),
        (AUDITED,),
    ),
    Mutation(
        "believe a dry run",
        (Change(product.AUDIT_LOG, "_change", "_DRY_RUN.search(event.request_uri)", "False"),),
        (AUDIT_LOG,),
    ),
    Mutation(
        "believe that a deletion was asked for when it will be over",
        (
            Change(
                product.ASSUMED_TIMES,
                "latest_instant_us",
                "(metadata.deletion_grace_period_seconds or 0) * SECOND_US",
                "0",
            ),
        ),
        (ASSUMED,),
    ),
)
