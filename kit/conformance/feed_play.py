"""Plays the life of a cluster to a feed, on an API server that misbehaves, and records what it writes."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from typing import Final

from evictstream.kit.conformance.command_writer import COMMANDED_TAINT, TOLERATION, uid_of
from evictstream.kit.conformance.fake_cluster import FakeCluster
from evictstream.kit.conformance.feed_evidence import (
    DELAY_SECONDS,
    FEED_SILENT_SECONDS,
    QUIET_SECONDS,
    ExpectedObjects,
    FeedEvidence,
    FeedRecord,
    TopicObjects,
    UsedFields,
    used_fields,
)
from evictstream.kit.conformance.playground import Playground

NODES: Final = tuple(f"node-{number}" for number in range(6))

PODS_OF_A_NODE: Final = 100
"""Together more than a page of a list, which has 500 with most clients."""

SITUATION_SECONDS: Final = 30.0
"""For the topics to say what the cluster holds."""

LISTING_SECONDS: Final = 60.0
"""The same where the feed has to list; one that was killed may have to wait for its place in a group first."""

_HEARTBEAT_SECONDS: Final = 15.0
"""For a heartbeat on each topic: one is due each 10 s."""

_REFUSED_TIMES: Final = 1_000
"""A fault that lasts until it is taken away."""

_UNBOUND: Final = ("listed-without-a-node", "watched-without-a-node")
"""Pods that no node ever gets."""

BOUND_LATER: Final = "bound-later"


class FeedPlay:
    """One run."""

    def __init__(
        self,
        playground: Playground,
        *,
        situation_seconds: float = SITUATION_SECONDS,
        listing_seconds: float = LISTING_SECONDS,
        silent_seconds: float = FEED_SILENT_SECONDS,
    ) -> None:
        self._playground = playground
        self._situation_seconds = situation_seconds
        self._listing_seconds = listing_seconds
        self._api: FakeCluster = playground.api
        self._silent_seconds = silent_seconds
        self._records: list[FeedRecord] = []
        self._objects = TopicObjects()
        self._snapshots: dict[str, ExpectedObjects] = {}
        self._states = defaultdict[tuple[str, int], set[UsedFields]](set)
        self._taken = 0  # the newest version whose states are kept
        self._away: tuple[float, float] | None = None
        self._rebuilt_at: float | None = None
        self._silent_at: float | None = None

    def run(self) -> FeedEvidence:
        """Play all situations and return the evidence.

        Raises:
            EndSilentError: the feed shows nothing.
            BrokerError: Kafka cannot be used any more.
        """
        playground, api = self._playground, self._playground.api
        self._furnish()
        playground.start(lambda: bool(self._read()))
        playground.report("plays situations")
        self._look("listing", self._listing_seconds)
        playground.wait(self._have_all_heartbeats, _HEARTBEAT_SECONDS)
        self._change()
        self._look("changes", self._situation_seconds)
        for situation, fault in (
            ("cut", "cut"),
            ("half-line", "half"),
            ("garbage", "garbage"),
            ("error-event", "error"),
        ):
            api.trouble["watch pods"] = [fault]
            api.end_watches()
            self._pod(f"new-{situation}", NODES[0])
            playground.wait(lambda: not api.trouble["watch pods"], self._situation_seconds)
            self._look(situation, self._situation_seconds)
        self._forget()
        self._look("forgotten", self._listing_seconds)
        if playground.end is not None:
            self._go_away()
            self._look("away", self._listing_seconds)
        self._rebuild()
        self._look("rebuilt", self._listing_seconds)
        self._fall_silent()
        ended_at = time.time()
        process = playground.stop()
        return dataclasses.replace(self._evidence(), process=process, ended_at=ended_at)

    def _furnish(self) -> None:
        self._node(NODES[0], taints=[COMMANDED_TAINT], ready="Unknown")
        for name in NODES[1:]:
            self._node(name)
        for node in NODES:
            for number in range(PODS_OF_A_NODE):
                self._pod(f"{node}-{number}", node)
        self._pod(_UNBOUND[0], "")
        self._pod(BOUND_LATER, "")

    def _change(self) -> None:
        """Change what counts; each object ends in another state than the listing had."""
        first, second, third, *_ = NODES
        self._node(first)
        self._node(second, taints=[COMMANDED_TAINT], ready="False")
        self._node("node-new")
        self._api.remove("Node", NODES[-1])
        self._api.put("Pod", f"{first}-0", spec={"nodeName": first, "tolerations": [TOLERATION]})
        self._api.put("Pod", f"{first}-1", metadata={"deletionTimestamp": "2026-11-21T02:15:53Z"})
        self._api.put("Pod", f"{first}-2", status={"phase": "Succeeded"})
        self._api.remove("Pod", f"{first}-3")
        self._api.remove("Pod", f"{first}-4")
        self._pod(f"{first}-4", second, uid=uid_of("the same name on another node"))
        self._pod("new", third)
        self._pod(_UNBOUND[1], "")
        self._api.put("Pod", BOUND_LATER, spec={"nodeName": third})

    def _forget(self) -> None:
        """Let watches end, and let the API server forget what happens before they can be opened again."""
        api = self._playground.api
        for what in ("watch pods", "watch nodes"):
            api.trouble[what] = [500] * _REFUSED_TIMES
        api.end_watches()
        time.sleep(0.5)  # the watches that were open have ended by now
        api.remove("Pod", f"{NODES[1]}-0")
        api.remove("Node", "node-new")
        self._pod("new-forgotten", NODES[1])
        self._keep_states()
        api.forget_history()
        api.trouble = {}

    def _go_away(self) -> None:
        """Kill the feed; what vanishes meanwhile is in no event."""
        assert self._playground.end is not None  # noqa: S101 - the caller has looked
        self._playground.report("kills the feed and starts it again")
        killed_at = time.time()
        self._playground.end.kill()
        self._api.remove("Pod", f"{NODES[2]}-0")
        self._api.remove("Pod", f"{NODES[2]}-1")
        self._pod(f"{NODES[2]}-1", NODES[3], uid=uid_of("moved while the feed was away"))
        self._api.remove("Node", NODES[4])
        self._keep_states()
        self._api.forget_history()
        self._playground.end.start()
        self._away = killed_at, time.time()

    def _rebuild(self) -> None:
        """Restore the cluster from a backup: resource versions go back, one pod is missing, one has another state."""
        self._keep_states()
        before = {kind_name: item for kind_name, item in self._api.objects.items() if kind_name[1] != "new"}
        self._rebuilt_at = time.time()
        self._taken = 1
        self._api.rebuild()
        for (kind, name), item in before.items():
            parts = {part: value for part, value in item.items() if part != "metadata"}
            self._api.put(kind, name, uid=item["metadata"]["uid"], **parts)
        self._node(NODES[0], taints=[COMMANDED_TAINT])
        self._playground.api.end_watches()

    def _fall_silent(self) -> None:
        """Let the watch of pods stay open and say nothing, and wait until heartbeats have ended, or go on."""
        if not self._heartbeats():
            return
        # A feed that is quick at all else may have written no two without an interruption, which show its pace.
        self._playground.wait(lambda: len(self._heartbeats_since(self._rebuilt_at or 0.0)) > 1, 2 * _HEARTBEAT_SECONDS)
        self._playground.report(f"lets the watch of pods fall silent, for up to {self._silent_seconds:g} s")
        self._silent_at = time.time()
        self._playground.api.silent.add("pods")
        self._node(NODES[1])
        ends_at = self._silent_at + self._silent_seconds

        def is_shown() -> bool:
            heartbeats = self._heartbeats()
            has_ended = time.time() - max(one.at for one in heartbeats) > QUIET_SECONDS
            return has_ended or max(one.event_at for one in heartbeats) > ends_at

        self._playground.wait(is_shown, self._silent_seconds + DELAY_SECONDS + _HEARTBEAT_SECONDS)
        self._playground.api.silent.clear()

    def _heartbeats(self) -> list[FeedRecord]:
        return [one for one in self._read() if one.type == "HEARTBEAT" and one.kind == "Pod"]

    def _heartbeats_since(self, moment: float) -> list[FeedRecord]:
        return [one for one in self._heartbeats() if one.at > moment]

    def _have_all_heartbeats(self) -> bool:
        return {one.kind for one in self._read() if one.type == "HEARTBEAT"} == {"Node", "Pod"}

    def _look(self, situation: str, seconds: float) -> None:
        """Wait until the topics say what the cluster holds, and keep what that is."""
        expected = {
            item["metadata"]["uid"]: used_fields(kind, item)
            for (kind, _), item in self._api.objects.items()
            if kind == "Node" or item["spec"].get("nodeName")
        }

        def are_told() -> bool:
            self._read()
            return self._objects.objects == expected

        self._playground.wait(are_told, seconds)
        self._keep_states()
        self._snapshots[situation] = ExpectedObjects(records=len(self._records), objects=expected)

    def _read(self) -> list[FeedRecord]:
        for record in self._playground.recorder.records(len(self._records)):
            written = FeedRecord.of(record)
            self._records.append(written)
            self._objects.take(written)
        return self._records

    def _keep_states(self) -> None:
        """Keep what the API server has shown since the last time."""
        for change in self._api.changes_after(self._taken) or ():
            uid = change.object["metadata"]["uid"]
            self._states[uid, change.version].add(used_fields(change.kind, change.object))
        self._taken = self._api.version

    def _evidence(self) -> FeedEvidence:
        return FeedEvidence(
            records=tuple(self._read()),
            snapshots=self._snapshots,
            states=self._states,
            cluster_uid=self._api.uid,
            partitions=self._playground.settings.partitions,
            cached_lists=self._playground.api.cached_lists,
            away=self._away,
            rebuilt_at=self._rebuilt_at,
            silent_at=self._silent_at,
            silent_seconds=self._silent_seconds,
        )

    def _node(self, name: str, *, taints: list[dict[str, str]] | None = None, ready: str = "True") -> None:
        conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
        self._api.put("Node", name, uid=uid_of(name), spec={"taints": taints or []}, status={"conditions": conditions})

    def _pod(self, name: str, node: str, uid: str | None = None) -> None:
        spec = {"nodeName": node} if node else {}
        phase = "Running" if node else "Pending"
        self._api.put("Pod", name, uid=uid or uid_of(name), spec=spec, status={"phase": phase})
