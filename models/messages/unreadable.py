"""What is wrong with a record that cannot be read. Such a record is data, not a failure: it becomes a dead letter.

Errors:
    Unreadable  a record cannot be read; `reason` says in which of the ways below, `detail` where
"""

import enum


class UnreadableReason(enum.StrEnum):
    """Why a record cannot be read (docs/messages.md#dead-letters, semantics.md 12.3)."""

    NULL_VALUE = "NullValue"
    """No value. The key names only a cluster, so a tombstone names no object."""
    BAD_KEY = "BadKey"
    """No key, or none that is a cluster's name in UTF-8: too long, or with a slash as in keys of earlier versions."""
    BAD_JSON = "BadJson"
    """The value is not JSON."""
    BAD_TIME = "BadTime"
    """An instant is not RFC 3339 with a zone, or Kubernetes would refuse the `timeAdded`."""
    WRONG_TYPE = "WrongType"
    """A field has the wrong type."""
    WRONG_KIND = "WrongKind"
    """An object of another kind or API version."""
    MISSING_FIELD = "MissingField"
    """A required field is missing, null or empty."""
    BAD_NAME = "BadName"
    """A node's name has a slash or a NUL, which no name in Kubernetes has."""
    MISPLACED_FIELD = "MisplacedField"
    """A field that a watch event of another `type` has; only the strict reader of feeds' tests refuses it."""
    UNKNOWN_EVENT_TYPE = "UnknownEventType"
    """The watch event's `type` is neither Kubernetes' nor evictstream's."""
    UNKNOWN_OUTCOME = "UnknownOutcome"
    """The result's `outcome` is not a known one."""
    FOREIGN_CLUSTER = "ForeignCluster"
    """The cluster in the value is not the one in the key."""
    OVERSIZED = "Oversized"
    """The value, a name, a UID or a resource version is larger than its limit. Values about one object have none."""


class Unreadable(ValueError):  # noqa: N818 - the name says the state of the record, which is what callers handle
    """A record cannot be read.

    Attributes:
        reason: for counting.
        detail: field path and types, for people. Never a part of the record: it may hold secrets.
    """

    def __init__(self, reason: UnreadableReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
