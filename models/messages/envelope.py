"""What the three inputs have in common: key, size, event time, and what a decoder's error means for a dead letter."""

import datetime as dt
from functools import lru_cache
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US, microseconds
from evictstream.models.messages.cluster_names import LONGEST_CLUSTER_NAME, LONGEST_NODE_NAME, cluster_name_problem
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a msgspec decoder raises: wrong types and broken JSON, broken UTF-8 in a used text, too deep nesting."""

_CACHED_NAMES: Final = 16_384  # names kept as checked: nodes of some large clusters; some 3 MB, 8 MB if all were long


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


def cluster_of(key: bytes | None) -> str:
    """Read the key of a record: the name of its cluster.

    Raises:
        Unreadable: no key, or none that is a cluster's name in UTF-8 (`cluster_names`).
    """
    if key is None:
        raise Unreadable(UnreadableReason.BAD_KEY, "no key")
    if len(key) > LONGEST_CLUSTER_NAME:
        raise Unreadable(UnreadableReason.BAD_KEY, f"{len(key)} bytes, limit {LONGEST_CLUSTER_NAME}")
    return _cluster_cached(key)


@lru_cache(maxsize=_CACHED_NAMES)
def _cluster_cached(key: bytes) -> str:
    try:
        cluster = key.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(UnreadableReason.BAD_KEY, "not UTF-8") from error
    problem = cluster_name_problem(cluster)
    if problem is not None:
        raise Unreadable(UnreadableReason.BAD_KEY, f"not a cluster's name: {problem}")
    return cluster


def check_node_name(name: str, field: str) -> None:
    """Refuse a name that no node has; rows could not be keyed by it.

    Raises:
        Unreadable: it is empty, too long, or has a slash or a NUL.
    """
    if not _is_node_name(name):
        reason = UnreadableReason.BAD_NAME if "/" in name or "\0" in name else UnreadableReason.OVERSIZED
        raise Unreadable(reason if name else UnreadableReason.MISSING_FIELD, field)


@lru_cache(maxsize=_CACHED_NAMES)
def _is_node_name(name: str) -> bool:
    return 0 < len(name.encode()) <= LONGEST_NODE_NAME and "/" not in name and "\0" not in name  # these end it in rows


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

    msgspec names types and paths, which is safe.
    """
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        if text.startswith("Object missing required field"):
            return Unreadable(UnreadableReason.MISSING_FIELD, text)
        if "RFC3339" in text or "timezone" in text:
            return Unreadable(UnreadableReason.BAD_TIME, text)
        return Unreadable(UnreadableReason.WRONG_TYPE, text)
    if isinstance(error, msgspec.DecodeError):
        return Unreadable(UnreadableReason.BAD_JSON, text)
    return Unreadable(UnreadableReason.BAD_JSON, "invalid UTF-8" if isinstance(error, UnicodeError) else "too deep")
