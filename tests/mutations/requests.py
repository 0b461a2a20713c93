"""What breaks the mode `request` of an executor: its requests, what they show, and their end."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

STATES = "tests/models/execution/test_request_states.py"
MODE = "tests/streams/executor/requests/test_request_mode.py"
DISORDER = "tests/streams/executor/requests/test_requests_in_disorder.py"
REQUESTS = "tests/streams/executor/requests/test_eviction_requests.py"
THERE = "tests/streams/executor/requests/test_requests_that_are_there.py"

OF_REQUESTS = (
    Mutation(
        "believe whoever claims that a pod is evicted",
        (Change(product.OPEN_REQUESTS, "OpenRequests.left", "is_leaving(pod, command)", "True"),),
        (f"{REQUESTS}::test_the_pod_itself_shows_success",),
    ),
    Mutation(
        "take a request for somebody else's pod for one's own",
        (Change(product.OPEN_REQUESTS, "OpenRequests._make", "not is_for(found, command)", "False"),),
        (f"{THERE}::test_a_foreign_request_of_the_name_is_failed",),
    ),
    Mutation(
        "take a request in any namespace for one's own",
        (Change(product.EVICTION_REQUESTS, "is_for", "state.namespace", "command.namespace"),),
        (STATES,),
    ),
    Mutation(
        "withdraw nothing that an earlier executor has left",
        (Change(product.COMMAND_ANSWERS, "CommandAnswers._release_requests", "not known", "True"),),
        (f"{MODE}::test_a_brake_withdraws_and_its_end_asks_again",),
    ),
    Mutation(
        "leave a request to its fate after one failure",
        (Change(product.REQUEST_KEEPER, "RequestKeeper._step", "min(seconds, _REFUSED_SECONDS)", "3600.0"),),
        (DISORDER,),
    ),
    Mutation(
        "withdraw what the next attempt goes on with",
        (
            Change(
                product.COMMAND_ANSWERS,
                "CommandAnswers.take",
                "reading is Reading.WITHDRAW",
                "True",
            ),
        ),
        (f"{MODE}::test_the_next_attempt_goes_on_with_the_request",),
    ),
    Mutation(
        "withdraw a request in whatever version it is by now",
        (Change(product.EVICTION_REQUESTS, "withdrawal_body", "str(state.version)", "None"),),
        (f"{STATES}::test_a_withdrawal_holds_for_one_version_and_says_whose",),
    ),
    Mutation(
        "take a condition of before for one of now",
        (Change(product.EVICTION_REQUESTS, "_counts", "condition.observed_generation >= generation", "True"),),
        (f"{STATES}::test_what_is_read_of_a_request",),
    ),
    Mutation(
        "delete a pod while its request still stands",
        (Change(product.EVICTION, "PodEvictor._request", "requests.withdraw(command, send_until)", "None"),),
        (f"{REQUESTS}::test_patience_withdraws_before_it_deletes",),
    ),
    Mutation(
        "ask for the eviction of a PodGroup's member",
        (Change(product.EVICTION, "PodEvictor._look_and_write", "not pod.is_in_group", "True"),),
        (f"{REQUESTS}::test_a_member_of_a_group_is_evicted",),
    ),
)
