"""When an attempt may, and must, be repeated (semantics.md 12.8): exponential, with a ceiling, spread by a tenth."""

from __future__ import annotations

from typing import NamedTuple

from tests.faults.numbers import SECOND_US, Numbers
from tests.faults.oracle.reading import Said

SUCCESSES = ("Succeeded", "Gone")


class Waiting(NamedTuple):
    """An attempt is out.

    Attributes:
        issued_at_us: when it was issued.
        earliest_us: the next one may not come before.
        latest_us: the next one is owed from then on.
        outcome: `success` or `failure` once a result was counted, else empty.
    """

    issued_at_us: int
    earliest_us: int
    latest_us: int
    outcome: str = ""


def after_attempt(issued_at_us: int, attempt: int, numbers: Numbers) -> Waiting:
    """Wait for an answer, or for silence."""
    wait_us = _doubled_us(numbers.result_silence_seconds, attempt, numbers)
    return Waiting(issued_at_us, issued_at_us + wait_us * 9 // 10, issued_at_us + wait_us)


def after_result(waiting: Waiting, said: Said, attempt: int, numbers: Numbers) -> Waiting:
    """Count a result: the first one, but a success also after a failure."""
    is_success = said.content["outcome"] in SUCCESSES
    if waiting.outcome == "success" or (waiting.outcome and not is_success):
        return waiting
    if is_success:
        at_us = said.at_us + int(numbers.success_grace_seconds * SECOND_US)
        return Waiting(waiting.issued_at_us, at_us, at_us, "success")
    wait_us = _doubled_us(numbers.retry_base_seconds, attempt, numbers)
    return Waiting(waiting.issued_at_us, said.at_us + wait_us * 9 // 10, said.at_us + wait_us, "failure")


def _doubled_us(base_seconds: float, attempt: int, numbers: Numbers) -> int:
    return int(min(base_seconds * 2 ** (attempt - 1), numbers.retry_ceiling_seconds) * SECOND_US)
