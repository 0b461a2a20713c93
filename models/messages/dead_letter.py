"""The contract of the dead-letters topic: a record that could not be used, as it came, with the reason in headers.

Key and value are those of the record; a value that is too large is cut, and then its hash tells which one it was. The
headers are the contract; their names are the field names in camelCase, their values UTF-8 text.
"""

import base64
import hashlib
from collections.abc import Iterable
from typing import Self

from pydantic import Field

from evictstream.models.messages.parts import Contract


class DeadLetterHeaders(Contract):
    """The headers of a dead letter."""

    reason: str = Field(min_length=1, description="One word for what is wrong, such as `BadJson` or `WrongPartition`.")
    detail: str = Field(description="Where, by field path and type; never a piece of the record.")
    origin_topic: str = Field(min_length=1, description="Topic of the record.")
    origin_partition: int = Field(ge=0, description="Its partition.")
    origin_offset: int = Field(ge=0, description="Its offset.")
    origin_key: str | None = Field(default=None, description="Its key in base64; absent if it had none.")
    size: int | None = Field(default=None, ge=0, description="Bytes of its whole value; absent for a null value.")
    sha256: str | None = Field(
        default=None, pattern="^[0-9a-f]{64}$", description="Hash of its whole value; absent for a null value."
    )
    truncated: bool = Field(default=False, description="Whether the value of the dead letter is only its beginning.")

    @classmethod
    def describe(
        cls,
        *,
        reason: str,
        detail: str,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        truncated: bool = False,
    ) -> Self:
        """Describe a record that could not be used.

        Args:
            reason: one word.
            detail: where; must not quote the record.
            topic: topic of the record.
            partition: its partition.
            offset: its offset.
            key: its key.
            value: its whole value.
            truncated: whether the dead letter will carry only the beginning of it.
        """
        return cls(
            reason=reason,
            detail=detail,
            origin_topic=topic,
            origin_partition=partition,
            origin_offset=offset,
            origin_key=None if key is None else base64.b64encode(key).decode(),
            size=None if value is None else len(value),
            sha256=None if value is None else hashlib.sha256(value).hexdigest(),
            truncated=truncated,
        )

    def to_headers(self) -> list[tuple[str, bytes]]:
        """Write the headers as Kafka takes them, in the order of the fields; absent ones are left out."""
        found = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return [(name, _header_text(value).encode()) for name, value in found.items()]

    @classmethod
    def from_headers(cls, headers: Iterable[tuple[str, bytes]]) -> Self:
        """Read what `to_headers` wrote; other headers (CloudEvents, tracing) are ignored.

        Raises:
            pydantic.ValidationError: a header is missing or not what it should be.
        """
        names = {field.alias for field in cls.model_fields.values()}
        return cls.model_validate({name: text.decode() for name, text in headers if name in names}, strict=False)


def _header_text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
