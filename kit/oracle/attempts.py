"""When an attempt may, and must, be repeated (semantics.md 12.8): exponential, with a ceiling, spread by a tenth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.reading import Statement
from evictstream.kit.oracle.records import shown

SUCCESSES = ("Succeeded", "Gone")
OBSERVATION = "observation"
HOLD = "hold"


class AttemptWait(NamedTuple):
    """An attempt is out.

    Attributes:
        issued_at_us: when it was issued.
        earliest_us: the next one may not come before.
        latest_us: the next one is owed from then on.
        outcome: `success` or `failure` once a result was counted, `acceptance` as long as the executor has queued it,
            `observation` if one that does not act has looked at it, `hold` if it has let go of it for a brake, else
            empty.
    """

    issued_at_us: int
    earliest_us: int
    latest_us: int
    outcome: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        answer = f"its newest result was: {self.outcome}" if self.outcome else "no result has come"
        return (
            f"issued at {shown(self.issued_at_us)}, {answer}: the next attempt is owed between"
            f" {shown(self.earliest_us)} and {shown(self.latest_us)}"
        )


def after_attempt(issued_at_us: int, attempt: int, limits: OracleLimits) -> AttemptWait:
    """Wait for an answer, or for silence."""
    wait_us = _doubled_us(limits.result_silence_us, attempt, limits)
    return AttemptWait(issued_at_us, issued_at_us + wait_us * 9 // 10, issued_at_us + wait_us)


def after_result(wait: AttemptWait, result: Statement, attempt: int, limits: OracleLimits) -> AttemptWait:
    """Count a result: the first one, but a success also after a failure, and before it each `Accepted`."""
    is_success = result.content["outcome"] in SUCCESSES
    if result.content["outcome"] == "Observed":
        return wait._replace(outcome=wait.outcome or OBSERVATION)  # no executor has tried
    if wait.outcome == "success" or (wait.outcome == "failure" and not is_success):
        return wait
    if result.content["outcome"] == "Accepted" and result.content.get("heldBy"):
        # Again when the brake has ended, which the service may know at once; at the latest when that has been silent.
        return AttemptWait(wait.issued_at_us, result.at_us, result.at_us + limits.accepted_silence_us, HOLD)
    if result.content["outcome"] == "Accepted":
        at_us = min(result.at_us + limits.accepted_silence_us, wait.issued_at_us + limits.accepted_limit_us)
        if wait.outcome == "acceptance":
            at_us = max(at_us, wait.latest_us)  # no repeat for that long from each of them
        return AttemptWait(wait.issued_at_us, at_us, at_us, "acceptance")
    if is_success:
        at_us = result.at_us + limits.success_grace_us
        return AttemptWait(wait.issued_at_us, at_us, at_us, "success")
    wait_us = _doubled_us(limits.retry_base_us, attempt, limits)
    return AttemptWait(wait.issued_at_us, result.at_us + wait_us * 9 // 10, result.at_us + wait_us, "failure")


def nobody_acts(wait: AttemptWait, reports: Iterable[Statement]) -> bool:
    """Say whether nobody acts: the attempt was observed, and no executor has reported since it was issued."""
    return wait.outcome == OBSERVATION and all(said.at_us <= wait.issued_at_us for said in reports)


def held_us(wait: AttemptWait, said: Statement, limits: OracleLimits) -> int:
    """Say until when the report of an executor's queue puts the next attempt off; 0 if it says nothing of this one."""
    if wait.outcome not in ("", "acceptance", OBSERVATION) or wait.issued_at_us > said.content["read_to_us"]:
        return 0
    return min(said.at_us + limits.report_silence_us, wait.issued_at_us + limits.accepted_limit_us)


def _doubled_us(base_us: int, attempt: int, limits: OracleLimits) -> int:
    return min(base_us << (attempt - 1), limits.retry_ceiling_us)
