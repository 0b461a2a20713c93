"""What the values of all rows have in common: the number of their format, versions, shared taints.

Values are msgpack arrays that begin with the number of their format, so that a later version can tell old rows from
its own. Instants are integer microseconds. Equal taints, tolerations, labels and traits are read as one shared object,
as in a running state. `node_rows.py` and `pod_rows.py` have the rows.
"""

from functools import lru_cache
from typing import Final, Protocol, TypeVar

import msgspec

from evictstream.models.eviction.row_keys import CorruptRowError, RowError, UnsupportedFormatError
from evictstream.models.kubernetes.resource_versions import Version, read_version
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint
from evictstream.models.messages.envelope import DECODE_ERRORS

FORMAT: Final = 2

_SHARED_TAINTS: Final = 1_024  # taints that the cache keeps; all nodes of a cluster use a few
_LONGEST_SHARED: Final = 512  # characters of the longest taint that the cache keeps; a real one has at most 380

_LARGEST_INTEGER: Final = 2**63 - 1  # largest version written as a msgpack integer; one above it is written as text


class FormattedRow(Protocol):
    """A row as it is decoded.

    Attributes:
        format: number of its format.
    """

    format: int


_Row = TypeVar("_Row", bound=FormattedRow)

_format_decoder: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])


def read_row(decoder: msgspec.msgpack.Decoder[_Row], key: bytes, value: bytes) -> _Row:
    """Decode a row of the format that this program writes.

    Raises:
        RowError: it is not such a row.
    """
    try:
        row = decoder.decode(value)
    except DECODE_ERRORS as error:
        raise _refusal(key, value) from error
    if row.format != FORMAT:
        raise UnsupportedFormatError(key, f"format {row.format}, this program writes {FORMAT}")
    return row


def _refusal(key: bytes, value: bytes) -> RowError:
    """Return the error for a row that does not decode: the format of another version, or a broken row."""
    try:
        number = msgspec.msgpack.decode(_format_decoder.decode(value)[0])
    except (*DECODE_ERRORS, IndexError):
        number = FORMAT
    if number != FORMAT:
        return UnsupportedFormatError(key, f"format {number!r}, this program writes {FORMAT}")
    return CorruptRowError(key, "does not have the fields of its format")


def storable(version: Version) -> Version:
    """Return a version as rows have it: text, if it is no msgpack integer."""
    return str(version) if isinstance(version, int) and version > _LARGEST_INTEGER else version


def loaded(version: Version) -> Version:
    """Return the version that `storable` made a row's."""
    return read_version(version) if isinstance(version, str) else version


def shared_taint(key: str, value: str) -> Taint:
    """Return one object for equal taints, as in a running state; very long ones are not cached."""
    return _cached_taint(key, value) if len(key) + len(value) <= _LONGEST_SHARED else Taint(key, value, NO_EXECUTE)


@lru_cache(maxsize=_SHARED_TAINTS)
def _cached_taint(key: str, value: str) -> Taint:
    return Taint(key, value, NO_EXECUTE)
