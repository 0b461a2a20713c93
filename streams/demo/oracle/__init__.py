"""What has to happen to each pod of a recorded incident, worked out independently of the service.

Written from the specification with dictionaries and loops, slow on purpose: for each change of a pod or of its node
the whole history is looked at again. It shares no code with `models` or the service, so a mistake there is not a
mistake here. `expected` reads watch events, `check` compares what readers of the commands topic saw.

Limits: resource versions are numbers, the operators `Gt` and `Lt` match nothing (their gate is off), the gap within
which an outage goes on is five seconds, and a deleted UID is remembered for good.
"""

from evictstream.streams.demo.oracle.check import check
from evictstream.streams.demo.oracle.expectation import Course, Expectation, Span, expected
from evictstream.streams.demo.oracle.limits import Outage, Seen

__all__ = ["Course", "Expectation", "Outage", "Seen", "Span", "check", "expected"]
