"""Reading a recorded incident: a folder with `events.jsonl.gz`, and perhaps `README.md`.

`examples/incidents/README.md` tells the format. The demo's own incident lies there in a clone; an installed package may
carry a copy of it beside this module.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any, TypeAlias

from evictstream.kit.recordings.plain_files import open_plain
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.streams.errors import WrongUseError

Event: TypeAlias = dict[str, Any]
"""One watch event as in JSON: `cluster`, `type`, `observedAt`, `object`."""

DEMO_INCIDENT = "zone-outage-part-recovers-no-evictor"

_PACKAGED = Path(__file__).parent / "incident"
_EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "incidents"

_CHANGES = ("ADDED", "MODIFIED", "DELETED")


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """An incident.

    Attributes:
        name: name of its folder.
        title: first line of its README, or the name.
        events: changes in the order in which they were observed; bookmarks are left out.
    """

    name: str
    title: str
    events: tuple[Event, ...]

    @property
    def clusters(self) -> tuple[str, ...]:
        """Ids of all clusters in it."""
        return tuple(sorted({event["cluster"] for event in self.events}))

    @property
    def seconds(self) -> float:
        """From the first event to the last."""
        first, last = self.events[0]["observedAt"], self.events[-1]["observedAt"]
        return (instant_us(last) - instant_us(first)) / SECOND_US


def demo_incident() -> Path:
    """Find the folder of the demo's own incident: in the package, or in the clone around it.

    Raises:
        WrongUseError: it is in neither.
    """
    for folder in (_PACKAGED, _EXAMPLES / DEMO_INCIDENT):
        if (folder / "events.jsonl.gz").exists():
            return folder
    problem = f"the recorded incident {DEMO_INCIDENT} is not installed"
    next_step = "run the demo in a clone, or name a folder of its examples/incidents with --incident"
    raise WrongUseError(problem, next_step=next_step)


def read_recording(folder: Path) -> Recording:
    """Read an incident.

    Raises:
        WrongUseError: the folder holds none, or it cannot be read.
    """
    try:
        with open_plain(folder / "events.jsonl.gz") as file, gzip.open(file, "rt", encoding="utf-8") as lines:
            parsed = [json.loads(line) for line in lines]
        events = tuple(event for event in parsed if event["type"] in _CHANGES)
        instant_us(events[0]["observedAt"])  # there is one, and it has a time
    except FileNotFoundError as error:
        problem = f"{folder} has no recorded incident (no {Path(error.filename).name})"
        raise WrongUseError(problem, next_step="name one of the folders in examples/incidents") from error
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError) as error:
        problem = f"{folder} has no readable recorded incident: {error!r}"
        raise WrongUseError(problem, next_step="examples/incidents/README.md describes the format") from error
    return Recording(name=folder.resolve().name, title=_title(folder), events=events)


def _title(folder: Path) -> str:
    readme = folder / "README.md"
    is_there = readme.is_file() and not readme.is_symlink()
    first = readme.read_text(encoding="utf-8").splitlines()[:1] if is_there else []
    return first[0].lstrip("# ").strip() if first else folder.resolve().name
