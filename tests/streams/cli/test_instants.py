"""An instant looks the same wherever a command shows it, so that it can be given to any option that takes one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]

OTHERWISE = {
    "kit/conformance/executor_play.py",  # Kubernetes' own times have whole seconds
    "kit/conformance/fake_cluster.py",
    "streams/executor/pod_events.py",
    "streams/executor/pod_requests.py",
    "kit/oracle/records.py",  # shares no line with what it judges
}


def test_instants_are_written_by_one_function() -> None:
    """`evictstream.models.instants.instant_text`: RFC 3339, UTC, six digits and Z."""
    writing = {
        file.relative_to(ROOT).as_posix()
        for room in ("kit", "streams")
        for file in (ROOT / room).rglob("*.py")
        if re.search(r"\b(strftime|isoformat)\(", file.read_text(encoding="utf-8"))
    }
    assert writing == OTHERWISE
