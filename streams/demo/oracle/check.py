"""Holds what readers of the commands topic saw against what had to happen; every difference is a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from evictstream.streams.demo.oracle.expectation import Expectation, Span
from evictstream.streams.demo.oracle.limits import Limits, Outage, Seen
from evictstream.streams.demo.oracle.rules import Json, to_us

LEAVING = ("PodTerminating", "PodGone")


def check(
    expectations: Mapping[str, Expectation],
    seen: Iterable[Seen],
    *,
    end_us: int,
    failed: frozenset[tuple[str, int]] = frozenset(),
    outages: Sequence[Outage] = (),
    tolerance_seconds: float = 0.005,
    delay_seconds: float = 1.0,
    patience_seconds: float = 5.0,
) -> list[str]:
    """Compare commands with expectations.

    Args:
        expectations: what `expected` said of the events that were played.
        seen: every command, in any order.
        end_us: when the watch over the commands ended, microseconds since 1970.
        failed: attempts that the executor reported as failed, as `(evictionId, attempt)`. All others are taken for
            done, so that nothing may follow them.
        outages: stretches in which the service was kept from working, such as a killed worker's until its partitions
            were taken over.
        tolerance_seconds: how far a deadline may be off, and how early an eviction may be seen. Event times are cut to
            milliseconds by the broker, so a few of them.
        delay_seconds: how long after its reason went an eviction may still be seen.
        patience_seconds: how quickly everything has to happen outside outages, and how short a state may be to be
            passed over.

    Returns:
        Everything that is wrong, one sentence each; empty if all is well.
    """
    second = 1_000_000
    limits = Limits(
        tolerance_us=int(tolerance_seconds * second),
        delay_us=int(delay_seconds * second),
        patience_us=int(patience_seconds * second),
        outages=tuple(outages),
        end_us=end_us,
    )
    by_pod: dict[str, list[Seen]] = {}
    for one in sorted(seen, key=lambda one: one.at_us):
        by_pod.setdefault(one.command["podUid"], []).append(one)
    problems = [
        f"{_name(found[0].command)}: {len(found)} command(s) about a pod that was never there"
        for uid, found in by_pod.items()
        if uid not in expectations
    ]
    for uid, expectation in expectations.items():
        problems += _Trial(expectation, by_pod.get(uid, []), failed, limits).problems()
    return problems


class _Trial:
    """One pod and the commands about it, in the order in which they were seen."""

    def __init__(
        self, expectation: Expectation, seen: list[Seen], failed: frozenset[tuple[str, int]], limits: Limits
    ) -> None:
        self.spans, self.seen, self.failed, self.limits = expectation.spans, seen, failed, limits
        self.expectation = expectation
        done = [one.at_us for one in seen if one.command["action"] == "Evict" and not self._has_failed(one.command)]
        self.done_us = min(done, default=None)

    def problems(self) -> list[str]:
        """Say what is wrong with what came, then what should have come."""
        where = f"{self.expectation.namespace}/{self.expectation.pod} on {self.expectation.node}"
        return [f"{where}: {text}" for text in (*self._wrong(), *self._missing())]

    def _wrong(self) -> Iterator[str]:
        closed: set[str] = set()
        before: Json | None = None
        for one in self.seen:
            command = one.command
            action = command["action"]
            if command["evictionId"] in closed:
                yield f"{_what(command)} came after the same eviction's Cancel"
            if before is not None and before["evictionId"] == command["evictionId"]:
                if command["revision"] < before["revision"]:
                    yield f"{_what(command)} has revision {command['revision']} after {before['revision']}"
            elif before is not None and before["action"] != "Cancel":
                yield f"{_what(command)} begins another eviction while {_what(before)} stands"
            if self.done_us is not None and self.done_us < self.limits.reach_back(one.at_us, self.limits.delay_us):
                yield f"{_what(command)} came {_seconds(one.at_us - self.done_us)} after the pod had been evicted"
            if action == "Schedule":
                yield from self._wrong_schedule(one)
            elif action == "Evict":
                yield from self._wrong_eviction(one, before)
            else:
                closed.add(command["evictionId"])
                yield from self._wrong_cancel(one, before)
            before = command

    def _wrong_schedule(self, one: Seen) -> Iterator[str]:
        back = self.limits.reach_back(one.at_us, self.limits.patience_us)
        if not any(self._names_deadline(span, one.command) for span in self._between(back, one.at_us)):
            yield f"{_what(one.command)} announces a deadline, a verdict or a taint that are not the pod's"

    def _wrong_eviction(self, one: Seen, before: Json | None) -> Iterator[str]:
        command, tolerance_us = one.command, self.limits.tolerance_us
        same = before is not None and before["evictionId"] == command["evictionId"]
        attempt = (before["attempt"] if same and before is not None else 0) + 1
        if command["attempt"] != attempt:
            yield f"{_what(command)} is attempt {command['attempt']}, not {attempt}"
        if before is not None and same and before["action"] == "Evict" and not self._has_failed(before):
            yield f"{_what(command)} repeats an attempt that had not failed"
        spans = list(self._between(one.at_us - self.limits.delay_us, one.at_us))
        due = [span for span in spans if span.due_us is not None]
        if not due:
            yield f"{_what(command)} came while nothing was due"
        elif all(one.at_us < (span.due_us or 0) - tolerance_us for span in due):
            early_us = min(span.due_us or 0 for span in due) - one.at_us
            yield f"{_what(command)} came {_seconds(early_us)} too early"
        elif not any(self._names_deadline(span, command) for span in due):
            yield f"{_what(command)} names a deadline, a verdict or a taint that are not the pod's"

    def _wrong_cancel(self, one: Seen, before: Json | None) -> Iterator[str]:
        command = one.command
        if before is None or before["action"] == "Cancel" or before["evictionId"] != command["evictionId"]:
            yield f"{_what(command)} takes back what was never announced or issued"
        verdict = command["reason"]["verdict"]
        was_deleted = self.done_us is not None and self.done_us <= one.at_us
        if was_deleted and verdict in LEAVING and before is not None and before["action"] == "Schedule":
            return  # the executor deleted it for an eviction that was taken back, and opened again, at that moment
        back = self.limits.reach_back(one.at_us, self.limits.patience_us)
        idle = [span for span in self._between(back, one.at_us) if span.deadline_us is None]
        if not idle:
            yield f"{_what(command)} came while the pod had to leave"
        elif not any(_explains(span, command) for span in idle):
            yield f"{_what(command)} says {verdict}, not {' or '.join(sorted(idle[-1].why))}"

    def _missing(self) -> Iterator[str]:
        limits = self.limits
        before_us: int | None = None
        for span in self.spans:
            is_new, before_us = span.deadline_us != before_us, span.deadline_us
            if self.done_us is not None and span.since_us > self.done_us:
                return
            until = limits.end_us if span.until_us is None else span.until_us
            if span.deadline_us is None or span.due_us is None:
                if limits.free_us(span.since_us, until) > limits.patience_us and self._is_open(until):
                    yield f"was not cancelled when nothing was due any more ({' or '.join(sorted(span.why))})"
                continue
            ahead_until = min(until, span.deadline_us)
            must_tell = is_new and limits.free_us(span.since_us, ahead_until) > limits.patience_us
            if must_tell and not self._announced(span):
                yield f"its deadline, {_seconds(span.deadline_us - span.since_us)} ahead, was not announced"
            if limits.free_us(span.due_us, until) > limits.patience_us:
                yield from self._missing_eviction(span, span.due_us, until)

    def _missing_eviction(self, span: Span, due_us: int, until: int) -> Iterator[str]:
        came = [one.at_us for one in self.seen if one.command["action"] == "Evict"]
        came = [at_us for at_us in came if span.since_us <= at_us <= until + self.limits.delay_us]
        if not came:
            yield f"was not evicted although it was due ({' or '.join(span.why)})"
        elif (late_us := self.limits.free_us(due_us, came[0])) > self.limits.patience_us:
            yield f"was evicted {_seconds(late_us)} late"

    def _announced(self, span: Span) -> bool:
        return any(
            one.command["action"] == "Schedule" and self._names_deadline(span, one.command)
            for one in self.seen
            if one.at_us >= span.since_us - self.limits.tolerance_us
        )

    def _is_open(self, at_us: int) -> bool:
        """Whether by then something had been announced or issued, without success, and not been taken back."""
        earlier = [one.command for one in self.seen if one.at_us < at_us]
        if not earlier or earlier[-1]["action"] == "Cancel":
            return False
        return earlier[-1]["action"] == "Schedule" or self._has_failed(earlier[-1])

    def _between(self, begin: int, end: int) -> Iterator[Span]:
        """Yield the spans that hold at some time between two instants."""
        for span in self.spans:
            if span.since_us <= end + self.limits.tolerance_us and (span.until_us is None or span.until_us >= begin):
                yield span

    def _names_deadline(self, span: Span, command: Json) -> bool:
        if span.deadline_us is None or span.floor_us is None:
            return False
        reason = command["reason"]
        if reason["verdict"] not in span.why or reason["taint"]["key"] not in span.taints:
            return False
        named_us, tolerance_us = to_us(command["deadline"]), self.limits.tolerance_us
        return span.floor_us - tolerance_us <= named_us <= span.deadline_us + tolerance_us

    def _has_failed(self, command: Json) -> bool:
        return (command["evictionId"], command["attempt"]) in self.failed


def _explains(span: Span, command: Json) -> bool:
    """Whether a cancellation gives a reason that holds: of two words for tolerated pods the taint decides."""
    verdict, is_there = command["reason"]["verdict"], command["reason"]["taint"]["key"] in span.taints
    if (verdict == "Tolerated" and not is_there) or (verdict == "TaintRemoved" and is_there):
        return False
    return verdict in span.why


def _name(command: Json) -> str:
    return f"{command['namespace']}/{command['pod']} on {command['node']}"


def _what(command: Json) -> str:
    attempt = f" (attempt {command['attempt']})" if command["attempt"] > 1 else ""
    return f"{command['action']}{attempt} for {command['deadline']}"


def _seconds(duration_us: int) -> str:
    return f"{duration_us / 1_000_000:.3f} s"
