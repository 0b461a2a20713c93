"""Mistakes of the commands that move pods under the policy of a handover, and back."""

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

CHANGES = "tests/streams/handover/test_pod_changes.py"
STATES = "tests/streams/handover/test_pod_states.py"
REQUESTS = "tests/streams/handover/test_api_requests.py"
OBJECTS = "tests/streams/handover/test_policy_objects.py"
ACTING = "tests/streams/handover/test_acting.py"
RESTORES = "tests/streams/handover/test_restoring.py"

OF_HANDOVER = (
    Mutation(
        "handover: restore another version of a pod than was read",
        (
            Change(
                product.POD_CHANGES,
                "_tests",
                '{"op": "test", "path": "/metadata/resourceVersion", "value": metadata.resource_version}',
                '{"op": "test", "path": "/metadata/uid", "value": metadata.uid}',
            ),
        ),
        (CHANGES,),
    ),
    Mutation(
        "handover: forget seconds on the way back",
        (Change(product.POD_CHANGES, "loosening_patch", "one.built_in_seconds is not msgspec.UNSET", "False"),),
        (CHANGES,),
    ),
    Mutation(
        "handover: count as moved what the policy has left",
        (
            Change(
                product.POD_CHANGES,
                "MovePods.apply",
                "state_of(found, self.rules) is HandoverState.MOVED",
                "True",
            ),
        ),
        (CHANGES,),
    ),
    Mutation(
        "handover: move again and again what is never in use",
        (Change(product.POD_STATES, "timed", "one.identity not in seen", "True"),),
        (STATES,),
    ),
    Mutation(
        "handover: patch pods of namespaces that have opted out",
        (Change(product.POD_STATES, "NamespaceRules.why_out", 'labels.get(OPT_OUT_LABEL) == "off"', "False"),),
        (STATES,),
    ),
    Mutation(
        "handover: take a busy API server for a refusal",
        (
            Change(
                product.HANDOVER_REQUESTS,
                "ApiRequests.ask",
                "answer.status != TOO_MANY_REQUESTS and answer.status < _FIRST_OF_SERVER",
                "True",
            ),
        ),
        (REQUESTS,),
    ),
    Mutation(
        "handover: end where a list has expired",
        (Change(product.HANDOVER_REQUESTS, "ApiRequests.pods", "answer.status == _EXPIRED and more", "False"),),
        (REQUESTS,),
    ),
    Mutation(
        "handover: refuse pods that the policy cannot move",
        (Change(product.POLICY_OBJECTS, "policy_spec", '"Ignore"', '"Fail"'),),
        (OBJECTS,),
    ),
    Mutation(
        "handover: restore seconds before the late timer has ended",
        (
            Change(
                product.RESTORING,
                "RestoreRun._restore_settled",
                "time.monotonic() >= self._loosened[0][0] + SETTLE_SECONDS",
                "True",
            ),
        ),
        (RESTORES,),
    ),
    Mutation(
        "handover: leave the last pods without seconds",
        (Change(product.RESTORING, "RestoreRun.run", "while self._loosened: ...", "pass"),),
        (RESTORES,),
    ),
    Mutation(
        "handover: take no notice of what a binding leaves out",
        (Change(product.HANDOVER_ACTING, "_comparable", "_without_more_names(...)", "{}"),),
        (ACTING,),
    ),
)
