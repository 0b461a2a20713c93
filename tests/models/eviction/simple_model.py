"""The rules once more, written from the prose of semantics.md alone: slow, naive and with other means.

Shares no code with `models`. Windows are stored per pod and taint, opened and closed as the prose says; every event
decides for every pod; times are seconds and each event happens "now". What is untolerated has no deadline: it is due.

A step returns the commands that have to follow, as (action, pod UID, deadline or verdict).
"""

from __future__ import annotations

from dataclasses import dataclass, field

HEALTH = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
LAST = 253_402_300_799.999_999  # the end of year 9999
NOW = "now"
NEVER = "never"

Command = tuple[str, str, float | str]


@dataclass(frozen=True)
class SimpleTaint:
    key: str
    value: str
    effect: str
    added: int | None = None


@dataclass(frozen=True)
class SimpleToleration:
    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None


@dataclass
class SimpleEviction:
    state: str  # scheduled, issued, done
    due: float | str  # a time, or NOW
    announced: bool = False
    attempt: int = 0
    ask_again: tuple[float, float] = (0, 0)  # the next attempt is between these
    reported: str = ""
    issued: float = 0  # the newest attempt
    kept: float = 0  # a report has said that it waits until then, at most
    observed: bool = False  # the newest attempt, by an executor that does not act


@dataclass
class SimplePod:
    uid: str
    name: str
    version: int
    tolerations: list[SimpleToleration]
    seen: float
    special: str = ""  # why it is left alone
    windows: dict[str, float] = field(default_factory=dict)
    eviction: SimpleEviction | None = None


@dataclass
class SimpleNode:
    uid: str
    version: int
    taints: list[SimpleTaint] = field(default_factory=list)
    added: dict[str, int] = field(default_factory=dict)  # timeAdded as last seen, by key
    arrived: dict[str, float] = field(default_factory=dict)  # when the taint came, by key
    came: dict[str, float] = field(default_factory=dict)  # when its value came, by key, if later than the taint
    outage: float | None = None
    gap: float | None = None


class SimpleModel:
    """One node and its pods."""

    def __init__(self, *, compare: bool) -> None:
        self.compare = compare
        self.node: SimpleNode | None = None
        self.pods: dict[str, SimplePod] = {}
        self.dead: dict[str, tuple[int, float]] = {}  # UID of a pod or node: its version, and until when it counts
        self.queue: tuple[float, float] | None = None  # reported when, issued until when

    # ---------------------------------------------------------------- 12.3, the events

    def see_node(
        self, now: float, uid: str, version: int, taints: list[SimpleTaint], ready: str | None
    ) -> list[Command]:
        if uid in self.dead and version <= self.dead[uid][0]:
            return []
        commands: list[Command] = []
        if self.node is not None and self.node.uid != uid:
            if version <= self.node.version:
                return []
            commands += self.lose_node(now, self.node.uid, version)
        if self.node is None:
            self.dead.pop(uid, None)
            self.node = SimpleNode(uid, 0)
        if version <= self.node.version:
            return commands
        self.node.version = version
        self._update_windows(now, taints)
        self._update_outage(now, taints, ready)
        return commands + self._decide_all(now)

    def lose_node(self, now: float, uid: str, version: int) -> list[Command]:
        known = self.node is not None and self.node.uid == uid
        if known and self.node is not None and version < self.node.version:
            return []
        if known or uid not in self.dead or self.dead[uid][0] < version:
            self._bury(uid, version, now)
        if not known:
            return []
        self.node = None
        for pod in self.pods.values():
            pod.windows.clear()
        return self._decide_all(now)

    def see_pod(
        self, now: float, uid: str, name: str, version: int, tolerations: list[SimpleToleration], special: str
    ) -> list[Command]:
        if uid in self.dead and version <= self.dead[uid][0]:
            return []
        commands: list[Command] = []
        if uid not in self.pods:
            for other in list(self.pods.values()):
                if other.name == name:
                    if version <= other.version:
                        return []
                    commands += self._remove(other, now, version, "PodReplaced")
            self.dead.pop(uid, None)
            self.pods[uid] = SimplePod(uid, name, 0, [], now)
        pod = self.pods[uid]
        if version <= pod.version:
            return commands
        pod.version, pod.tolerations, pod.special = version, tolerations, special
        self._open_windows(now)
        return commands + self._decide_all(now)

    def lose_pod(self, now: float, uid: str, version: int) -> list[Command]:
        pod = self.pods.get(uid)
        if pod is None:
            if uid not in self.dead or self.dead[uid][0] < version:
                self._bury(uid, version, now)
            return []
        if version < pod.version:
            return []
        return self._remove(pod, now, version, "PodGone")

    def purge(self, now: float) -> None:
        self.dead = {uid: (version, until) for uid, (version, until) in self.dead.items() if until > now}

    def _bury(self, uid: str, version: int, now: float) -> None:
        until = max(now + 3600, self.dead[uid][1] if uid in self.dead else 0)
        self.dead[uid] = (version, until)

    def _remove(self, pod: SimplePod, now: float, version: int, verdict: str) -> list[Command]:
        del self.pods[pod.uid]
        self._bury(pod.uid, version, now)
        eviction = pod.eviction
        if eviction is not None and eviction.state == "scheduled" and eviction.announced:
            return [("Cancel", pod.uid, verdict)]
        return []

    # ---------------------------------------------------------------- 12.4, windows and outage

    def _update_windows(self, now: float, taints: list[SimpleTaint]) -> None:
        assert self.node is not None
        present = [taint for taint in taints if taint.effect == "NoExecute"]
        keys = {taint.key for taint in present}
        old = {taint.key: taint.value for taint in self.node.taints}
        self.node.came = {key: came for key, came in self.node.came.items() if key in keys}
        self.node.arrived = {key: self.node.arrived.get(key, now) for key in keys}
        for taint in present:
            if taint.key in old and taint.value != old[taint.key] and now > self.node.arrived[taint.key]:
                self.node.came[taint.key] = now
            before = self.node.added.get(taint.key)
            if taint.added is not None:
                if before is not None and taint.added > before:
                    self.node.came.pop(taint.key, None)
                    self.node.arrived[taint.key] = now
                    for pod in self.pods.values():
                        pod.windows.pop(taint.key, None)
                self.node.added[taint.key] = taint.added
        for pod in self.pods.values():
            pod.windows = {key: start for key, start in pod.windows.items() if key in keys}
        self.node.added = {key: added for key, added in self.node.added.items() if key in keys}
        self.node.taints = present
        self._open_windows(now)

    def _open_windows(self, now: float) -> None:
        for pod in self.pods.values():
            for taint in self.node.taints if self.node is not None else []:
                pod.windows.setdefault(taint.key, now)

    def _update_outage(self, now: float, taints: list[SimpleTaint], ready: str | None) -> None:
        assert self.node is not None
        node = self.node
        unhealthy = any(taint.key in HEALTH and taint.effect == "NoExecute" for taint in taints)
        if node.gap is not None and now - node.gap > 5:
            node.outage = node.gap = None
        if unhealthy:
            node.gap = None
            if node.outage is None:
                node.outage = now
        elif node.outage is not None:
            if ready is None or ready == "True":
                node.outage = node.gap = None
            elif node.gap is None:
                node.gap = now

    # ---------------------------------------------------------------- 3, 4 and 12.5, the decision

    def _covers(self, toleration: SimpleToleration, taint: SimpleTaint) -> bool:
        same_effect = toleration.effect in ("", taint.effect)
        same_key = toleration.key in ("", taint.key)
        by_operator = {
            "": toleration.value == taint.value,
            "Equal": toleration.value == taint.value,
            "Exists": True,
            "Gt": self.compare and self._less(toleration.value, taint.value),
            "Lt": self.compare and self._less(taint.value, toleration.value),
        }
        return same_effect and same_key and by_operator.get(toleration.operator, False)

    @staticmethod
    def _less(left: str, right: str) -> bool:
        for text in (left, right):
            try:
                if str(int(text)) != text:
                    return False
            except ValueError:
                return False
        return int(left) < int(right)

    def _seconds(self, pod: SimplePod, taint: SimpleTaint) -> float | str:
        """Seconds of the toleration in use; NEVER runs out without them; NOW if there is none."""
        for toleration in pod.tolerations:
            if self._covers(toleration, taint):
                return NEVER if toleration.seconds is None else max(0, toleration.seconds)
        return NOW

    def _value_came(self, pod: SimplePod, taint: SimpleTaint) -> float | None:
        """When the value of a taint changed, if the toleration in use or one before it looks at the value."""
        assert self.node is not None
        for toleration in pod.tolerations:
            if toleration.effect in ("", taint.effect) and toleration.key in ("", taint.key):
                if toleration.operator in (("", "Equal", "Gt", "Lt") if self.compare else ("", "Equal")):
                    return self.node.came.get(taint.key)
                if self._covers(toleration, taint):
                    return None
        return None

    def decide(self, pod: SimplePod) -> float | str:
        """NOW, NEVER or a time."""
        if pod.special or self.node is None:
            return NEVER
        times: list[float] = []
        for taint in self.node.taints:
            seconds = self._seconds(pod, taint)
            if seconds == NOW:
                return NOW
            if seconds == NEVER:
                continue
            assert not isinstance(seconds, str)
            came = self._value_came(pod, taint)
            time = max(pod.windows[taint.key], came or 0) + seconds
            if taint.key in HEALTH and came is None:
                time = min([time, *self._bound(pod, taint, seconds)])
            if time <= LAST:
                times.append(time)
        return min(times, default=NEVER)

    def _bound(self, pod: SimplePod, taint: SimpleTaint, seconds: float) -> list[float]:
        assert self.node is not None
        assert self.node.outage is not None
        key = HEALTH[1 - HEALTH.index(taint.key)]
        others = [other for other in self.node.taints if other.key == key] or [SimpleTaint(key, "", "NoExecute")]
        other = self._seconds(pod, others[0])
        if other == NEVER or self._value_came(pod, others[0]) is not None:
            return []
        largest = seconds if isinstance(other, str) else max(seconds, other)
        return [max(self.node.outage, pod.seen) + largest]

    # ---------------------------------------------------------------- 12.6, the action

    def _decide_all(self, now: float) -> list[Command]:
        return [command for pod in self.pods.values() for command in self._act(pod, now)]

    def _act(self, pod: SimplePod, now: float) -> list[Command]:
        due = self.decide(pod)
        eviction = pod.eviction
        if eviction is not None and eviction.state == "done":
            return []
        if due == NEVER:
            return self._end(pod)
        ahead = not isinstance(due, str) and due > now
        if eviction is None:
            pod.eviction = SimpleEviction("scheduled", due, announced=ahead)
            return [("Schedule", pod.uid, due)] if ahead else []
        if eviction.state == "issued" and not ahead:
            return []
        moved = due != eviction.due or eviction.state == "issued"
        eviction.state, eviction.due = "scheduled", due
        if not (moved and ahead):
            return []
        eviction.announced = True
        return [("Schedule", pod.uid, due)]

    def _end(self, pod: SimplePod) -> list[Command]:
        eviction = pod.eviction
        if eviction is None:
            return []
        if eviction.state == "issued" and pod.special in ("PodTerminating", "PodFinished"):
            eviction.state = "done"
            return []
        pod.eviction = None
        if eviction.state == "scheduled" and not eviction.announced:
            return []
        return [("Cancel", pod.uid, self._why_not(pod))]

    def _why_not(self, pod: SimplePod) -> str:
        if pod.special:
            return pod.special
        if self.node is None:
            return "NodeGone"
        return "TaintRemoved or Tolerated" if self.node.taints else "TaintRemoved"

    # ---------------------------------------------------------------- 12.8, attempts

    def must_fire(self, now: float, uid: str) -> tuple[bool, bool]:
        """Tell whether an attempt may be issued now, and whether it has to be."""
        pod = self.pods.get(uid)
        eviction = pod.eviction if pod is not None else None
        if pod is None or eviction is None or eviction.state == "done":
            return False, False
        due = self.decide(pod)
        reached = due == NOW or (not isinstance(due, str) and due <= now)
        if eviction.state == "scheduled":
            return reached, reached
        if eviction.observed and not eviction.reported and (self.queue is None or self.queue[0] <= eviction.issued):
            return False, False
        earliest, latest = eviction.ask_again
        held = self._held(eviction)
        return reached and now >= max(earliest, held), reached and now >= max(latest, held, eviction.kept)

    def _held(self, eviction: SimpleEviction) -> float:
        """Until when the newest report says that the newest attempt waits."""
        if self.queue is None or eviction.state != "issued" or eviction.reported not in ("", "Accepted"):
            return 0
        reported, last = self.queue
        return min(reported + 30, eviction.issued + 900) if eviction.issued <= last else 0

    def report_queue(self, now: float, last: float) -> None:
        """Note what an executor reports of its queue."""
        self.queue = (now, last)
        for pod in self.pods.values():
            if pod.eviction is not None:
                pod.eviction.kept = max(pod.eviction.kept, self._held(pod.eviction))

    def fired(self, now: float, uid: str) -> int:
        """Note that an attempt was issued; gives its number."""
        eviction = self.pods[uid].eviction
        assert eviction is not None
        eviction.state = "issued"
        eviction.attempt += 1
        eviction.reported = ""
        eviction.issued = now
        eviction.kept = 0
        eviction.observed = False
        longest = min(30 * 2 ** (eviction.attempt - 1), 300)
        eviction.ask_again = (now + 0.89 * longest, now + longest)
        return eviction.attempt

    def report(self, now: float, uid: str, attempt: int, outcome: str) -> None:
        """Note a result of the current eviction of a pod; `Observed` is no answer."""
        eviction = self.pods[uid].eviction if uid in self.pods else None
        if eviction is None or eviction.state != "issued" or attempt != eviction.attempt:
            return
        if outcome == "Observed":
            eviction.observed = True
            return
        success = outcome in ("Succeeded", "Gone")
        is_open = eviction.reported in ("", "Accepted", "Held")
        if eviction.reported in ("Succeeded", "Gone") or (not is_open and not success):
            return
        held = min(now + 60, eviction.issued + 900)
        if outcome == eviction.reported == "Accepted" and held <= eviction.ask_again[0]:
            return
        eviction.reported = outcome
        if outcome == "Accepted":
            eviction.ask_again = (held, held)
        elif outcome == "Held":  # by a brake that is not there any more, as there is none here
            eviction.ask_again = (now + 5, now + 5)
        elif success:
            eviction.ask_again = (now + 120, now + 120)
        else:
            longest = min(2.0 ** (attempt - 1), 300)
            eviction.ask_again = (now + 0.89 * longest, now + longest)
