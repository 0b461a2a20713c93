"""An answer of an API server as it came: status, body, and how long the server asks to wait."""

from __future__ import annotations

import dataclasses
import datetime as dt
import email.utils
from typing import Final

import msgspec

_LONGEST_MESSAGE: Final = 1_000
"""Characters that are kept of what the API server says of a refusal: a webhook may answer with a page."""

LONGEST_RETRY_AFTER_SECONDS: Final = 600.0
"""What is asked for beyond it is a mistake, of a proxy perhaps: the API server asks for seconds."""


class Status(msgspec.Struct):
    """What the API server says of a request that it refuses (v1 Status)."""

    message: str = ""
    reason: str = ""
    code: int = 0


# Made here, while one thread imports: msgspec 0.22.0 crashes the process if two threads are the first with a type.
decode_status: Final = msgspec.json.Decoder(Status).decode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """An answer, whatever its status.

    Attributes:
        status: of HTTP.
        body: JSON.
        retry_after_seconds: what the server asks for; None if it does not.
    """

    status: int
    body: bytes
    retry_after_seconds: float | None = None

    @property
    def is_done(self) -> bool:
        """Whether the server did what it was asked for."""
        return 200 <= self.status < 300  # noqa: PLR2004 - what HTTP calls success

    def said(self) -> Status:
        """Read what the server says of its refusal; empty if it is not the API server's."""
        try:
            status = decode_status(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Status()
        return msgspec.structs.replace(status, message=status.message[:_LONGEST_MESSAGE])


def retry_after_seconds(text: str | None, now: dt.datetime) -> float | None:
    """Read the header `Retry-After`: seconds, as the API server says, or a date, as some proxies do.

    Args:
        text: of the header; None without one.
        now: with a zone; a date counts from it.
    """
    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return min(float(text), LONGEST_RETRY_AFTER_SECONDS)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=dt.UTC)
    return min(max((at - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER_SECONDS)
