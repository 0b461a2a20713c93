"""The dead-letters topic: a record that could not be used, as it came, with the reason in headers.

Key and value are those of the record. A value that is too large is cut; the hash of the whole value identifies it. The
headers are the contract; their names are the field names in camelCase, their values UTF-8 text.
"""

import base64
import hashlib
from collections.abc import Iterable
from typing import Annotated, Final, Self

import msgspec
from msgspec import Meta

from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable
from evictstream.models.messages.fields import Count, NonEmptyText


class DeadLetterHeaders(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    kw_only=True,
):
    """The headers of a dead letter."""

    reason: Annotated[
        NonEmptyText, Meta(description="One word for what is wrong, such as `BadJson` or `WrongPartition`.")
    ]
    detail: Annotated[str, Meta(description="Where, by field path and type; never a part of the record.")]
    origin_topic: Annotated[NonEmptyText, Meta(description="Topic of the record.")]
    origin_partition: Annotated[Count, Meta(description="Its partition.")]
    origin_offset: Annotated[Count, Meta(description="Its offset.")]
    origin_key: Annotated[str | None, Meta(description="Its key in base64; absent if it had none.")] = None
    size: Annotated[Count | None, Meta(description="Bytes of its whole value; absent for a null value.")] = None
    sha256: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None,
        Meta(description="Hash of its whole value; absent for a null value."),
    ] = None
    truncated: Annotated[bool, Meta(description="Whether the value of the dead letter is only its beginning.")] = False

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
        values = msgspec.structs.asdict(self)
        return [
            (name, _header_text(values[field]).encode()) for field, name in _NAMES.items() if values[field] is not None
        ]

    @classmethod
    def from_headers(cls, headers: Iterable[tuple[str, bytes]]) -> Self:
        """Read what `to_headers` wrote; other headers (CloudEvents, tracing) are ignored.

        Raises:
            Unreadable: a header is missing or has a wrong value.
        """
        names = set(_NAMES.values())
        try:
            fields = {name: text.decode() for name, text in headers if name in names}
            return msgspec.convert(fields, cls, strict=False)  # not strict: numbers are texts here
        except DECODE_ERRORS as error:
            raise unreadable(error) from error


_NAMES: Final = dict(zip(DeadLetterHeaders.__struct_fields__, DeadLetterHeaders.__struct_encode_fields__, strict=True))


def _header_text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
