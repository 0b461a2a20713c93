"""What the three inputs have in common: key, size, event time, and what a decoder's error means for a dead letter."""

import datetime as dt
from functools import lru_cache
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US, microseconds
from evictstream.models.messages.cluster_names import ANY_CLUSTER, LARGEST_KEY
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a msgspec decoder raises: wrong types and broken JSON, broken UTF-8 in a used text, too deep nesting."""

NO_CLUSTER: Final = "* is no cluster"

_CACHED_KEYS: Final = 16_384  # keys kept split: nodes of some large clusters; some 4 MB, 50 MB if all had `LARGEST_KEY`


class InputLimits(msgspec.Struct, frozen=True):
    """Limits of the inputs.

    Attributes:
        largest_value_bytes: larger values are refused, unless they are about one object: what decides of that has
            limits of its own. Default 1,572,864: etcd's own limit for an object is 1.5 MiB, which JSON may exceed.
        longest_delay_us: how far before the append time `observedAt` may be and still count. Default 60 s: a later
            feed, or one with a slow clock, would start windows that nobody saw
            (docs/messages.md#the-time-that-counts).
    """

    largest_value_bytes: int = 1_572_864
    longest_delay_us: int = 60 * SECOND_US


DEFAULT_LIMITS: Final = InputLimits()


def split_key(key: bytes | None) -> tuple[str, str]:
    """Take a key apart into cluster and node name, which is empty for records that are about the whole cluster.

    Raises:
        Unreadable: no key, one beyond `LARGEST_KEY`, or not `<cluster>/<node>` in UTF-8. `ANY_CLUSTER` has no nodes.
    """
    if key is None:
        raise Unreadable(UnreadableReason.BAD_KEY, "no key")
    if len(key) > LARGEST_KEY:
        raise Unreadable(UnreadableReason.BAD_KEY, f"{len(key)} bytes, limit {LARGEST_KEY}")
    return _split_cached(key)


@lru_cache(maxsize=_CACHED_KEYS)
def _split_cached(key: bytes) -> tuple[str, str]:
    try:
        cluster, separator, node = key.decode().partition("/")
    except UnicodeDecodeError as error:
        raise Unreadable(UnreadableReason.BAD_KEY, "not UTF-8") from error
    if not (cluster and separator) or "/" in node or b"\0" in key:  # NUL separates the parts of the rows' keys
        raise Unreadable(UnreadableReason.BAD_KEY, "not <cluster>/<node>")
    if cluster == ANY_CLUSTER and node:
        raise Unreadable(UnreadableReason.BAD_KEY, NO_CLUSTER)
    return cluster, node


def refused_value(value: bytes | None, limits: InputLimits) -> Unreadable:
    """Return why a value is not decoded: it is null or too large."""
    if value is None:
        return Unreadable(UnreadableReason.NULL_VALUE, "value")
    return Unreadable(UnreadableReason.OVERSIZED, f"{len(value)} bytes, limit {limits.largest_value_bytes}")


def event_at_us(observed_at: dt.datetime | None, append_at_us: int, limits: InputLimits) -> int:
    """Return the event time: a function of the log alone, never later than the append time.

    Args:
        observed_at: when the feed saw the change, if it says so.
        append_at_us: when the broker appended the record.
        limits: how early `observed_at` may be.

    Returns:
        `observed_at`, but at least the append time less `longest_delay_us` and at most the append time; the append
        time without `observed_at`. Microseconds since 1970.
    """
    if observed_at is None:
        return append_at_us
    observed_us = microseconds(observed_at)
    if observed_us > append_at_us:
        return append_at_us
    earliest_us = append_at_us - limits.longest_delay_us
    return observed_us if observed_us > earliest_us else earliest_us  # noqa: FURB136 - max() costs twice as much here


def unreadable(error: Exception) -> Unreadable:
    """Return the reason for a decoder's error, in words that quote nothing of the record.

    msgspec names types and paths, which is safe. In one case it names an unknown field, and that name is left out.
    """
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        if text.startswith("Object contains unknown field"):
            return Unreadable(UnreadableReason.UNKNOWN_FIELD, "unknown field")
        if text.startswith("Object missing required field"):
            return Unreadable(UnreadableReason.MISSING_FIELD, text)
        if "RFC3339" in text or "timezone" in text:
            return Unreadable(UnreadableReason.BAD_TIME, text)
        return Unreadable(UnreadableReason.WRONG_TYPE, text)
    if isinstance(error, msgspec.DecodeError):
        return Unreadable(UnreadableReason.BAD_JSON, text)
    return Unreadable(UnreadableReason.BAD_JSON, "invalid UTF-8" if isinstance(error, UnicodeError) else "too deep")
