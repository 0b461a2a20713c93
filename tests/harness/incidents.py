"""Recorded incidents as the watch events that they hold, and as parameters of a test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

INCIDENTS = Path(__file__).parents[2] / "examples" / "incidents"
LARGEST: Final = "flapping-taints"
LARGE: Final = (LARGEST, "manual-taints", "zone-outage")
"""`make quick` plays the small ones. Of the large ones but the largest it compares the commands with those of earlier
versions."""


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the changes of an incident in the order in which they were observed."""
    with gzip.open(folder / "events.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [event for event in map(json.loads, lines) if event["type"] != "BOOKMARK"]


def incidents(found: Iterable[Path | str]) -> list[ParameterSet]:
    """Return one parameter for each folder or name, the large ones marked `slow`."""
    return [
        pytest.param(one, id=name, marks=pytest.mark.slow if name.startswith(LARGE) else ())
        for one in found
        for name in [Path(one).name]
    ]
