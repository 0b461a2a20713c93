"""The sentences of a story, and what each one claims: it is held against what was recorded.

A sentence that is not understood here is a failure: every one that can be printed has its check.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from evictstream.kit.oracle.decision import MayStay, MustLeave, in_use, tolerated_us
from evictstream.kit.replay.story import SourcedDecision, Teller
from evictstream.models.instants import instant_us
from tests.kit.replay.story_inputs import Inputs, Moment

SECOND_US: Final = 1_000_000
Z: Final = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"
SECONDS: Final = r"(\d+\.\d)"
HOLDER: Final = r"(brake \S+|policy \S+ \(revision \d+, \w+\))"


class UntrueError(AssertionError):
    """A sentence does not agree with the records."""


class ToldEviction:
    """What was told of one eviction so far."""

    def __init__(self) -> None:
        self.deadline = ""
        self.came_us = 0
        self.attempts = 0
        self.not_before: int | None = None
        self.is_ended = False


class Claim(NamedTuple):
    """What a sentence is held against; `moments` is None where what led to it was played."""

    inputs: Inputs
    told: SourcedDecision
    so_far: ToldEviction
    moments: list[Moment] | None

    @property
    def at_us(self) -> int:
        return instant_us(self.told.record.cause.at)

    def any(self, holds: Callable[[Moment], bool], what: str) -> None:
        """Hold a claim against each way in which the records can have been taken in."""
        if self.moments is not None and not any(map(holds, self.moments)):
            raise UntrueError(f"{what}: {self.moments}")

    def leaves(self, deadline: str, what: str = "another deadline") -> None:
        self.any(lambda one: isinstance(one.due, MustLeave) and one.due.deadline_us == instant_us(deadline), what)


def hold(holds: object, what: str) -> None:
    if not holds:
        raise UntrueError(what)


def _taint(text: str) -> tuple[str, str]:
    key, _, value = text.removesuffix(":NoExecute").partition("=")
    return key, value


def _decides(one: Moment, taint: str) -> MustLeave | None:
    """Return what is due, if this taint is on the node and is the reason."""
    due, (key, value) = one.due, _taint(taint)
    is_there = any((found.key, found.value) == (key, value) for found in one.node.taints)
    return due if isinstance(due, MustLeave) and is_there and due.taint == key else None


def _untolerated(claim: Claim, taint: str, node: str, as_of: str) -> None:
    def holds(one: Moment) -> bool:
        due = _decides(one, taint)
        return due is not None and due.is_untolerated and due.deadline_us == instant_us(as_of)

    hold(node == claim.told.record.node, "another node")
    claim.any(holds, "it was tolerated, or since another instant")


def _covers(
    claim: Claim, toleration: str, taint: str, node: str, seconds: str, built_in: str | None, since: str
) -> None:
    def holds(one: Moment) -> bool:
        due = _decides(one, taint)
        return (
            _is_in_use(one, toleration, taint, seconds, built_in)
            and due is not None
            and due.window_us == instant_us(since)
        )

    hold(node == claim.told.record.node, "another node")
    claim.any(holds, "another toleration, time or window")


def _covers_in_outage(
    claim: Claim, toleration: str, taint: str, node: str, seconds: str, built_in: str | None, outage: str
) -> None:
    def holds(one: Moment) -> bool:
        due = _decides(one, taint)
        if due is None or one.node.outage_us != instant_us(outage):
            return False
        own_us = due.window_us + int(seconds) * SECOND_US
        arrived_us = next(found.since_us for found in one.node.taints if found.key == _taint(taint)[0])
        is_before = one.node.outage_us < arrived_us
        return _is_in_use(one, toleration, taint, seconds, built_in) and is_before and due.deadline_us < own_us

    hold(node == claim.told.record.node, "another node")
    claim.any(holds, "another toleration, time or outage")


def _is_in_use(one: Moment, toleration: str, taint: str, seconds: str, built_in: str | None) -> bool:
    key, value = _taint(taint)
    there = next((found for found in one.node.taints if (found.key, found.value) == (key, value)), None)
    found = None if there is None else in_use(one.pod.tolerations, there)
    if found is None:
        return False
    text = found.get("key") or "of any key"
    if found.get("operator") in (None, "", "Equal") and found.get("key"):
        text += f"={found.get('value') or ''}"
    text += f":{found['effect']}" if found.get("effect") else ""
    spec = one.pod.in_spec[next(place for place, each in enumerate(one.pod.tolerations) if each is found)]
    in_spec = str(spec.get("tolerationSeconds", "forever")) if spec is not found else None
    return text == toleration and tolerated_us(found) == int(seconds) * SECOND_US and in_spec == built_in


def _leaves_at(claim: Claim, deadline: str) -> None:
    claim.leaves(deadline)
    hold(instant_us(deadline) > claim.at_us, "that was not ahead")


def _at_once(claim: Claim, *_: str) -> None:
    def holds(one: Moment) -> bool:
        due = one.due
        return isinstance(due, MustLeave) and (due.is_untolerated or due.deadline_us <= claim.told.came_us)

    claim.any(holds, "it need not leave at once")


def _at_once_since(claim: Claim, since: str) -> None:
    claim.leaves(since)
    _at_once(claim)


def _at_once_because(claim: Claim, what: str) -> None:
    _at_once(claim)
    cause = claim.told.record.due_cause
    assert cause is not None
    if what == TAKE_OVER:
        hold(cause.kind == "CatchUp", "it was no takeover")
        return
    one = claim.inputs.at[cause.topic, cause.partition, cause.offset]  # type: ignore[index]
    hold(one.record.topic == f"{what}s", "the record is of another kind")


def _moves(claim: Claim, before: str, after: str, what: str) -> None:
    hold(before == claim.so_far.deadline, "another deadline was told before")
    claim.leaves(after)
    cause = claim.told.record.cause
    hold(cause.kind == "CatchUp" if what == TAKE_OVER else cause.topic == f"{what}s", "the cause is of another kind")


def _withdrawn(claim: Claim, deadline: str) -> None:
    hold(claim.so_far.attempts > 0, "nothing was issued")
    claim.so_far.not_before = None
    _leaves_at(claim, deadline)


def _issued(claim: Claim, attempt: str | None, how: str) -> None:
    _attempted(claim, attempt or "1")
    hold((attempt is None) == (claim.told.record.attempt == 1), "it is not the first attempt")
    deadline = claim.told.record.deadline
    if claim.told.record.due_cause is None:
        hold(deadline == claim.so_far.deadline, "another deadline was told before")
    claim.leaves(deadline, "its deadline was another")
    known = re.search(rf" was known, which was at {Z}", how)
    owed_us = instant_us(deadline) if known is None else instant_us(known[1])
    if known is not None:
        hold(owed_us > instant_us(deadline), "that was known in time")
    late_us = claim.at_us - owed_us
    number = re.match(rf"{SECONDS} s after its deadline", how)
    if number is None:
        hold(how == "on time" if known is None else how.startswith("as soon as its deadline"), "how late is not said")
        hold(late_us < SECOND_US, "it was late")
        return
    hold(number[1] == f"{late_us / SECOND_US:.1f}" and late_us >= SECOND_US, "it was not so late")
    came_us = claim.told.came_us if claim.told.record.due_cause is not None else claim.so_far.came_us
    if how.endswith("as soon as that was decided"):
        hold(claim.at_us - came_us < SECOND_US <= came_us - owed_us, "it was decided at another time")
    else:
        decided = re.search(rf"It was decided only at {Z}; after that, ", how)
        from_us = owed_us if decided is None else instant_us(decided[1])
        hold(decided is None or came_us == from_us, "it was decided at another time")
        if braked := re.search(rf"the {HOLDER} has held it until then$", how):
            _held_by(claim, braked[1])
        elif claim.told.teller is Teller.RECORDED:
            hold(how.endswith("a closed gate, a takeover or a backlog delayed it"), "no cause is told")
        else:
            hold(how.endswith("its feed was silent") and _was_silent(claim, from_us), "its feed was not silent")


def _was_silent(claim: Claim, from_us: int) -> bool:
    it, silence_us = claim.told.record, claim.inputs.limits.feed_silence_us
    beats = claim.inputs.beats[it.cluster]
    instants = [from_us, *(beat - 1 for found in beats.values() for beat in found if from_us < beat <= claim.at_us)]
    heard = [claim.inputs.heard_us(it.cluster, at_us) for at_us in instants]
    return any(one is not None and one < at_us - silence_us for one, at_us in zip(heard, instants, strict=True))


def _attempted(claim: Claim, attempt: str) -> None:
    hold(int(attempt) == claim.so_far.attempts + 1, "it is not the next attempt")
    claim.so_far.attempts += 1
    not_before = claim.so_far.not_before
    hold(not_before is None or claim.at_us >= not_before, "a later time was told for it")
    claim.so_far.not_before = None


def _known(claim: Claim, seconds: str, heard: str) -> None:
    it = claim.told.record
    hold(claim.inputs.is_heard_at(it, claim.at_us, instant_us(heard)), "it was heard at another time")
    hold(seconds == f"{(claim.at_us - instant_us(heard)) / SECOND_US:.1f}", "it was not so old")
    _at_once(claim)


def _known_without_age(claim: Claim) -> None:
    it = claim.told.record
    hold(claim.inputs.heard_us(it.cluster, claim.at_us) is None, "its feed was heard")
    _at_once(claim)


def _reports(claim: Claim, outcome: str, attempt: str, reason: str | None) -> None:
    it = claim.told.record
    hold(int(attempt) == claim.so_far.attempts == it.attempt, "it is not of the newest attempt")
    claim.so_far.not_before = None
    if claim.told.teller is Teller.PLAYED:
        hold(outcome in ("Succeeded", "Gone"), "that is not played")
        return
    one = claim.inputs.at["results", it.cause.partition, it.cause.offset].content  # type: ignore[index]
    said = "Held" if one["outcome"] == "Accepted" and one.get("heldBy") else one["outcome"]
    known = said, one["attempt"], one.get("reason") or None, one["evictionId"]
    hold(known == (outcome, int(attempt), reason, it.eviction_id), "the result says something else")


def _held_by(claim: Claim, holder: str) -> None:
    it = claim.told.record
    names = [f"brake {it.held_by}"]
    if it.policy is not None:
        names = [f"policy {it.policy.name} (revision {it.policy.revision}, {it.policy.clause})"]
    hold([holder] == names, "something else holds it, or nothing")


def _next_attempt(claim: Claim, at: str) -> None:
    claim.so_far.not_before = instant_us(at)


def _not_repeated(claim: Claim) -> None:
    hold(claim.told.record.outcome == "Observed", "it may be repeated")


def _cancelled(claim: Claim, how: str, seconds: str | None, attempt: str | None, why: str) -> None:
    early_us = instant_us(claim.told.record.deadline) - claim.at_us
    if attempt is not None:
        hold(int(attempt) == claim.so_far.attempts > 0, "another attempt was the last")
    else:
        hold(claim.so_far.attempts == 0 or claim.told.record.previous is not None, "it was issued")
        hold(early_us < 0 if seconds is None else seconds == f"{early_us / SECOND_US:.1f}", "it was not so early")
    _ended(claim, why)


def _done(claim: Claim, why: str) -> None:
    hold(claim.so_far.attempts > 0, "nothing was issued")
    _ended(claim, why)


def _ended(claim: Claim, why: str) -> None:
    claim.so_far.is_ended = True
    gone = re.fullmatch(r"the taint (\S+) is gone", why)
    tolerated = re.fullmatch(r"the pod tolerates the taint (\S+) forever now", why)

    def holds(one: Moment) -> bool:
        due = one.due
        if not isinstance(due, MayStay):
            return False
        keys = {found.key for found in one.node.taints}
        if gone is not None:
            return "TaintRemoved" in due.why and _taint(gone[1])[0] not in keys
        if tolerated is not None:
            return "Tolerated" in due.why and tolerated[1] in keys
        return _ENDS[why] in due.why

    claim.any(holds, "it did not end so")


_ENDS: Final = {
    "it is left to Kubernetes' own controller": "BuiltIn",
    "the pod is gone": "PodGone",
    "another pod has its name": "PodReplaced",
    "the pod has finished": "PodFinished",
    "the pod is terminating": "PodTerminating",
    "it is a mirror pod": "PodMirror",
    "the node is gone": "NodeGone",
}


def _shadows(claim: Claim) -> None:
    def holds(one: Moment) -> bool:
        due = one.due
        if not isinstance(due, MustLeave):
            return False
        there = next(found for found in one.node.taints if found.key == due.taint)
        times = [tolerated_us(found) for found in one.pod.tolerations if in_use([found], there) is not None]
        return any(time != times[0] for time in times[1:])

    claim.any(holds, "no later toleration differs")


def _came(claim: Claim, at: str, seconds: str) -> None:
    hold(instant_us(at) == claim.told.came_us, "it came at another time")
    hold(seconds == f"{(claim.told.came_us - claim.at_us) / SECOND_US:.1f}", "it was not so late")


TAKE_OVER: Final = "a takeover, after which everything is decided again"
COVERS: Final = (
    r"The toleration (.+?) covers the taint (\S+) of (\S+) for (\d+) s(?: \(built-in: (forever|\d+)(?: s)?\))?"
)
SENTENCES: Final[dict[str, tuple[str, Callable[..., None]]]] = {
    "untolerated": (rf"No toleration of the pod covers the taint (\S+) of (\S+), as of {Z}\.", _untolerated),
    "covers": (rf"{COVERS} since {Z}\.", _covers),
    "outage": (
        rf"{COVERS}, but the node's outage began before it, at {Z}, and leaves the pod less time\.",
        _covers_in_outage,
    ),
    "leaves": (rf"It has to leave at {Z}\.", _leaves_at),
    "at once": (r"It has to leave at once\.", _at_once),
    "at once, since": (rf"It has to leave at once, since {Z}\.", _at_once_since),
    "at once, because": (
        rf"It has to leave at once, because of (?:a change of the )?(node|pod|{TAKE_OVER})\.",
        _at_once_because,
    ),
    "moves": (rf"Its deadline moves from {Z} to {Z}, because of (?:a change of the )?(node|pod|{TAKE_OVER})\.", _moves),
    "withdrawn": (rf"The issued eviction is withdrawn; it has to leave at {Z}\.", _withdrawn),
    "issued": (r"The eviction is issued(?: again, as attempt (\d+))?, ((?:[^.]|\.\d|\. It)+)\.", _issued),
    "attempt": (r"Attempt (\d+) is issued\.", _attempted),
    "known": (
        (
            rf"In the service's view, up to {SECONDS} s old \(last heartbeats of its feed: {Z}\), the pod still exists"
            r" and has to leave\."
        ),
        _known,
    ),
    "known without age": (
        r"In the service's view, of unknown age, the pod still exists and has to leave\.",
        _known_without_age,
    ),
    "reports": (r"The executor reports (\w+) of attempt (\d+)(?: \(([^)]*)\))?\.", _reports),
    "next attempt": (
        rf"If nothing changes, the next attempt is at {Z} or later\.",
        _next_attempt,
    ),
    "held": (rf"The {HOLDER} has held it until then\.", _held_by),
    "held on": (r"The next attempt follows when the (brake \S+) has ended\.", _held_by),
    "not repeated": (r"It is not repeated before an executor acts\.", _not_repeated),
    "cancelled": (
        rf"The eviction is cancelled ({SECONDS} s before its deadline|after its deadline|after attempt (\d+)): (.+?)\.",
        _cancelled,
    ),
    "over": (r"The eviction is over: (.+?)\.", _done),
    "shadows": (
        r"A later toleration of the pod matches the taint with another time; the first one decides\.",
        _shadows,
    ),
    "came": (rf"This came at {Z}, {SECONDS} s later\.", _came),
}
