"""What may come out of the service for given inputs, worked out from semantics.md part B alone.

It imports nothing else of the product, so a mistake there is not a mistake here (an import contract and a test hold
that). It is slow on purpose: for each pod `judge` tries every order in which the records of its node, of the pod itself
and of executors could have been taken in.

Limits: resource versions are numbers, the operators `Gt` and `Lt` match nothing (their gate is off), what operators
say is unreadable, and a deleted UID is remembered for good.
"""

from evictstream.kit.oracle.judging import judge
from evictstream.kit.oracle.limits import OracleLimits, Promptness, Stretch
from evictstream.kit.oracle.records import InputRecord, KeyedRecord, MessageRecord, Violation

__all__ = [
    "InputRecord",
    "KeyedRecord",
    "MessageRecord",
    "OracleLimits",
    "Promptness",
    "Stretch",
    "Violation",
    "judge",
]
