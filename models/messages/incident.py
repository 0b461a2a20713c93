"""An incident that a guard holds, on the compacted topic `evictstream.incidents`; key: its id.

It is a level, as what a fleet publishes (`fleet.py`): the newest record is all there is to know, and a tombstone says
that the incident has ended. People answer it in the record of its policy (`policy.py`).
"""

import enum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.fields import (
    ApiVersion,
    Count,
    IncidentId,
    InstantText,
    NonEmptyText,
    ReadInstant,
    Revision,
)

INCIDENT_KIND: Final = "Incident"

MOST_NODES_LISTED: Final = 100
"""Nodes of an incident that its record lists, the first ones; the others are counted."""

MOST_OWNERS_LISTED: Final = 100
"""Owners that its record lists, those with the most pods; the others are counted."""


class IncidentState(enum.StrEnum):
    """Where an incident is."""

    WAITING = "Waiting"
    """Nobody has answered, or the approval has expired."""
    APPROVED = "Approved"
    """Its evictions may go."""
    REJECTED = "Rejected"
    """They wait until its taints are gone."""
    RELEASED = "Released"
    """The time is over after which its guard lets them go."""


class IncidentVerdict(enum.StrEnum):
    """What a person says of an incident."""

    APPROVED = "Approved"
    """Its evictions may go."""
    REJECTED = "Rejected"
    """They wait until its taints are gone."""


class IncidentAnswer(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """What a person says of one incident that a guard of the policy holds."""

    incident: Annotated[IncidentId, Meta(description="The id of the incident.")]
    verdict: Annotated[IncidentVerdict, Meta(description="Whether its evictions may go.")]
    why: Annotated[NonEmptyText, Meta(description="For those who ask later.")]
    by: Annotated[NonEmptyText, Meta(description="Who says so.")]
    answered_at: Annotated[ReadInstant, Meta(description="When, for people.")]
    counts_from: Annotated[
        ReadInstant | None, Meta(description="Since when it counts; absent for the append time of this record.")
    ] = None
    expires_at: Annotated[
        ReadInstant | None, Meta(description="Until when an approval counts; absent for no such end.")
    ] = None


class LosingOwner(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """An owner that loses all of its pods."""

    namespace: NonEmptyText
    owner: Annotated[NonEmptyText, Meta(description="The controller of the pods, as `Kind/name`.")]
    pods: Annotated[Count, Meta(description="How many: all that are bound to nodes and have not ended.")]


class Incident(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """What a guard holds until a person answers."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": INCIDENT_KIND})]
    id: Annotated[IncidentId, Meta(description="As in the key.")]
    sequence: Annotated[int, Meta(ge=1, description="Grows with each record of a key, also over workers.")]
    at: Annotated[InstantText, Meta(description="When it was so, by the clock of the worker.")]
    cluster: NonEmptyText
    policy: Annotated[NonEmptyText, Meta(description="The policy whose guard holds it.")]
    revision: Annotated[Revision, Meta(description="Of the policy.")]
    taint: Annotated[NonEmptyText, Meta(description="Key of the taint that its nodes carry.")]
    zone: Annotated[
        str | None,
        Meta(description="Zone of its nodes, empty for nodes without one; absent if all zones are counted together."),
    ] = None
    node: Annotated[
        NonEmptyText | None, Meta(description="Its one node, whose pods were counted by themselves; absent otherwise.")
    ] = None
    of: Annotated[
        Literal["nodes", "pods", "ownersLosingAll"], Meta(description="What `openedWith` and `allowed` count.")
    ] = "nodes"
    state: Annotated[IncidentState, Meta(description="Whether its evictions wait.")]
    since: Annotated[InstantText, Meta(description="When the first of its taints came.")]
    opened_at: Annotated[InstantText, Meta(description="When it was found.")]
    opened_with: Annotated[Count, Meta(description="How many nodes, pods or owners there were then.")]
    allowed: Annotated[Count, Meta(description="How many the guard allowed.")]
    known: Annotated[Count, Meta(description="Of how many nodes that were known.")]
    nodes: Annotated[Count, Meta(description="Nodes that carry the taint since then.")]
    first_nodes: Annotated[
        tuple[NonEmptyText, ...], Meta(max_length=MOST_NODES_LISTED, description="The first ones of them.")
    ] = ()
    evictions: Annotated[Count, Meta(description="Evictions on these nodes for this taint that have not ended.")]
    selected: Annotated[
        Count | None,
        Meta(description="Those of them that the policy selects: only these can wait; absent if it selects all."),
    ] = None
    due: Annotated[Count, Meta(description="Those of `evictions` that have to leave now, and were not issued.")]
    losing_all: Annotated[
        Count, Meta(description="Owners of which every pod is among them; of `ownersLosingAll`, the last pods.")
    ]
    owners: Annotated[
        tuple[LosingOwner, ...],
        Meta(max_length=MOST_OWNERS_LISTED, description="The largest of these owners."),
    ] = ()
    answered_at: Annotated[InstantText | None, Meta(description="Since when the newest answer counts.")] = None
    answered_by: Annotated[NonEmptyText | None, Meta(description="Who has given it.")] = None
    answered_why: Annotated[NonEmptyText | None, Meta(description="Why.")] = None
    expires_at: Annotated[InstantText | None, Meta(description="Until when an approval counts.")] = None
    releases_at: Annotated[
        InstantText | None, Meta(description="When it lets evictions go by itself; absent where a person has to.")
    ] = None

    @property
    def held(self) -> int:
        """How many evictions wait until a person approves it; 0 also once all are gone and the taint stays."""
        return self.evictions if self.selected is None else self.selected


_decoder: Final = msgspec.json.Decoder(Incident)


def decode_incident(text: bytes | str) -> Incident:
    """Read an incident.

    Raises:
        Unreadable: it is none.
    """
    incident = codec.decode(_decoder, text)
    codec.check_kind(incident.api_version, incident.kind, INCIDENT_KIND)
    codec.check_instants(
        at=incident.at,
        since=incident.since,
        openedAt=incident.opened_at,
        answeredAt=incident.answered_at,
        expiresAt=incident.expires_at,
        releasesAt=incident.releases_at,
    )
    return incident
