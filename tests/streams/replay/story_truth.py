"""Reads a told story back, sentence by sentence, and holds each against the records that it was told from.

What nodes and pods were like the oracle reads from the records, without a line of the service (`oracle/histories.py`).
A sentence that is not understood here is a failure: every one that can be printed has its check.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from evictstream.models.instants import instant_us
from evictstream.models.messages.decision import DecisionRecord
from evictstream.streams.oracle.decision import MayStay, MustLeave, decide, in_use, stay_us
from evictstream.streams.oracle.epochs import Epochs
from evictstream.streams.oracle.histories import HeardNode, HeardPod, node_history, pod_histories
from evictstream.streams.oracle.judging import by_node, read_all
from evictstream.streams.oracle.limits import OracleLimits
from evictstream.streams.oracle.reading import Said, place
from evictstream.streams.oracle.records import InputRecord, InputTopic
from evictstream.streams.replay.story import StoryLine, Teller, ToldDecision, story

SECOND_US: Final = 1_000_000
Z: Final = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"
SECONDS: Final = r"(\d+\.\d)"
Place = tuple[InputTopic, int, int]


class Moment(NamedTuple):
    """One node and pod as they may have been when something was decided."""

    node: HeardNode
    pod: HeardPod

    @property
    def due(self) -> MustLeave | MayStay:
        return decide(self.node, self.pod)


class UntrueError(AssertionError):
    """A sentence does not agree with the records."""


class Inputs:
    """What was recorded, as the oracle reads it."""

    def __init__(
        self, records: Sequence[InputRecord], limits: OracleLimits, partitions: int, *, lag_us: int = 0
    ) -> None:
        """`lag_us` is how long before a decision the records may have come that it rests on: a replay reads all."""
        self.limits = limits
        self.lag_us = lag_us
        self.partitions = partitions
        said, _ = read_all(records, limits, partitions)
        self.at: dict[Place, Said] = {(one.record.topic, one.record.partition, one.record.offset): one for one in said}
        counting = Epochs(said).counting
        self.beats: dict[tuple[str, int], dict[str, list[int]]] = defaultdict(lambda: {"nodes": [], "pods": []})
        for one in counting:
            if one.kind == "HEARTBEAT":
                self.beats[one.cluster, one.record.partition][one.record.topic].append(one.record.append_at_us)
        self._nodes: dict[tuple[str, str], list[HeardNode]] = {}
        self._pods: dict[tuple[str, str], dict[str, list[HeardPod]]] = {}
        for key, of_node in by_node(counting, (), partitions).items():
            self._nodes[key] = node_history(of_node.nodes, limits)
            self._pods[key] = {uid: one.states for uid, one in pod_histories(of_node.pods).pods.items()}

    def moments(self, it: DecisionRecord, came_us: int) -> Iterator[Moment]:
        """Give what may have been known of the pod and its node."""
        key = it.cluster, it.node
        nodes, pods = self._nodes.get(key, [HeardNode()]), self._pods.get(key, {}).get(it.pod_uid, [HeardPod()])
        for node, pod in itertools.product(self._latest(nodes, came_us), self._latest(pods, came_us)):
            yield Moment(node, pod)

    def _latest(self, states: Sequence[Any], came_us: int) -> Iterator[Any]:
        """Give the states that may have been known: of one millisecond all, as one was taken in after the other."""
        before = [one for one in states if one.append_at_us < came_us - self.lag_us]
        yield from before[-1:]
        yield from (one for one in states if came_us - self.lag_us <= one.append_at_us <= came_us)

    def is_heard_at(self, it: DecisionRecord, at_us: int, heard_us: int) -> bool:
        """Tell whether a feed may have been heard last then."""
        newest = self.heard_us(it.cluster, it.node, at_us)
        if not self.lag_us:
            return heard_us == newest
        beats = self.beats[it.cluster, place(f"{it.cluster}/{it.node}".encode(), self.partitions)]
        return newest is not None and heard_us <= newest and any(heard_us in found for found in beats.values())

    def heard_us(self, cluster: str, node: str, at_us: int) -> int | None:
        """Return the older of the newest heartbeats on both topics."""
        beats = self.beats.get((cluster, place(f"{cluster}/{node}".encode(), self.partitions)))
        if beats is None:
            return None
        newest = [max((beat for beat in found if beat <= at_us), default=0) for found in beats.values()]
        return min(newest) if any(newest) else None


class ToldEviction:
    """What was told of one eviction so far."""

    def __init__(self) -> None:
        self.deadline = ""
        self.came_us = 0
        self.attempts = 0
        self.not_before: int | None = None
        self.is_ended = False


class Truth:
    """Checks lines, those of one eviction in their order."""

    def __init__(self, inputs: Inputs, *, knows_states: bool = True) -> None:
        """Without `knows_states` nodes and pods are not compared: what is played changes them and is no record."""
        self._inputs = inputs
        self._knows_states = knows_states
        self._evictions: dict[tuple[str, str], ToldEviction] = defaultdict(ToldEviction)
        self.checked: defaultdict[str, int] = defaultdict(int)

    def check(self, decisions: Sequence[ToldDecision]) -> None:
        for told, line in zip(decisions, story(decisions), strict=True):
            try:
                self._check(told, line)
            except UntrueError as error:
                raise UntrueError(f"{line.at} {line.teller} {line.text!r}: {error}") from None

    def _check(self, told: ToldDecision, line: StoryLine) -> None:
        it, so_far = told.record, self._evictions[told.record.cluster, told.record.eviction_id]
        _hold(not so_far.is_ended, "the eviction had ended")
        if line.teller is Teller.PLAYED:
            _hold(it.cause.kind in ("Result", "Pod") and so_far.attempts > 0, "that is not played")
        else:
            self._check_cause(it)
        rest = line.text
        while rest:
            for name, (pattern, check) in SENTENCES.items():
                found = re.match(pattern + r"(?: |$)", rest)
                if found is not None:
                    self.checked[name] += 1
                    moments = [*self._inputs.moments(it, told.came_us)] if self._knows_states else None
                    check(Claim(self._inputs, told, so_far, moments), *found.groups())
                    rest = rest[found.end() :]
                    break
            else:
                raise UntrueError(f"no sentence is understood in {rest!r}")
        if it.deadline != so_far.deadline:
            so_far.deadline, so_far.came_us = it.deadline, told.came_us

    def _check_cause(self, it: DecisionRecord) -> None:
        """The instant of a line is that of a record of its kind, or of the clock."""
        if it.cause.kind in ("Timer", "CatchUp"):
            _hold(it.cause.topic is None, "a clock has no record")
            return
        one = self._inputs.at[it.cause.topic, it.cause.partition, it.cause.offset]  # type: ignore[index]
        _hold(one.at_us == instant_us(it.cause.at), "the record has another time")
        _hold(one.record.topic == f"{it.cause.kind.lower()}s", "the record is of another kind")
        _hold(one.cluster == it.cluster, "the record is of another cluster")


class Claim(NamedTuple):
    """What a sentence is held against; `moments` is None where what led to it was played."""

    inputs: Inputs
    told: ToldDecision
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


def _hold(holds: object, what: str) -> None:
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

    _hold(node == claim.told.record.node, "another node")
    claim.any(holds, "it was tolerated, or since another instant")


def _covers(claim: Claim, toleration: str, taint: str, node: str, seconds: str, since: str) -> None:
    def holds(one: Moment) -> bool:
        due = _decides(one, taint)
        return _is_in_use(one, toleration, taint, seconds) and due is not None and due.window_us == instant_us(since)

    _hold(node == claim.told.record.node, "another node")
    claim.any(holds, "another toleration, time or window")


def _covers_in_outage(claim: Claim, toleration: str, taint: str, node: str, seconds: str, outage: str) -> None:
    def holds(one: Moment) -> bool:
        due = _decides(one, taint)
        if due is None or one.node.outage_us != instant_us(outage):
            return False
        own_us = due.window_us + int(seconds) * SECOND_US
        arrived_us = next(found.since_us for found in one.node.taints if found.key == _taint(taint)[0])
        is_before = one.node.outage_us < arrived_us
        return _is_in_use(one, toleration, taint, seconds) and is_before and due.deadline_us < own_us

    _hold(node == claim.told.record.node, "another node")
    claim.any(holds, "another toleration, time or outage")


def _is_in_use(one: Moment, toleration: str, taint: str, seconds: str) -> bool:
    key, value = _taint(taint)
    there = next((found for found in one.node.taints if (found.key, found.value) == (key, value)), None)
    found = None if there is None else in_use(one.pod.tolerations, there)
    if found is None:
        return False
    text = found.get("key") or "of any key"
    if found.get("operator") in (None, "", "Equal") and found.get("key"):
        text += f"={found.get('value') or ''}"
    text += f":{found['effect']}" if found.get("effect") else ""
    return text == toleration and stay_us(found) == int(seconds) * SECOND_US


def _leaves_at(claim: Claim, deadline: str) -> None:
    claim.leaves(deadline)
    _hold(instant_us(deadline) > claim.at_us, "that was not ahead")


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
        _hold(cause.kind == "CatchUp", "it was no take-over")
        return
    one = claim.inputs.at[cause.topic, cause.partition, cause.offset]  # type: ignore[index]
    _hold(one.record.topic == f"{what}s", "the record is of another kind")


def _moves(claim: Claim, before: str, after: str, what: str) -> None:
    _hold(before == claim.so_far.deadline, "another deadline was told before")
    claim.leaves(after)
    cause = claim.told.record.cause
    _hold(cause.kind == "CatchUp" if what == TAKE_OVER else cause.topic == f"{what}s", "the cause is of another kind")


def _withdrawn(claim: Claim, deadline: str) -> None:
    _hold(claim.so_far.attempts > 0, "nothing was issued")
    claim.so_far.not_before = None
    _leaves_at(claim, deadline)


def _issued(claim: Claim, attempt: str | None, how: str) -> None:
    _attempted(claim, attempt or "1")
    _hold((attempt is None) == (claim.told.record.attempt == 1), "it is not the first attempt")
    deadline = claim.told.record.deadline
    if claim.told.record.due_cause is None:
        _hold(deadline == claim.so_far.deadline, "another deadline was told before")
    claim.leaves(deadline, "its deadline was another")
    known = re.search(rf" was known, which was at {Z}", how)
    owed_us = instant_us(deadline) if known is None else instant_us(known[1])
    if known is not None:
        _hold(owed_us > instant_us(deadline), "that was known in time")
    late_us = claim.at_us - owed_us
    number = re.match(rf"{SECONDS} s after its deadline", how)
    if number is None:
        _hold(how == "on time" if known is None else how.startswith("as soon as its deadline"), "how late is not said")
        _hold(late_us < SECOND_US, "it was late")
        return
    _hold(number[1] == f"{late_us / SECOND_US:.1f}" and late_us >= SECOND_US, "it was not so late")
    came_us = claim.told.came_us if claim.told.record.due_cause is not None else claim.so_far.came_us
    if how.endswith("as soon as that was decided"):
        _hold(claim.at_us - came_us < SECOND_US <= came_us - owed_us, "it was decided at another time")
    else:
        decided = re.search(rf"That was decided only at {Z}: from then on ", how)
        from_us = owed_us if decided is None else instant_us(decided[1])
        _hold(decided is None or came_us == from_us, "it was decided at another time")
        if claim.told.teller is Teller.RECORDED:
            _hold(how.endswith("a closed gate, a take-over or a backlog held it"), "no cause is told")
        else:
            _hold(how.endswith("its feed was silent") and _was_silent(claim, from_us), "its feed was not silent")


def _was_silent(claim: Claim, from_us: int) -> bool:
    it, silence_us = claim.told.record, claim.inputs.limits.feed_silence_us
    beats = claim.inputs.beats[it.cluster, place(f"{it.cluster}/{it.node}".encode(), claim.inputs.partitions)]
    instants = [from_us, *(beat - 1 for found in beats.values() for beat in found if from_us < beat <= claim.at_us)]
    heard = [claim.inputs.heard_us(it.cluster, it.node, at_us) for at_us in instants]
    return any(one is not None and one < at_us - silence_us for one, at_us in zip(heard, instants, strict=True))


def _attempted(claim: Claim, attempt: str) -> None:
    _hold(int(attempt) == claim.so_far.attempts + 1, "it is not the next attempt")
    claim.so_far.attempts += 1
    not_before = claim.so_far.not_before
    _hold(not_before is None or claim.at_us >= not_before, "a later time was told for it")
    claim.so_far.not_before = None


def _known(claim: Claim, seconds: str, heard: str) -> None:
    it = claim.told.record
    _hold(claim.inputs.is_heard_at(it, claim.at_us, instant_us(heard)), "it was heard at another time")
    _hold(seconds == f"{(claim.at_us - instant_us(heard)) / SECOND_US:.1f}", "it was not so old")
    _at_once(claim)


def _known_without_age(claim: Claim) -> None:
    it = claim.told.record
    _hold(claim.inputs.heard_us(it.cluster, it.node, claim.at_us) is None, "its feed was heard")
    _at_once(claim)


def _reports(claim: Claim, outcome: str, attempt: str, reason: str | None) -> None:
    it = claim.told.record
    _hold(int(attempt) == claim.so_far.attempts == it.attempt, "it is not of the newest attempt")
    claim.so_far.not_before = None
    if claim.told.teller is Teller.PLAYED:
        _hold(outcome in ("Succeeded", "Gone"), "that is not played")
        return
    one = claim.inputs.at["results", it.cause.partition, it.cause.offset].content  # type: ignore[index]
    known = one["outcome"], one["attempt"], one.get("reason") or None, one["evictionId"]
    _hold(known == (outcome, int(attempt), reason, it.eviction_id), "the result says something else")


def _next_attempt(claim: Claim, at: str) -> None:
    claim.so_far.not_before = instant_us(at)


def _cancelled(claim: Claim, how: str, seconds: str | None, attempt: str | None, why: str) -> None:
    early_us = instant_us(claim.told.record.deadline) - claim.at_us
    if attempt is not None:
        _hold(int(attempt) == claim.so_far.attempts > 0, "another attempt was the last")
    else:
        _hold(claim.so_far.attempts == 0 or claim.told.record.previous is not None, "it was issued")
        _hold(early_us < 0 if seconds is None else seconds == f"{early_us / SECOND_US:.1f}", "it was not so early")
    _ended(claim, why)


def _done(claim: Claim, why: str) -> None:
    _hold(claim.so_far.attempts > 0, "nothing was issued")
    _ended(claim, why)


def _ended(claim: Claim, why: str) -> None:
    claim.so_far.is_ended = True
    gone = re.fullmatch(r"the taint (\S+) is gone", why)
    tolerated = re.fullmatch(r"the pod tolerates the taint (\S+) for ever now", why)

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
    "the pod is gone": "PodGone",
    "another pod has its name": "PodReplaced",
    "the pod has finished": "PodFinished",
    "the pod is terminating": "PodTerminating",
    "it stands for a static pod": "PodMirror",
    "the node is gone": "NodeGone",
}


def _shadows(claim: Claim) -> None:
    def holds(one: Moment) -> bool:
        due = one.due
        if not isinstance(due, MustLeave):
            return False
        there = next(found for found in one.node.taints if found.key == due.taint)
        times = [stay_us(found) for found in one.pod.tolerations if in_use([found], there) is not None]
        return any(time != times[0] for time in times[1:])

    claim.any(holds, "no later toleration differs")


def _came(claim: Claim, at: str, seconds: str) -> None:
    _hold(instant_us(at) == claim.told.came_us, "it came at another time")
    _hold(seconds == f"{(claim.told.came_us - claim.at_us) / SECOND_US:.1f}", "it was not so late")


TAKE_OVER: Final = "a take-over, which decides everything anew"
COVERS: Final = r"The toleration (.+?) covers the taint (\S+) of (\S+) for (\d+) s"
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
        rf"It has to leave at once, because of (?:news of the )?(node|pod|{TAKE_OVER})\.",
        _at_once_because,
    ),
    "moves": (rf"Its deadline moves from {Z} to {Z}, because of (?:news of the )?(node|pod|{TAKE_OVER})\.", _moves),
    "withdrawn": (rf"What was issued is withdrawn; it has to leave at {Z}\.", _withdrawn),
    "issued": (r"The eviction is issued(?: anew, as attempt (\d+))?, ((?:[^.]|\.\d|\. That)+)\.", _issued),
    "attempt": (r"Attempt (\d+) is issued\.", _attempted),
    "known": (
        (
            rf"By what the service knew, up to {SECONDS} s old \(its feed's heartbeats of {Z}\), the pod is still there"
            r" and has to leave\."
        ),
        _known,
    ),
    "known without age": (
        r"By what the service knew, whose age is not recorded, the pod is still there and has to leave\.",
        _known_without_age,
    ),
    "reports": (r"The executor reports (\w+) of attempt (\d+)(?: \(([^)]*)\))?\.", _reports),
    "next attempt": (
        rf"Should nothing change, the next attempt comes at {Z} at the earliest\.",
        _next_attempt,
    ),
    "cancelled": (
        rf"The eviction is cancelled ({SECONDS} s before its deadline|after its deadline|after attempt (\d+)): (.+?)\.",
        _cancelled,
    ),
    "done": (r"The eviction is done: (.+?)\.", _done),
    "shadows": (
        r"A later toleration of the pod matches the taint with another time; the first one decides\.",
        _shadows,
    ),
    "came": (rf"This came at {Z}, {SECONDS} s later\.", _came),
}
