"""A policy: which evictions go slower, how, who asked for it, and why. Topic `evictstream.policies`; key: its name.

A policy only ever holds `Evict` back. Windows, deadlines, cancellations and results go on as if it were not there.
Unlike every other message a policy is refused where it has a field that the reader does not know: a clause that is
passed over would let evictions go. A worker that cannot read one evicts nothing until it is upgraded, or the record is
mended.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.fields import ApiVersion, NonEmptyText, ReadInstant, Revision
from evictstream.models.messages.incident import IncidentAnswer
from evictstream.models.messages.policy_clauses import (
    LONGEST_POLICY_SPREAD_SECONDS,
    ClauseSeconds,
    PolicyGuard,
    PolicyHold,
    PolicyInFlight,
    PolicyLimit,
    PolicySelection,
)

POLICY_KIND: Final = "Policy"

LONGEST_POLICY_NAME: Final = 63
"""Characters of a name; it is typed by people, and is in decisions."""

MOST_EARLIER_SPECS: Final = 10
"""Earlier revisions in a record whose evictions are still spread. With more, the oldest ones go at once."""

MOST_INCIDENT_ANSWERS: Final = 100
"""Answers to incidents in a record, the newest. An incident whose answer is gone waits again."""

LONGEST_APPROVAL_SECONDS: Final = 7 * 86_400
"""A week. What shall go later is approved again."""

PolicyName = Annotated[str, Meta(pattern=f"^[a-z0-9][a-z0-9-]{{0,{LONGEST_POLICY_NAME - 1}}}$")]


class PolicySpec(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """What a policy does, and to which evictions."""

    selected: Annotated[PolicySelection, Meta(description="The evictions that it is about.")] = msgspec.field(
        name="for", default=PolicySelection()
    )
    excluded: Annotated[
        PolicySelection | None, Meta(description="Those of them that it is not about; absent for none.")
    ] = msgspec.field(name="except", default=None)
    observe: Annotated[bool, Meta(description="They are decided and reported, and not issued.")] = False
    settle_seconds: Annotated[
        ClauseSeconds | None,
        Meta(description="A taint must have stood so long before it evicts anybody. Windows count as without it."),
    ] = None
    patience_seconds: Annotated[
        ClauseSeconds | None,
        Meta(description="How long after its deadline a pod may be kept by its disruption budget."),
    ] = None
    limit: Annotated[PolicyLimit | None, Meta(description="How fast they may be issued.")] = None
    hold: Annotated[PolicyHold | None, Meta(description="When they wait.")] = None
    guard: Annotated[PolicyGuard | None, Meta(description="How much may happen before they wait for a person.")] = None
    in_flight: Annotated[PolicyInFlight | None, Meta(description="How many may be in flight at once.")] = None

    @property
    def may_hold(self) -> bool:
        """Whether it lets evictions wait before they are issued: every clause does, except `patience`."""
        without = msgspec.structs.replace(self, selected=PolicySelection(), excluded=None, patience_seconds=None)
        return without != PolicySpec()


class EarlierSpec(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """What a policy was before: what it held then is spread from its end on."""

    spec: PolicySpec
    ended_at: Annotated[
        ReadInstant | None, Meta(description="When it ended; absent for the append time of this record.")
    ] = None


class Policy(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """One revision of a policy."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": POLICY_KIND})]
    name: Annotated[PolicyName, Meta(description="As in the key.")]
    revision: Annotated[Revision, Meta(description="Grows with each change.")]
    why: Annotated[NonEmptyText, Meta(description="For those who find their evictions held.")]
    by: Annotated[NonEmptyText, Meta(description="Who wrote this revision.")]
    applied_at: Annotated[ReadInstant, Meta(description="When, for people; a policy holds from when it is read.")]
    spec: Annotated[PolicySpec | None, Meta(description="What it does; absent for one that was deleted.")] = None
    spread_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_POLICY_SPREAD_SECONDS,
            description="Over how long what only an earlier revision held is spread.",
        ),
    ] = 60
    earlier: Annotated[
        tuple[EarlierSpec, ...],
        Meta(max_length=MOST_EARLIER_SPECS, description="Earlier revisions, the newest first."),
    ] = ()
    answers: Annotated[
        tuple[IncidentAnswer, ...],
        Meta(max_length=MOST_INCIDENT_ANSWERS, description="To incidents of its guard, the newest first."),
    ] = ()


_decoder: Final = msgspec.json.Decoder(Policy)


def decode_policy(text: bytes | str) -> Policy:
    """Read a policy.

    Raises:
        Unreadable: it is none, or has a field that this version does not know.
    """
    policy = codec.decode(_decoder, text)
    codec.check_kind(policy.api_version, policy.kind, POLICY_KIND)
    return policy
