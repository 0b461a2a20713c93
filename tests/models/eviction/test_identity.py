from __future__ import annotations

import itertools
import re

from evictstream.models.eviction import eviction_id
from evictstream.models.eviction.lifecycle import wait_us

BASE, CEILING = 1_000_000, 300_000_000


def test_id_is_the_same_for_ever() -> None:
    """A changed encoding would issue every open eviction under a second id after an update."""
    assert eviction_id("prod-eu-1", "67a4", 0) == "6e4b9268c8d4aee6d2dd6c287f6e8910"


def test_every_part_of_an_id_counts_without_running_together() -> None:
    texts = ["a", "b", "ab", "1:a", "a1", ""]
    ids = {eviction_id(*parts) for parts in itertools.product(texts, texts, range(12))}
    assert len(ids) == len(texts) ** 2 * 12
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in ids)


def test_wait_doubles_up_to_the_ceiling() -> None:
    """semantics.md 12.8"""
    for attempt in range(1, 200):
        longest = min(BASE * 2 ** (attempt - 1), CEILING)
        assert 0.9 * longest <= wait_us(BASE, CEILING, "id", attempt) <= longest


def test_wait_is_spread_and_repeatable() -> None:
    waits = [wait_us(BASE, CEILING, f"{number:032x}", 1) for number in range(1000)]
    assert waits == [wait_us(BASE, CEILING, f"{number:032x}", 1) for number in range(1000)]
    for tenth in range(10):
        low = BASE - (tenth + 1) * BASE // 100
        assert 60 < sum(low <= wait < low + BASE // 100 for wait in waits) < 140, "evenly"


def test_wait_is_never_nothing() -> None:
    assert wait_us(1, 1, "id", 10**9) == 1
