"""From messages to JSON and back: what the message definitions share.

Errors:
    Unreadable  the text is not what the definition says
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable
from evictstream.models.messages.fields import ReadInstant
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from evictstream.models.messages.vocabulary import API_VERSION

_T = TypeVar("_T")

encode: Final[Callable[[msgspec.Struct], bytes]] = msgspec.json.Encoder().encode
"""Write a message as the JSON that its definition describes."""


def decode(decoder: msgspec.json.Decoder[_T], text: bytes | str | msgspec.Raw) -> _T:
    """Read JSON.

    Raises:
        Unreadable: it is not JSON, or not what the decoder's type says.
    """
    try:
        return decoder.decode(text)
    except DECODE_ERRORS as error:
        raise unreadable(error) from error


def check_kind(api_version: str, kind: str, expected: str) -> None:
    """Refuse a message of another kind or version.

    Raises:
        Unreadable: the kind or the version differs.
    """
    if kind != expected or api_version != API_VERSION:
        raise Unreadable(UnreadableReason.WRONG_KIND, "kind or apiVersion")


def check_instants(**instants: str | None) -> None:
    """Refuse texts that are not instants.

    Args:
        instants: by the name of their field in JSON.

    Raises:
        Unreadable: one is not RFC 3339 with a zone.
    """
    for name, text in instants.items():
        try:
            msgspec.convert(text, ReadInstant | None)
        except msgspec.ValidationError as error:
            raise Unreadable(UnreadableReason.BAD_TIME, name) from error
