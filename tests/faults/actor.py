"""The executor and the cluster behind it: answers commands, lets pods terminate and go, and brings replacements.

Pure: the caller has the clock and the topics. It shows every planned change to `ClusterActor.admit` right before
it appends it, gives every `Evict` to `ClusterActor.on_command`, and appends what comes back at the times given
(or as soon after as it can). The UID is the precondition of a delete. Deletes fail, answers get lost, come twice or
late, and some pods take their time to go.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping

from tests.faults.moved_seconds import moved
from tests.faults.objects import Json, Pod, instant, report, result, watch_event
from tests.faults.plan import Change, Plan
from tests.faults.scribe import version_at
from tests.faults.stories import draw_tolerations

SECOND_US = 1_000_000
MILLISECOND_US = 1000
REPLACEMENTS = 2  # pods that follow one name after an eviction; then its owner gives up


class ClusterActor:
    """What a plan's clusters do in answer to commands."""

    def __init__(self, plan: Plan) -> None:
        """Know nothing of the fleet yet."""
        self._plan = plan
        self._pods: dict[str, Json] = {}
        self._deleting: set[str] = set()
        self._gone: set[str] = set()
        self._births: dict[str, int] = {}

    def admit(self, change: Change) -> bool:
        """Take in a planned change; `False` if it does not happen, because the pod was deleted here before."""
        if change.topic != "pods" or change.value is None:
            return True
        try:
            event = json.loads(change.value)
            meta = event["object"]["metadata"]
            uid, kind = meta["uid"], event["type"]
        except (ValueError, KeyError, TypeError):
            return True  # garbage always gets through
        if uid in self._deleting or uid in self._gone:
            return False
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._gone.add(uid)
        else:
            known = self._pods.get(uid)
            if known is None or _version(known) <= int(meta["resourceVersion"]):
                self._pods[uid] = event
        return True

    def on_command(self, command: Mapping[str, object], at_us: int, held_by: str | None = None) -> list[Change]:
        """Answer a command that was read at `at_us`; anything but `Evict` needs no answer.

        `held_by` is the brake that holds it, if the executor knows one.
        """
        if command["action"] != "Evict":
            return []
        chance = random.Random(f"{self._plan.seed}/{command['evictionId']}/{command['attempt']}")
        took_us = chance.randrange(1, 300) * MILLISECOND_US
        draw = chance.random()
        if held_by is not None and draw < 0.9:
            key = str(command["cluster"]).encode()
            return [Change(at_us + took_us, "results", key, result(command, "Accepted", held_by=held_by))]
        if draw < 0.15:
            return self._answer(command, chance, "Failed", at_us + took_us)
        if draw < 0.18:
            return self._answer(command, chance, chance.choice(["Refused", "Obsolete"]), at_us + took_us)
        if draw < 0.20:
            return self._observe(command, chance, at_us + took_us)
        if draw < 0.27:
            return self._queue(command, chance, at_us + took_us)  # the executor has lost it
        uid = str(command["podUid"])
        event = self._pods.get(uid)
        if event is None:
            return self._answer(command, chance, "Gone", at_us + took_us)
        answers = [] if draw < 0.34 else self._answer(command, chance, "Succeeded", at_us + took_us)
        if uid not in self._deleting and draw < 0.95:  # else the delete is accepted, and nothing comes of it
            answers += self._delete(event, chance, at_us + took_us)
        return answers

    def _answer(self, command: Mapping[str, object], chance: random.Random, outcome: str, at_us: int) -> list[Change]:
        observed_at_us = at_us if chance.random() < 0.8 else None
        key = str(command["cluster"]).encode()
        answer = Change(at_us, "results", key, result(command, outcome, observed_at_us, reason="played"))
        if chance.random() < 0.1:
            later = Change(at_us + chance.randrange(3 * SECOND_US), "results", key, answer.value)
            return [answer, later]
        if outcome == "Failed" and chance.random() < 0.1:  # an executor that runs an attempt twice
            second = result(command, "Succeeded", observed_at_us, reason="played")
            return [answer, Change(at_us + 100 * MILLISECOND_US, "results", key, second)]
        return [answer]

    def _observe(self, command: Mapping[str, object], chance: random.Random, at_us: int) -> list[Change]:
        """Only observe it; later one that acts begins, reports, and has not read it."""
        cluster = str(command["cluster"])
        began_at_us = at_us + chance.randrange(3 * SECOND_US)
        begun = Change(began_at_us, "results", cluster.encode(), report(cluster, instant(0)))
        return [*self._answer(command, chance, "Observed", at_us), begun]

    def _queue(self, command: Mapping[str, object], chance: random.Random, at_us: int) -> list[Change]:
        """Report of some of the attempts that get no answer that they wait."""
        if chance.random() < 0.5:
            return []
        cluster = str(command["cluster"])
        return [Change(at_us, "results", cluster.encode(), report(cluster, str(command["issuedAt"])))]

    def _delete(self, event: Json, chance: random.Random, at_us: int) -> list[Change]:
        uid = _uid(event)
        self._deleting.add(uid)
        gone_at_us = at_us + chance.choice([200, 900, 2500]) * MILLISECOND_US
        later = [] if chance.random() < 0.1 else [self._change(event, "MODIFIED", at_us, at_us)]
        if chance.random() < 0.9:
            later.append(self._change(event, "DELETED", gone_at_us, at_us))
        if chance.random() < 0.5:
            later += self._replace(event, chance, gone_at_us + 50 * MILLISECOND_US)
        self._pods[uid] = event
        return later

    def _change(self, event: Json, kind: str, at_us: int, deleted_at_us: int) -> Change:
        """Give the pod's next watch event."""
        shown = copy.deepcopy(event["object"])
        assert isinstance(shown, dict)
        version = max(version_at(self._plan.start_at_us, at_us), _version(event) + 1 + (kind == "DELETED"))
        shown["metadata"]["resourceVersion"] = str(version)
        shown["metadata"].setdefault("deletionTimestamp", instant(deleted_at_us // SECOND_US * SECOND_US))
        cluster = str(event["cluster"])
        key = cluster.encode()
        return Change(at_us, "pods", key, watch_event(cluster, kind, shown, at_us))

    def _replace(self, event: Json, chance: random.Random, at_us: int) -> list[Change]:
        """Let the pod's owner make another one under the same name, on the same node."""
        shown = event["object"]
        assert isinstance(shown, dict)
        meta, cluster = shown["metadata"], str(event["cluster"])
        name = f"{cluster}/{meta['namespace']}/{meta['name']}"
        self._births[name] = self._births.get(name, 0) + 1
        if self._births[name] > REPLACEMENTS:
            return []
        pod = Pod(
            cluster,
            meta["namespace"],
            meta["name"],
            f"{_uid(event)}~{self._births[name]}",
            shown["spec"].get("nodeName", ""),
            draw_tolerations(chance, self._plan.shape.largest_window_seconds),
            moved_by=moved,
        )
        if "ownerReferences" in meta:
            pod.owner = "".join(one["name"] for one in meta["ownerReferences"])
        version = max(version_at(self._plan.start_at_us, at_us), _version(event) + 3)
        added = watch_event(cluster, "ADDED", pod.shown(version), at_us)
        self._pods[pod.uid] = json.loads(added)
        return [Change(at_us, "pods", pod.key, added)]


def _uid(event: Json) -> str:
    shown = event["object"]
    assert isinstance(shown, dict)
    return str(shown["metadata"]["uid"])


def _version(event: Json) -> int:
    shown = event["object"]
    assert isinstance(shown, dict)
    return int(shown["metadata"]["resourceVersion"])
