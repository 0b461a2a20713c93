"""What a feed does beside following its clusters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup


class FeedSettings(SettingsGroup):
    """How often a feed lists."""

    feed_relist_hours: Annotated[float, Field(gt=0)] = 24.0
    """Most time between two listings of a cluster, also where its watches are fine. A day: whatever day of the topics
    is recorded then holds a whole listing. Each costs a page from etcd for 500 objects, and a record of some 700 bytes
    for each object. Where nodes or pods are kept for less than twice as long, half of that counts."""
