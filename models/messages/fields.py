"""Types of fields that several messages share, with their part of the JSON Schemas.

Names are camelCase in JSON, as in Kubernetes. Every reader passes over fields that it does not know, so that a later
version may add some to the same `apiVersion`. The published schema demands more than the decoders check: what
`extra_json_schema` says. Functions of this package check it after decoding, because their reasons say more than "wrong
type". Empty names and negative attempts in results are not checked: such a result belongs to no eviction.
"""

from typing import Annotated, Final

from msgspec import Meta

from evictstream.models.kubernetes.objects import Moment
from evictstream.models.kubernetes.resource_versions import LAST_EPOCH
from evictstream.models.messages.vocabulary import API_VERSION

_INSTANT: Final = {"format": "date-time", "examples": ["2026-11-21T02:15:53.105869Z"]}

InstantText = Annotated[str, Meta(extra_json_schema=_INSTANT)]
"""An instant of a message that evictstream writes: UTC with six digits and `Z`, made by `instants.instant_text`."""

ReadInstant = Annotated[Moment, Meta(extra_json_schema=_INSTANT)]
"""An instant of a message that others write: RFC 3339 with any zone; more than six digits of a second are rounded."""

NonEmptyText = Annotated[str, Meta(min_length=1)]
EvictionIdText = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
IncidentId = Annotated[str, Meta(pattern="^[0-9a-f]{10}$")]
Count = Annotated[int, Meta(ge=0)]
Revision = Annotated[int, Meta(ge=1)]
Epoch = Annotated[int, Meta(ge=0, le=LAST_EPOCH)]

ApiVersion = Annotated[str, Meta(extra_json_schema={"const": API_VERSION})]
