"""Which of two states of an object is newer: resource versions (semantics.md 12.3).

Within one cluster, resource versions compare as numbers, across the objects of one kind too. A version that is not
made of digits cannot be compared with another one; then the order in the log decides, and the later record is newer.

Where a cluster's versions go back (it was rebuilt, or its etcd restored), its feed begins a new epoch. Every version of
an epoch is newer than all of the epochs before, so the epoch is the high part of the number.
"""

from typing import Final, TypeAlias

Version: TypeAlias = int | str
"""A resource version: a number if its text is made of digits, else the text."""

LAST_EPOCH: Final = 2**31 - 1
"""Greater than any feed will ever count; small enough that a version with its epoch is a number to `read_version`."""

_LONGEST_NUMBER: Final = 64  # digits; etcd's have at most 20. Longer texts would make reading them costly
_EPOCH_BITS: Final = 64  # etcd's versions have 63


def read_version(text: str, epoch: int = 0) -> Version:
    """Read a resource version of an epoch, which is from 0 to `LAST_EPOCH`."""
    if text.isdecimal() and text.isascii() and len(text) <= _LONGEST_NUMBER:
        return int(text) + (epoch << _EPOCH_BITS) if epoch else int(text)
    return text


def is_of_later_epoch(version: Version, stored: Version) -> bool:
    """Return whether input is of a later epoch than the stored state: what happened in between may be undone."""
    if isinstance(version, int) and isinstance(stored, int):
        return version >> _EPOCH_BITS > stored >> _EPOCH_BITS
    return False


def is_older(version: Version, stored: Version) -> bool:
    """Return whether input is older than the stored state; False for versions that are equal or cannot be compared."""
    if isinstance(version, int) and isinstance(stored, int):
        return version < stored
    return False


def is_newer(version: Version, stored: Version) -> bool:
    """Return whether input is newer; True for versions that cannot be compared, since the log decides their order."""
    return version != stored and not is_older(version, stored)


def later(version: Version, stored: Version) -> Version:
    """Return the newer one of two versions, the first if they cannot be compared."""
    return stored if is_older(version, stored) else version
