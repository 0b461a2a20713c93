"""Files in another order than that of time tell the same story."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path

import pytest

from evictstream.kit.recordings import Entry, Skipped, open_recordings, read_items
from evictstream.kit.recordings.time_order import BACK_US, OrderCheck
from tests.kit.recordings.audit_samples import CREATED, event, lines, read, told
from tests.kit.recordings.audit_samples import pod as audited_pod
from tests.streams.feed.samples import Object, line, node, pod

SERVERS = 3
EVENTS = [CREATED] + [event(10 * n, "patch", audited_pod(version=10 + n)) for n in range(1, 31)]


def versioned(found: Object, version: int) -> Object:
    return found | {"metadata": found["metadata"] | {"resourceVersion": str(version)}}


def concatenated(found: list[bytes]) -> list[bytes]:
    return [one for server in range(SERVERS) for one in found[server::SERVERS]]


def shuffled(found: list[bytes]) -> list[bytes]:
    return random.Random(7).sample(found, len(found))  # noqa: S311 - no secret


@pytest.mark.parametrize("order", [lambda found: found[::-1], concatenated, shuffled])
def test_an_audit_log_in_any_order_is_sorted(order: object, tmp_path: Path) -> None:
    assert callable(order)
    in_time = [lines(one) for one in EVENTS]
    for name in ("by-time", "otherwise"):
        (tmp_path / name).mkdir()
    expected = told(read(tmp_path / "by-time", b"".join(in_time)))
    assert len(expected) == len(EVENTS)
    assert told(read(tmp_path / "otherwise", b"".join(order(in_time)))) == expected


def test_a_watch_with_the_newest_line_first_is_sorted(tmp_path: Path) -> None:
    at = "2026-11-21T10:00:{:02}Z"
    changes = [versioned(node(), number) for number in range(1, 30)]
    data = [line(one, at.format(number)) for number, one in enumerate(changes, start=1)]
    (tmp_path / "f").write_bytes(b'{"type":"BOOKMARK"}\n' + b"".join(reversed(data)))
    with open_recordings([str(tmp_path / "f")]) as items:
        found = [json.loads(bytes(one.object)) for one in items if isinstance(one, Entry)]
    assert found == changes


def test_a_clock_that_was_set_back_sorts_nothing() -> None:
    check = OrderCheck()
    for number, second in enumerate((30, 31, 2, 3), start=1):
        for item in read_entries(line(versioned(pod(), number), f"2026-11-21T10:00:{second:02}Z")):
            check.look_at(item)
    assert BACK_US < 28_000_000
    assert not check.is_out_of_order


def read_entries(data: bytes) -> list[Entry]:
    return [item for item in read_items("f", io.BytesIO(data)) if isinstance(item, Entry)]


def test_what_comes_too_late_in_a_pipe_is_counted(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"".join(lines(one) for one in reversed(EVENTS[:4])))
    os.close(theirs)
    with open_recordings([f"/dev/fd/{ours}"]) as items:
        found = [one.type for one in items if isinstance(one, Skipped)]
    os.close(ours)
    assert found == ["audit: too late to be put in order"] * 3
