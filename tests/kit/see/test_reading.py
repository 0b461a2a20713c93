from __future__ import annotations

import pytest

from evictstream.kit.see.reading import stale_partitions

SECOND_US = 1_000_000
NOON_US = 1_795_262_400 * SECOND_US


@pytest.mark.parametrize(
    ("rows_seconds", "nodes_seconds", "pods_seconds", "is_stale"),
    [
        pytest.param(0, 29, None, False, id="read-soon"),
        pytest.param(0, None, 31, True, id="no-worker-reads"),
        pytest.param(31, 0, 0, False, id="quiet-feed"),
        pytest.param(None, 0, None, True, id="never-a-worker"),
        pytest.param(None, None, None, False, id="never-anything"),
    ],
)
def test_stale_is_input_much_newer_than_rows(
    rows_seconds: int | None, nodes_seconds: int | None, pods_seconds: int | None, *, is_stale: bool
) -> None:
    ages = {"rows": rows_seconds, "nodes": nodes_seconds, "pods": pods_seconds}
    newest = {(topic, 3): NOON_US + age * SECOND_US for topic, age in ages.items() if age is not None}
    assert stale_partitions(newest, [3], ("nodes", "pods"), "rows") == ((3,) if is_stale else ())
