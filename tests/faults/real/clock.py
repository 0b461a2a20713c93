"""A worker's wall clock that steps while it runs, by libfaketime in front of the C library's clock.

The worker is an ordinary worker: only what `clock_gettime(CLOCK_REALTIME)` answers is shifted, by what stands in a file
that is read at each call. The monotonic clock stays true, as it does when a real machine's clock is set. The library
comes with the package `libfaketime` (or with the system's of that name); where it is missing no clock is stepped, and
the run says so.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

SYSTEM_PLACES = tuple(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def faketime_library() -> Path | None:
    """Where the library is, or `None`."""
    spec = importlib.util.find_spec("libfaketime")
    own = [
        Path(folder) / "vendor/libfaketime/src/libfaketime.so.1"
        for folder in (spec and spec.submodule_search_locations) or ()
    ]
    return next((place for place in (*own, *SYSTEM_PLACES) if place.exists()), None)


class SteppedClock:
    """The clock of one worker: true at first, then as far off as it was told."""

    def __init__(self, library: Path, file: Path) -> None:
        self._library = library
        self._file = file
        self.step(0.0)

    def step(self, offset_seconds: float) -> None:
        """Set the wall clock to the true time plus so many seconds, from now on."""
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{offset_seconds:+.3f}\n", encoding="ascii")
        beside.rename(self._file)  # whoever reads sees the old or the new text, never half of one

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs in its environment to have this clock."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",  # the older spelling
        }
