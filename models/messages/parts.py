"""What the published contracts share: how names, instants and Kubernetes' parts look in JSON.

Names are camelCase as in Kubernetes. Unknown fields are refused in what is ours and ignored in what is Kubernetes'.
Instants are RFC 3339 with a zone; we write UTC with six digits and `Z`.
"""

import datetime as dt
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from evictstream.models.instants import instant_text, microseconds


def _text(moment: dt.datetime) -> str:
    return instant_text(microseconds(moment))


Instant = Annotated[
    AwareDatetime,
    PlainSerializer(_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T02:15:53.105869Z"]}),
]
"""An instant, aware; read from RFC 3339 with any zone."""


class Contract(BaseModel):
    """A message, or part of one, that is ours: frozen, and unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )


class KubernetesPart(BaseModel):
    """A part that is Kubernetes': frozen, and unknown fields are ignored, since every release adds some."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        strict=True,
    )


class TaintPart(KubernetesPart):
    """A taint of a node."""

    key: str = Field(description="Label key.")
    value: str = Field(default="", description="Label value; absent means empty.")
    effect: str = Field(default="", description="`NoSchedule`, `PreferNoSchedule` or `NoExecute`.")


class TolerationPart(KubernetesPart):
    """A toleration of a pod."""

    key: str = Field(default="", description="Label key; absent matches every key.")
    operator: str = Field(default="", description="`Equal` (also if absent), `Exists`, `Gt` or `Lt`.")
    value: str = Field(default="", description="Label value; absent means empty.")
    effect: str = Field(default="", description="Effect of the taint; absent matches every effect.")
    toleration_seconds: int | None = Field(
        default=None, description="How long the taint is tolerated, in seconds of any size; absent means for ever."
    )
