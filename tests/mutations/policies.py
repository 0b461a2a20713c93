"""Mutations of what policies hold, and of what a change of them lets go."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change
from tests.mutations.torture import FOUND

STEERING = "tests/models/steering/test_policies.py"
HELD = "tests/streams/partition/test_policies_held.py"
CHANGED = f"{FOUND}::test_a_change_of_policies_lets_go_as_the_record_says"
LIMITS = "tests/models/steering/test_limits.py"
LIMITS_HELD = "tests/streams/partition/test_limits_held.py"
MONOTONE = "tests/kit/replay/test_monotone.py::test_many_policies_only_hold_back"
EVICTION = "tests/streams/executor/test_eviction.py"

OF_POLICIES = (
    Mutation(
        "ignore the policies after a takeover",
        (
            Change(
                product.HELD,
                "HeldEvictions.__init__",
                "self._read_policies = read_policies",
                "first = read_policies()\n"
                "self._read_policies = lambda: NO_POLICIES if read_policies() is first else read_policies()",
            ),
        ),
        (HELD,),
    ),
    Mutation(
        "let all go when a policy changes",
        (Change(product.STEERING_POLICIES, "ClusterPolicy._spread", "ended_us + ...", "ended_us"),),
        (STEERING, HELD, CHANGED),
    ),
    Mutation(
        "spread what a policy has never held",
        (Change(product.STEERING_POLICIES, "ClusterPolicy._spread", "subject.due_us > ended_us", "False"),),
        (STEERING,),
    ),
    Mutation(
        "hold what a policy excepts",
        (Change(product.STEERING_POLICIES, "_Clauses.select", "self._excluded.match(subject)", "False"),),
        (STEERING,),
    ),
    Mutation(
        "except in every cluster what a policy excepts in one",
        (Change(product.STEERING_POLICIES, "_Clauses.of_cluster", "self._excluded.clusters.match(cluster)", "True"),),
        (STEERING,),
    ),
    Mutation(
        "let settle count from the pod's window",
        (Change(product.HELD_ATTEMPTS, "subject_of", "state.since_us", "due.window_start_us"),),
        (HELD,),
    ),
    Mutation(
        "wake nothing when a policy changes",
        (Change(product.HELD, "HeldEvictions.begin_turn", "policy_holder(name)", "name"),),
        (HELD,),
    ),
    Mutation(
        "take the shortest patience of several policies",
        (Change(product.STEERING_POLICIES, "longest_patience_us", "max(...)", "min(found, patience_us)"),),
        (STEERING,),
    ),
    Mutation(
        "begin with a full bucket after a takeover",
        (Change(product.STEERING_LIMITS, "Limits._bucket", "max(since_us, limited.since_us)", "limited.since_us"),),
        (LIMITS, LIMITS_HELD),
    ),
    Mutation(
        "give a token twice",
        (Change(product.STEERING_LIMITS, "_Bucket.take", "max(...) + self.period_us", "self._empty_us"),),
        (LIMITS, LIMITS_HELD),
    ),
    Mutation(
        "let a newcomer overtake those that wait",
        (
            Change(
                product.STEERING_LIMITS,
                "_Bucket.get",
                "self._waiting or self._free(now_us) <= 0",
                "self._free(now_us) <= 0",
            ),
        ),
        (LIMITS,),
    ),
    Mutation(
        "keep the cluster's tokens for a namespace that has to wait",
        (Change(product.STEERING_POLICIES, "limits_on", "sorted(...)", "$0[::-1]"),),
        (LIMITS,),
    ),
    Mutation(
        "ask for a fast rate before a slow one of its scope",
        (Change(product.STEERING_LIMITS, "order_of", "-_period_us(limit)", "_period_us(limit)"),),
        (LIMITS,),
    ),
    Mutation(
        "keep fast tokens while a slow limit is waited for",
        (Change(product.STEERING_LIMITS, "Limits.ask", "other.period_us < bucket.period_us", "False"),),
        (LIMITS,),
    ),
    Mutation(
        "keep the token of an eviction that has ended",
        (Change(product.STEERING_LIMITS, "_Bucket.leave", "self.called.discard(place)", "None"),),
        (LIMITS,),
    ),
    Mutation(
        "let all go when a window opens",
        (Change(product.STEERING_POLICIES, "_Clauses._open_us", "span.from_us + share_us(...)", "span.from_us"),),
        (STEERING,),
    ),
    Mutation(
        "wait for a window beyond the longest time",
        (Change(product.STEERING_POLICIES, "_Clauses._open_us", "hold.at_most_seconds is not None", "False"),),
        (STEERING,),
    ),
    Mutation(
        "overrule a budget as the executor is set, whatever the policy",
        (Change(product.EVICTION, "PodEvictor._patience_seconds", "command.delete_after is not None", "False"),),
        (f"{EVICTION}::test_a_policys_patience_replaces_the_executors_own",),
    ),
    Mutation(
        "ask only the first policy whether it holds",
        (
            Change(
                product.STEERING_HOLDS,
                "longest_hold",
                "longest(...)",
                "next((holder.hold(subject, now_us) for holder in holders), None)",
            ),
        ),
        (STEERING, MONOTONE),
    ),
    Mutation(
        "let one policy's limit bind, and no other one's",
        (Change(product.STEERING_POLICIES, "limits_on", "sorted(...)", "$0[:1]"),),
        (MONOTONE,),
    ),
    Mutation(
        "let what a policy has held go when it lets go, whatever else holds it",
        (
            Change(
                product.POD_STEPS,
                "fire",
                "_hold(..., holders=holders, limits=limits)",
                "_hold(step, pod, eviction, due, limits=limits,"
                " holders=[one for one in holders if held_by is None or one.holder == holder_of(held_by)])",
            ),
            Change(
                product.POD_STEPS,
                "",
                "from evictstream.models.steering.holds import Hold, Holder, longest_hold",
                "from evictstream.models.steering.holds import Hold, Holder, holder_of, longest_hold",
            ),
        ),
        (MONOTONE,),
    ),
    Mutation(
        "let an eviction go without taking the token that it has got",
        (Change(product.STEERING_LIMITS, "Limits.ask", "bucket.take(...)", "bucket.leave(place)"),),
        (LIMITS, MONOTONE),
    ),
    Mutation(
        "overwrite what somebody else has written to a policy meanwhile",
        (Change(product.POLICY_WRITING, "write_next", "_record(before, name) == _record(base, name)", "True"),),
        ("tests/kit/cli/test_policy_races.py",),
    ),
)
