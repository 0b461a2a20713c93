"""A brake: which evictions wait, who asked for it, and until when. Topic `evictstream.brakes`, compacted; key: its id.

A brake only ever holds `Evict` back. Windows, deadlines, cancellations and results go on as if it were not there.
A reader passes over fields that it does not know, as of every message: it then holds more than was meant, never less.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.fields import ApiVersion, Count, NonEmptyText, ReadInstant

BRAKE_KIND: Final = "Brake"

LONGEST_BRAKE_ID: Final = 63
"""Characters of an id; it is typed by people, and is in every answer `Held`."""

MOST_NAMES_IN_BRAKE: Final = 1_000
"""Names in each list of a brake. Whoever means more clusters than this gives several brakes, or holds all."""

LONGEST_BRAKE_SPREAD_SECONDS: Final = 86_400
"""A pod that has to leave waits no further day after the end of a brake. More, as a program may write, is this."""

BrakeId = Annotated[str, Meta(pattern=f"^[a-z0-9][a-z0-9-]{{0,{LONGEST_BRAKE_ID - 1}}}$")]
_Names = Annotated[tuple[NonEmptyText, ...], Meta(max_length=MOST_NAMES_IN_BRAKE)]


class Brake(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True, omit_defaults=True):
    """Holds back the evictions to which each of its lists applies. An empty list, or none, applies to all."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": BRAKE_KIND})]
    id: Annotated[BrakeId, Meta(description="As in the key.")]
    why: Annotated[NonEmptyText, Meta(description="For those who find their evictions held.")]
    by: Annotated[NonEmptyText, Meta(description="Who asked for it.")]
    held_at: Annotated[ReadInstant, Meta(description="When, for people; a brake holds from when it is read.")]
    ends_at: Annotated[
        ReadInstant | None, Meta(description="When it ends by itself; absent if somebody has to release it.")
    ] = None
    clusters: Annotated[_Names, Meta(description="Names of clusters.")] = ()
    zones: Annotated[_Names, Meta(description="Values of the nodes' label topology.kubernetes.io/zone.")] = ()
    taints: Annotated[_Names, Meta(description="Keys of the taints for which pods would leave.")] = ()
    namespaces: Annotated[_Names, Meta(description="Namespaces of pods.")] = ()
    spread_seconds: Annotated[
        Count,
        Meta(description="Over how long evictions that are overdue at its end are spread; more than a day is a day."),
    ] = 60
    released_by: Annotated[
        str, Meta(description="Who released it. The append time of the record with this field is when.")
    ] = ""
    released_why: Annotated[str, Meta(description="Why it was released.")] = ""

    @property
    def is_released(self) -> bool:
        """Whether somebody has ended it."""
        return bool(self.released_by)


_decoder: Final = msgspec.json.Decoder(Brake)


def decode_brake(text: bytes | str) -> Brake:
    """Read a brake. A longer spread than `LONGEST_BRAKE_SPREAD_SECONDS` is read as that.

    Raises:
        Unreadable: it is none.
    """
    brake = codec.decode(_decoder, text)
    codec.check_kind(brake.api_version, brake.kind, BRAKE_KIND)
    if brake.spread_seconds <= LONGEST_BRAKE_SPREAD_SECONDS:
        return brake
    return msgspec.structs.replace(brake, spread_seconds=LONGEST_BRAKE_SPREAD_SECONDS)
