"""An instant looks the same wherever a command shows it, so that it can be given to any option that takes one."""

from __future__ import annotations

import re
from pathlib import Path

STREAMS = Path(__file__).parents[3] / "streams"

OTHERWISE = {
    "conformance/executor_play.py",  # Kubernetes' own times have whole seconds
    "conformance/fake_cluster.py",
    "executor/pod_events.py",
    "executor/pod_requests.py",
    "oracle/records.py",  # shares no line with what it judges
}


def test_instants_are_written_by_one_function() -> None:
    """`evictstream.models.instants.instant_text`: RFC 3339, UTC, six digits and Z."""
    writing = {
        str(file.relative_to(STREAMS))
        for file in STREAMS.rglob("*.py")
        if re.search(r"\b(strftime|isoformat)\(", file.read_text(encoding="utf-8"))
    }
    assert writing == OTHERWISE
