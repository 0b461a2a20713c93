"""How a feed works besides watching."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup


class FeedSettings(SettingsGroup):
    """How often a feed lists, and reads an inventory."""

    feed_relist_hours: Annotated[float, Field(gt=0)] = 24.0
    """Longest time between two listings of a cluster, even if its watches are fine. A day: every recorded day of the
    topics then holds a complete listing. A listing costs a page from etcd for each 500 objects, and a record of some
    700 bytes for each object. If nodes or pods are kept for less than twice this time, half of their retention
    applies."""

    feed_profile_seconds: Annotated[float, Field(ge=1)] = 300.0
    """Longest time between two reads of a cluster's ClusterProfile in its hub, if the feed is given one. Up to a
    quarter is taken off at random. After a failure it is read again after 30 s, if not sooner."""
