"""Pods that were made to leave, by anyone: the common measure of two runs."""

from __future__ import annotations

from typing import NamedTuple


class Departure(NamedTuple):
    """One pod that was made to leave.

    Attributes:
        at_us: when it was deleted, or the first attempt was issued, microseconds since 1970.
        name: namespace and name.
    """

    at_us: int
    cluster: str
    pod_uid: str
    name: str
    node: str
