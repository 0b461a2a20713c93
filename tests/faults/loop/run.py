"""One run: some hundred steps of everybody in any order, then quiet, then the judgement."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import structlog

from evictstream.kit.demo.judgement import oracle_limits
from evictstream.kit.oracle import judge
from evictstream.models.instants import instant_text
from evictstream.streams.settings import Settings
from tests.faults.loop.cluster import Backup, ModelCluster
from tests.faults.loop.deletes import stays_us, wrong_delete
from tests.faults.loop.executor import ModelExecutor
from tests.faults.loop.feed import KINDS, ModelFeed, StateTopic
from tests.faults.loop.service import ModelPartition, Topics

SECOND_US = 1_000_000
STEPS = 150
BRAKES = 0.04
"""Chance that a step is preceded by one of a person who sets or releases a brake."""

QUIET_SECONDS = 1_800  # longer than the longest pause between repeats, 300 s, and a success's grace, several times
QUIET_STEP_SECONDS = 10
START_US = 1_700_000_000 * SECOND_US
NEVER_US = START_US


class LoopOutcome(NamedTuple):
    """What a run came to."""

    seed: int
    violations: tuple[str, ...]
    seen: Counter[str]


class Loop:
    """Everybody of one run."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.seen: Counter[str] = Counter()
        self.topics = Topics()
        self.cluster = ModelCluster(self.draw)
        self.states = StateTopic()
        self._set_time(START_US)
        for number in range(4):
            self.cluster.put("Node", f"n-{number}")
        self.feeds = [self._new_feed()]
        self.service = ModelPartition(self.topics)
        self.executors = [ModelExecutor(self.cluster, self.topics, self.draw)]
        self.backup: Backup | None = None
        self.braking = Random(f"brakes {seed}")
        self.cluster.before_write = self._look

    def _look(self) -> None:
        for feed in self.feeds:
            if feed.has_to_look():
                feed.begin()

    def _set_time(self, now_us: int) -> None:
        self.topics.now_us = self.cluster.now_us = now_us

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self._set_time(self.topics.now_us + int(seconds * SECOND_US))

    def _new_feed(self) -> ModelFeed:
        feed = ModelFeed(self.cluster, self.states, self.topics.send)
        feed.begin()
        return feed

    def step(self) -> None:
        """Let somebody do something."""
        draw = self.draw
        if self.braking.random() < BRAKES:
            self._brake()
        kinds = (
            ("cluster",) * 6 + ("feed",) * 5 + ("service",) * 8 + ("executor",) * 5 + ("time",) * 3 + ("trouble",) * 2
        )
        kind = draw.choice(kinds)
        if kind == "cluster":
            self.seen[f"cluster: {self.cluster.act()}"] += 1
        elif kind == "feed":
            self._step_feed(draw.choice(self.feeds))
        elif kind == "service":
            self._step_service()
        elif kind == "executor":
            self._step_executor(draw.choice(self.executors))
        elif kind == "time":
            self.pass_time(draw.choice((0.01, 0.5, 3, 20, 70)))
        else:
            self._trouble()

    def _step_feed(self, feed: ModelFeed) -> None:
        if feed.is_outdated():
            self.seen["feed: begins an epoch"] += 1
            feed.begin()
        what = self.draw.choice(("watch", "watch", "watch", "beat", "list", "list late", "send late"))
        if what == "watch":
            for kind in KINDS:
                feed.watch(kind, self.draw.choice((1, 3, 100)))
        elif what == "beat":
            feed.beat()
        elif what == "send late":
            feed.send_late()
        else:
            feed.list(self.draw.choice(KINDS), is_late=what == "list late")
        self.seen[f"feed: {what}"] += 1

    def _step_service(self) -> None:
        service = self.service
        what = self.draw.choice(("apply", "apply", "apply", "fire", "fire", "commit", "commit", "take over"))
        if what == "apply":
            service.apply(self.draw.choice(service.topics), self.draw.choice((1, 5, 1_000)))
        elif what == "fire":
            for topic in service.topics:
                service.apply(topic, 1_000)
            service.fire()
        elif what == "commit":
            service.commit()
        else:
            service.take_over()
        self.seen[f"service: {what}"] += 1

    def _step_executor(self, executor: ModelExecutor) -> None:
        what = self.draw.choice(("read", "read", "work", "work", "work", "raced", "report", "commit", "killed", "lost"))
        if what == "read":
            executor.read(self.draw.choice((1, 3, 100)))
        elif what in {"work", "raced", "lost"}:
            executor.work(is_raced=what == "raced", is_lost=what == "lost")
        elif what == "report":
            executor.report()
        elif what == "commit":
            executor.commit()
        else:
            executor.start()
        self.seen[f"executor: {what}"] += 1

    def _trouble(self) -> None:
        what = self.draw.choice(
            ("new feed", "second feed", "backup", "restore", "rebuild", "second executor", "observer")
        )
        if what == "new feed":
            self.feeds = [self._new_feed()]
        elif what == "second feed" and len(self.feeds) < 3:
            self.feeds.append(self._new_feed())
        elif what == "backup":
            self.backup = self.cluster.backup()
        elif what == "restore" and self.backup is not None:
            self.cluster.restore(self.backup)
        elif what == "rebuild" and self.draw.random() < 0.3:
            self.backup = None
            self.cluster.rebuild()
        elif what == "second executor" and sum(not one.observes for one in self.executors) < 2:
            self.executors.append(ModelExecutor(self.cluster, self.topics, self.draw))
        elif what == "observer" and not any(one.observes for one in self.executors):
            self.executors.append(ModelExecutor(self.cluster, self.topics, self.draw, observes=True))
        else:
            return
        self.seen[f"trouble: {what}"] += 1

    def _brake(self) -> None:
        """Let somebody set a brake, or release or remove one."""
        draw, now_us = self.braking, self.topics.now_us
        key = draw.choice(("b0", "b1"))
        standing = self.topics.known.standing.get(key)
        if standing is None or standing.brake.is_released:
            fields: dict[str, object] = {"spreadSeconds": draw.choice((0, 60, 600))}
            fields |= draw.choice(({}, {}, {"zones": ["a"]}, {"namespaces": ["other"]}))
            if draw.random() < 0.3:
                fields["endsAt"] = instant_text(now_us + draw.randrange(1, 600) * SECOND_US)
            what = "hold"
        elif draw.random() < 0.2:
            what, fields = "remove", {}
        else:
            what, fields = "release", {"releasedBy": "ben", "spreadSeconds": standing.brake.spread_seconds}
            if standing.brake.zones:
                fields["zones"] = list(standing.brake.zones)
        common = {"apiVersion": "evictstream.io/v1", "kind": "Brake", "id": key, "why": "w", "by": "anna"}
        value = json.dumps(common | {"heldAt": instant_text(now_us)} | fields).encode()
        self.topics.brake(key.encode(), None if what == "remove" else value)
        self.seen[f"brake: {what}"] += 1

    def quiet(self) -> None:
        """Let everybody do his work, and nothing else happen."""
        for key in self.topics.known.standing:
            self.topics.brake(key.encode(), None)
        self.feeds = self.feeds[:1]
        self.feeds[0].begin()  # what another feed has written late may be an object that is gone; a listing ends it
        for _ in range(0, QUIET_SECONDS, QUIET_STEP_SECONDS):
            self.pass_time(QUIET_STEP_SECONDS)
            for feed in self.feeds:
                if feed.is_outdated():
                    feed.begin()
                for kind in KINDS:
                    feed.watch(kind, -1)
                feed.beat()
            for topic in self.service.topics:
                while self.service.apply(topic, 1_000):
                    pass
            self.service.fire()
            self.service.commit()
            for executor in self.executors:
                executor.read(1_000)
                executor.report()
                for _ in range(30):
                    executor.work()
                executor.commit()

    def judge(self) -> Iterator[str]:
        """Compare with the cluster, and let the oracle judge what the service was told and has said."""
        limits = dataclasses.replace(
            oracle_limits(Settings()), feed_silence_us=NEVER_US
        )  # the gates are not played here
        found = judge(
            self.topics.inputs(),
            self.topics.messages,
            ended_at_us=self.topics.now_us,
            partitions=1,
            limits=limits,
            may_forget=True,
            brakes=self.topics.brakes,
        )
        yield from map(str, found)
        nodes, pods = self.service.table()
        held = {one["metadata"]["name"]: one["metadata"]["uid"] for one in self.cluster.of("Node")}
        if nodes != held:
            yield f"nodes differ: the service has {nodes}, the cluster {held}"
        on_nodes = dict[str, set[str]]()
        for pod in self.cluster.of("Pod"):
            on_nodes.setdefault(pod["spec"]["nodeName"], set()).add(pod["metadata"]["uid"])
        if pods != on_nodes:
            yield f"pods differ: the service has {pods}, the cluster {on_nodes}"
        for pod in self.cluster.of("Pod"):
            node = self.cluster.objects.get(("Node", pod["spec"]["nodeName"]))
            if node is not None and pod["status"]["phase"] == "Running" and stays_us(pod, node) is not None:
                yield f"{pod['metadata']['name']} is still there: {pod['spec']}, {node['spec']}"
        for deleted in self.cluster.deleted:
            yield from wrong_delete(deleted, self.cluster.first_tainted_us)


def run_loop(seed: int) -> LoopOutcome:
    """Run one seed."""
    loop = Loop(seed)
    for _ in range(STEPS):
        loop.step()
    loop.quiet()
    loop.seen["deletes"] = len(loop.cluster.deleted)
    return LoopOutcome(seed, tuple(loop.judge()), loop.seen)


def main() -> int:
    """Run many seeds; exit code 1 if one has failed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    seen, failed, began_at = Counter[str](), 0, time.monotonic()
    for seed in range(asked.seed, asked.seed + asked.runs):
        outcome = run_loop(seed)
        seen.update(outcome.seen)
        if outcome.violations:
            failed += 1
            print(f"seed {seed} failed; repeat it with: python -m tests.faults.loop.run --runs 1 --seed {seed}")
            for violation in outcome.violations[:5]:
                print(f"  {violation}")
    print(f"{asked.runs} runs, {failed} failed, {time.monotonic() - began_at:.0f} s")
    for what, count in sorted(seen.items()):
        print(f"  {what}: {count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
