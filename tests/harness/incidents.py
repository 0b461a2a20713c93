"""Recorded incidents as the watch events that they hold."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

INCIDENTS = Path(__file__).parents[2] / "examples" / "incidents"


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the changes of an incident in the order in which they were observed."""
    with gzip.open(folder / "events.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [event for event in map(json.loads, lines) if event["type"] != "BOOKMARK"]
