"""A fake API server with two nodes and four pods, and topics to feed them into."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.feed import kind_feed
from evictstream.streams.settings import Settings


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        found.bookmark_lead_seconds = 0.2  # before the end of a watch of one second
        for node in ("n-1", "n-2"):
            found.put("Node", node, spec={})
            for letter in "ab":
                found.put("Pod", f"{node}-{letter}", spec={"nodeName": node})
        yield found


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


@pytest.fixture
def _short_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_feed, "WATCH_SECONDS", 1.0)
