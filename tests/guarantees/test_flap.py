"""A `NoExecute` taint of 100 ms on each of 500 nodes, with real workers: without a policy, and with that of the page.

`tests/kit/situations` has the same recording, and the same file in `policy test`.
"""

from __future__ import annotations

import pytest

from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint
from tests.harness.reading import commands
from tests.kit.situations.made import AGENT, MADE
from tests.kit.situations.test_verdicts import VERDICTS, recording
from tests.streams.cli.running import run

FLAP = "agents-rollout"
EVICTIONS, GOVERNED = VERDICTS[FLAP]["issued"]
SETTLED_SECONDS = 7.0
"""Longer than the policy waits: what it held would have gone."""


@pytest.mark.slow
@pytest.mark.kit  # `tests/kit/situations` plays the same recording
@pytest.mark.parametrize(
    "policies",
    [
        pytest.param([], id="no policy"),
        pytest.param([f"examples/policies/{FLAP}.yaml"], id="settle"),
    ],
)
def test_a_flap_on_500_nodes(
    policies: list[str], service: Settings, start_worker: StartWorker, reader: OpenReader
) -> None:
    for file in policies:
        assert run(service, "policy", "apply", file).returncode == 0
    for name in ("first", "second"):
        start_worker(service, name).wait_ready()
    read = reader(service.commands_topic)
    imported = run(service, "import", "--restamp", recording(FLAP))
    assert imported.returncode == 0, imported.stderr
    if not policies:
        seen = read.wait_for(lambda seen: len(commands(seen, "Evict")) == EVICTIONS, "all evictions")
        assert {len(found) for found in commands(seen, "Evict").values()} == {1}
        return
    assert len(commands(read.quiet(SETTLED_SECONDS), "Evict")) == GOVERNED == 0
    with Feed(service, MADE[FLAP]().events[0]["cluster"]) as feed:  # a taint that stays evicts, so workers are at work
        feed.version = 1_000_000
        feed.node("n-499", taint(AGENT), uid="uid-n-499")
    read.wait_for(lambda seen: set(commands(seen, "Evict")) == {"web-499", "db-499"}, "both evictions")
