"""The last release beside brakes: what they add to results, decisions and rows breaks none of its readers."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.other_version import last_release, version_of
from tests.streams.partition.test_held import PODS, Braked
from tests.streams.worker.story import NOON_US, SECOND_US

HELD_AT, REPEATED_AT = 20, 20 + 61
"""A worker that knows no brakes takes `Held` for `Accepted`: no repeat for 60 s."""

BEFORE = """
import base64, collections, json, sys
from evictstream.models.messages.decision import decode_decision
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.harness.plans import one_partition
from tests.streams.worker.story import FakeRecord

told = json.load(sys.stdin)
logic, outbox = EvictionPartition(0, one_partition(lambda: told["held_us"])), Outbox()
for key, value in told["rows"]:
    logic.load(base64.b64decode(key), base64.b64decode(value))
logic.loaded()
for number, value in enumerate(told["results"]):
    record = FakeRecord(number, told["held_us"] // 1000, b"held", value.encode())
    collections.deque(logic.apply("results", [record], outbox), maxlen=0)
evicts = []
for at_us in told["fire_us"]:
    logic.fire(at_us, 1000, outbox)
    commands = [json.loads(message.value) for message in outbox.messages.get("commands", ())]
    evicts.append(sum(one["action"] == "Evict" and one["cluster"] == "held" for one in commands))
print(json.dumps({
    "evicts": evicts,
    "dead": len(outbox.messages.get("dead-letters", ())),
    "outcomes": sorted({str(decode_decision(text).outcome) for text in told["decisions"]}),
}))
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = last_release()
    if release is None:
        pytest.skip("no history of git here")
    return version_of(release, tmp_path_factory.mktemp("release") / "before")


def held() -> Braked:
    """Forty pods were issued, and their executor holds them."""
    world = Braked()
    world.run(HELD_AT)
    world.brake(clusters=["held"])
    return world


@pytest.mark.parametrize("reads", ["rows", "results"])
def test_workers_before_brakes_wait_for_what_is_held(before: Path, reads: str) -> None:
    world = held()
    rows = dict(world.rows)
    results = world.answer("held", "Accepted", heldBy="b1")
    told: dict[str, Any] = {
        "rows": [
            [base64.b64encode(part).decode() for part in row] for row in (rows, world.rows)[reads == "rows"].items()
        ],
        "results": [json.dumps(result) for result in results if reads == "results"],
        "decisions": [json.dumps(decision) for decision in world.decisions if decision["decision"] == "Reported"],
        "held_us": world.now_us,
        "fire_us": [NOON_US + at * SECOND_US for at in (REPEATED_AT - 2, REPEATED_AT)],
    }
    path = os.pathsep.join(map(str, (before / "src", before)))
    command = [sys.executable, "-c", BEFORE]
    ran = subprocess.run(
        command,
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        cwd=before,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"evicts": [0, PODS], "dead": 0, "outcomes": ["Accepted"]}
