"""Judge a run."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.log import InputRecord, MessageRecord
from tests.faults.numbers import NUMBERS, Numbers
from tests.faults.oracle.violation import Violation


def judge(
    inputs: Sequence[InputRecord],
    messages: Sequence[MessageRecord],
    *,
    ended_at_us: int,
    partitions: int,
    numbers: Numbers = NUMBERS,
    early_us: int = 5_000,
) -> list[Violation]:
    """Say what is wrong.

    Args:
        inputs: everything that was appended to the three inputs, each partition's records by offset.
        messages: everything that a `read_committed` reader found, each partition's records by offset.
        ended_at_us: when the run ended, quiet; microseconds since 1970 by the broker's clock.
        partitions: of each topic.
        numbers: the settings of the service.
        early_us: how much before its deadline an eviction may be issued by the broker's clock: what the clocks of
            workers may be ahead, with the clock gate open.
    """
    del inputs, messages, ended_at_us, partitions, numbers, early_us
    return []
