"""A preview of a change is what the service decides once the change is there: shown by replaying both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.replay.cluster_tables import ClusterTables
from evictstream.kit.replay.replay import Replay
from evictstream.kit.rules.kubectl import TaintChanges
from evictstream.kit.what_if.change import NodeChoice, PlannedChange
from evictstream.kit.what_if.preview import PodFate, PodOutcome, Preview, leaves_us, preview
from evictstream.models.eviction import RuleParameters
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes import NOT_READY, UNREACHABLE, Taint
from evictstream.streams.settings import Settings
from tests.models.eviction.draws import lists_of_tolerations, readiness, taints
from tests.models.eviction.simple_model import SimpleTaint, SimpleToleration

Json = dict[str, Any]

SETTINGS = Settings.model_validate({"partitions": 1})
BEGIN_MS = 1_795_226_400_000
NOW_MS = BEGIN_MS + 100_500
"""Half a second beside every deadline, so that nothing falls due in the very instant of the change."""
LONG_SECONDS = 1_000.0
"""Behind every deadline that is drawn, and behind the longest wait before an attempt is repeated."""

instants = st.integers(0, 100).map(lambda second: BEGIN_MS + second * 1_000)


timed = st.tuples(
    *(
        st.builds(
            lambda seconds, key=key: SimpleToleration(key, "Exists", "", "NoExecute", seconds),
            st.sampled_from([None, 20, 60, 150, 300]),
        )
        for key in ("a", "b", NOT_READY, UNREACHABLE)
    )
).map(list)
"""All taints are tolerated, most of them for a time that may end before or behind the change."""


def taint_json(one: SimpleTaint) -> Json:
    return {"key": one.key, "value": one.value, "effect": one.effect}


def toleration_json(one: SimpleToleration) -> Json:
    found: Json = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    return found if one.seconds is None else found | {"tolerationSeconds": one.seconds}


class Log:
    """Records of one partition of topics, with versions that grow."""

    def __init__(self) -> None:
        self.records: list[RecordedRecord] = []

    def add(self, at_ms: int, kind: str, node: str, object_: Json, change: str = "MODIFIED") -> None:
        metadata = object_["metadata"]
        assert isinstance(metadata, dict)
        metadata["resourceVersion"] = str(len(self.records) + 1)
        role: Role = "nodes" if kind == "Node" else "pods"
        event = {
            "cluster": "lab",
            "type": change,
            "observedAt": instant_text(at_ms * 1_000),
            "object": {"kind": kind, "apiVersion": "v1", **object_},
        }
        self.records.append(
            RecordedRecord(
                topic=role,
                partition=0,
                offset=len(self.records),
                timestamp=at_ms,
                key=b"lab",
                value=json.dumps(event).encode(),
            )
        )

    def node(self, at_ms: int, name: str, taints_: Iterable[Json], ready: str | None) -> None:
        conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
        self.add(
            at_ms,
            "Node",
            name,
            {
                "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}},
                "spec": {"taints": list(taints_)},
                "status": {"conditions": conditions},
            },
        )

    def pod(self, at_ms: int, name: str, node: str, tolerations: Iterable[Json], phase: str) -> None:
        self.add(
            at_ms,
            "Pod",
            node,
            {
                "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "labels": {"app": name}},
                "spec": {"nodeName": node, "tolerations": list(tolerations), "containers": []},
                "status": {"phase": phase},
            },
        )


class Story:
    """What has happened until now, and the newest state of all objects."""

    def __init__(self, data: st.DataObject) -> None:
        self.log = Log()
        self.taints: dict[str, list[Json]] = {}
        self.ready: dict[str, str | None] = {}
        self.pods: dict[str, tuple[str, list[Json], str]] = {}
        for node in ("n-1", "n-2"):
            self._node(data, BEGIN_MS, node)
            for name in ("web", "db", "job"):
                self._pod(data, BEGIN_MS, f"{name}-{node}", node)
        for at_ms in sorted(data.draw(st.lists(instants, max_size=6))):
            node = data.draw(st.sampled_from(["n-1", "n-2"]))
            if data.draw(st.booleans()):
                self._node(data, at_ms, node)
            else:
                self._pod(data, at_ms, f"{data.draw(st.sampled_from(['web', 'late']))}-{node}", node)

    def _node(self, data: st.DataObject, at_ms: int, name: str) -> None:
        found = data.draw(st.lists(taints, max_size=3, unique_by=lambda one: (one.key, one.effect)))
        self.taints[name] = [taint_json(one) for one in found]
        self.ready[name] = data.draw(readiness)
        self.log.node(at_ms, name, self.taints[name], self.ready[name])

    def _pod(self, data: st.DataObject, at_ms: int, name: str, node: str) -> None:
        tolerations = data.draw(st.one_of(lists_of_tolerations, timed))
        phase = data.draw(st.sampled_from(["Running", "Running", "Running", "Succeeded"]))
        if name in self.pods and self.pods[name][2] == "Succeeded":
            phase = "Succeeded"  # for good, as in Kubernetes
        self.pods[name] = node, [toleration_json(one) for one in tolerations], phase
        self.log.pod(at_ms, name, *self.pods[name])

    def change(self, planned: PlannedChange, chosen: Iterable[str]) -> None:
        """Write what the API server would show once the change was made."""
        added = [{"key": one.key, "value": one.value, "effect": one.effect} for one in planned.taints.add]
        removed = {one.key for one in planned.taints.remove}
        new = {(one["key"], one["effect"]) for one in added}
        for name, (node, tolerations, phase) in self.pods.items():
            if node in chosen and planned.toleration_seconds:
                edited = [
                    one | {"tolerationSeconds": planned.toleration_seconds[str(one["key"])]}
                    if one["key"] in planned.toleration_seconds and "tolerationSeconds" in one
                    else one
                    for one in tolerations
                ]
                self.log.pod(NOW_MS, name, node, edited, phase)
        for node in chosen:
            if planned.changes_nodes:
                kept = [one for one in self.taints[node] if (one["key"], one["effect"]) not in new]
                after = [one for one in (*added, *kept) if one["key"] not in removed]
                self.log.node(NOW_MS, node, after, self.ready[node])


def evictions(records: Iterable[RecordedRecord]) -> dict[str, list[tuple[int, str]]]:
    """Return times and actions of the commands by pod."""
    run = Replay(SETTINGS, partitions=1, plays_executor=False)
    found: dict[str, list[tuple[int, str]]] = {}
    for message in (*run.run(records), *run.run_on(LONG_SECONDS)):
        if message.topic == "commands":
            command = json.loads(message.value)
            found.setdefault(command["podUid"], []).append((message.at_us, command["action"]))
    return found


def agrees(found: Preview, outcome: PodOutcome, commands: list[tuple[int, str]]) -> bool:
    """Tell whether commands are what was foreseen. Nobody answers, so what is open is repeated forever."""
    now_us = NOW_MS * 1_000
    later = [at_us for at_us, action in commands if action == "Evict" and at_us > now_us]
    match found.fate(outcome):
        case PodFate.STAYS:
            return not later
        case PodFate.LATER:
            return later[:1] == [leaves_us(outcome.after, now_us)]
        case PodFate.AT_ONCE:
            actions = [action for at_us, action in commands if at_us <= now_us]
            return bool(later) and actions[-1:] == ["Evict"]


planned_taints = st.builds(
    Taint,
    st.sampled_from(["a", "b", UNREACHABLE]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["NoExecute", "NoExecute", "NoSchedule"]),
)
changes = st.builds(
    lambda add, remove, seconds: PlannedChange(
        taints=TaintChanges(
            tuple({(one.key, one.effect): one for one in add}.values()),
            tuple(Taint(key) for key in remove if key not in {one.key for one in add}),
        ),
        toleration_seconds=seconds,
    ),
    st.lists(planned_taints, max_size=2),
    st.lists(st.sampled_from(["a", "b", NOT_READY, UNREACHABLE]), max_size=1),
    st.dictionaries(st.sampled_from(["a", "b", UNREACHABLE]), st.sampled_from([0, 40, 200, 500]), max_size=2),
)


@pytest.mark.parametrize("examples", [40, pytest.param(200, marks=pytest.mark.kit)])
def test_a_preview_is_what_the_service_decides(examples: int) -> None:
    chosen = st.sampled_from([("n-1",), ("n-2",), ("n-1", "n-2")])
    drawn = given(st.data(), changes, chosen)(_a_preview_is_what_the_service_decides)
    hypothesis_settings(deadline=None, max_examples=examples)(drawn)()


def _a_preview_is_what_the_service_decides(
    data: st.DataObject, planned: PlannedChange, chosen: tuple[str, ...]
) -> None:
    story = Story(data)
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(story.log.records)
    choice = NodeChoice(names=frozenset(chosen))
    found = preview(tables.cluster("lab"), planned, choice, at_us=NOW_MS * 1_000, rules=RuleParameters())
    assert {one.uid for one in found.outcomes} == {
        f"uid-{name}" for name, (node, *_) in story.pods.items() if node in chosen
    }
    story.change(planned, chosen)
    commands = evictions(story.log.records)
    for outcome in found.outcomes:
        assert agrees(found, outcome, commands.get(outcome.uid, [])), (outcome, commands.get(outcome.uid))
