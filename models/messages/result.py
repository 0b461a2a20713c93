"""The results topic: what an executor did with a command. Key: that of the command.

Only a result of the current attempt counts. No result ends an eviction: after `Succeeded` and `Gone` repeats pause for
a grace time; after every other outcome, and after silence, another attempt follows.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.brake import BrakeId
from evictstream.models.messages.fields import ApiVersion, ReadInstant
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from evictstream.models.messages.vocabulary import Outcome, meant_outcome

RESULT_KIND: Final = "EvictionResult"

_AT_LEAST_1: Final = {"minLength": 1}
_OUTCOMES: Final = {outcome.value: outcome for outcome in Outcome if outcome is not Outcome.HELD}
"""As a result says them."""


class EvictionResult(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True, omit_defaults=True):
    """What an executor did with one attempt."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": RESULT_KIND})]
    eviction_id: Annotated[str, Meta(description="As in the command.")]
    attempt: Annotated[int, Meta(description="As in the command.", extra_json_schema={"minimum": 0})]
    cluster: Annotated[str, Meta(description="As in the command.", extra_json_schema=_AT_LEAST_1)]
    namespace: Annotated[str, Meta(description="As in the command.")]
    pod: Annotated[str, Meta(description="As in the command.")]
    pod_uid: Annotated[str, Meta(description="As in the command.", extra_json_schema=_AT_LEAST_1)]
    node: Annotated[str, Meta(description="As in the command.", extra_json_schema=_AT_LEAST_1)]
    outcome: Annotated[
        str,
        Meta(
            description="`Accepted`: it is queued, another outcome follows. `Succeeded`: the delete was accepted."
            " `Gone`: no pod with this UID. `Failed`: it did not work. `Obsolete`: overtaken by what the executor"
            " knows. `Refused`: it may or will not. `Observed`: trial run.",
            extra_json_schema={"enum": list(_OUTCOMES)},
        ),
    ]
    reason: Annotated[str, Meta(description="Explanation for people.")] = ""
    observed_at: Annotated[ReadInstant | None, Meta(description="When; absent means when the record was appended.")] = (
        None
    )
    held_by: Annotated[
        BrakeId | None,
        Meta(
            description="With `Accepted`: the id of the brake that holds it. It is `Held`: not queued, and the next"
            " attempt comes when the brake has ended."
        ),
    ] = None


_decoder: Final = msgspec.json.Decoder(EvictionResult)


def decode_result_except_outcome(text: bytes | str) -> EvictionResult:
    """Read a result without checking its outcome: `read_result_record` checks cluster and node first.

    Raises:
        Unreadable: it is not a result.
    """
    result = codec.decode(_decoder, text)
    codec.check_kind(result.api_version, result.kind, RESULT_KIND)
    return result


def read_outcome(result: EvictionResult) -> Outcome:
    """Read the outcome: `Held` is `Accepted` by a brake.

    Raises:
        Unreadable: it is not a known one.
    """
    try:
        outcome = _OUTCOMES[result.outcome]
    except KeyError:
        raise Unreadable(UnreadableReason.UNKNOWN_OUTCOME, "outcome") from None  # the error's text quotes the record
    return meant_outcome(outcome, result.held_by)


def decode_result(text: bytes | str) -> EvictionResult:
    """Read a result as the service does. The JSON Schema demands more: names that are not empty, attempts from 0.

    Raises:
        Unreadable: it is not a result.
    """
    result = decode_result_except_outcome(text)
    read_outcome(result)
    return result
