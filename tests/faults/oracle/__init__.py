"""What may come out of the service for given inputs, worked out from semantics.md part B alone.

It shares no code with `models` or `streams` (a test holds that). It is slow on purpose: for each pod it tries every
order in which the records of its node, of the pod itself and of executors could have been taken in.
"""

from tests.faults.oracle.judging import judge
from tests.faults.oracle.rows import check_nodes
from tests.faults.oracle.violation import Violation

__all__ = ["Violation", "check_nodes", "judge"]
