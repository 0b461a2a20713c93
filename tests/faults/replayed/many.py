"""Many random lives, in as many processes as wanted."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from evictstream.kit.oracle import Violation
from tests.faults.replayed.checks import Outcome, check_life

CHUNK: Final = 50


def replay_many(seeds: Sequence[int], *, processes: int) -> Iterator[Outcome]:
    """Replay them; outcomes come as they are done."""
    if processes <= 1:
        yield from map(_checked, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_checked, seeds, chunksize=CHUNK)


def _checked(seed: int) -> Outcome:
    try:
        return check_life(seed)
    except Exception as error:  # noqa: BLE001 - a replay that breaks is one that failed, and its seed has to be known
        return Outcome(seed, (Violation("broke", f"{type(error).__name__}: {error}"),), Counter())
