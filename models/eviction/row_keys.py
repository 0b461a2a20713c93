r"""The keys of the table's rows, and what can be wrong with a row.

A key is `<kind>\0<cluster>/<node>\0<uid>`, without the last part for the node itself. Clusters and nodes whose names
contain a slash or NUL are refused (`messages.envelope`).

Errors:
    RowError                    a row that cannot be loaded: the process must not go on with part of its state
    +-- UnknownRowKeyError      the key is not one of the four
    +-- UnsupportedFormatError  written by another version of this program
    +-- CorruptRowError         the right format number, but not its fields
"""

import enum


class RowKind(enum.StrEnum):
    """What a row is about: the first part of its key."""

    NODE = "node"
    POD = "pod"
    EVICTION = "eviction"
    DELETED_POD = "gone"


_NODE = RowKind.NODE
_KINDS = {kind.value: kind for kind in RowKind}  # calling `RowKind(value)` takes ten times as long


class RowError(ValueError):
    """A row cannot be loaded.

    Attributes:
        key: key of the row.
    """

    def __init__(self, key: bytes, message: str) -> None:
        """Say which row and why."""
        super().__init__(f"row {key!r}: {message}")
        self.key = key


class UnknownRowKeyError(RowError):
    """The key is not one of the four kinds."""


class UnsupportedFormatError(RowError):
    """The row was written in another format."""


class CorruptRowError(RowError):
    """The row has the right format number, but not its fields."""


def row_key(kind: RowKind, aggregate_key: str, uid: str = "") -> bytes:
    """Make the key of a row.

    Args:
        kind: what it is about.
        aggregate_key: `<cluster>/<node>`.
        uid: UID of the pod; empty for the node's own row.
    """
    name = kind._value_  # formatting a member of an enum takes as long as all the rest
    return (f"{name}\0{aggregate_key}" if kind is _NODE else f"{name}\0{aggregate_key}\0{uid}").encode()


def split_row_key(key: bytes) -> tuple[RowKind, str, str]:
    """Take a key apart into kind, `<cluster>/<node>` and UID, which is empty for a node.

    Raises:
        UnknownRowKeyError: it is not a key of this table.
    """
    try:
        what, aggregate_key, *uids = key.decode().split("\0", 2)
    except ValueError as error:  # not UTF-8, or no NUL
        raise UnknownRowKeyError(key, "malformed key") from error
    kind = _KINDS.get(what)
    if kind is None:
        raise UnknownRowKeyError(key, "unknown kind of key")
    if "/" not in aggregate_key or bool(uids) is (kind is _NODE):
        raise UnknownRowKeyError(key, "malformed key")
    return kind, aggregate_key, uids[0] if uids else ""
