"""A region decides at home: what it publishes is mirrored to the centre, policies and brakes come from there.

Two Kafkas, a worker in the region, and MirrorMaker 2 between them with the configuration of `examples/regions`. The
link to the centre is a wire that is cut.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.faults.real.wire import Wire, WireLoop
from tests.guarantees.conftest import QUICK
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import TopicReader, commands
from tests.harness.workers import WorkerProcess
from tests.regions.mirror import Mirror
from tests.streams.cli.running import run

pytestmark = [pytest.mark.kafka, pytest.mark.kit]

PATIENCE_SECONDS: Final = 240.0
"""MirrorMaker 2 takes twenty seconds to begin, and some more to come back after a cut."""

PODS: Final = 5

HOLD: Final = ("--all", "--why", "test", "--until-released", "--spread", "0s")


class World(NamedTuple):
    """What the test has.

    Attributes:
        region: settings of the Kafka in which the worker is.
        centre: settings of the other one, not by the wire.
        wire: between MirrorMaker and the centre.
        folder: for logs.
    """

    region: Settings
    centre: Settings
    wire: Wire
    folder: Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        region, centre = EmbeddedBroker(), EmbeddedBroker(detours=1)
        for broker in (region, centre):
            stack.enter_context(broker)
        wires = stack.enter_context(WireLoop())
        wire = stack.enter_context(Wire(wires, centre.nodes[0].address.detours))
        both = [
            Settings.model_validate({"bootstrap_servers": broker.bootstrap_servers, "partitions": 2, **QUICK})
            for broker in (region, centre)
        ]
        for settings in both:
            declare_topics(settings).raise_if_breaking()
        stack.enter_context(Mirror(region=region.bootstrap_servers, centre=wire.address, folder=tmp_path))
        yield World(both[0], both[1], wire, tmp_path)


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until it is so."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, f"not seen: {what}"
        time.sleep(0.2)


def counts(settings: Settings) -> dict[str, Any]:
    """What `status` counts, by scope; instants are left out."""
    result = run(settings, "status", "-o", "json")
    items = json.loads(result.stdout)["items"] if result.returncode == 0 else []
    return {
        one["scope"] + one.get("zone", ""): (one["pods"], one["nodes"], one["evictions"]["issued"]) for one in items
    }


def brakes(settings: Settings) -> dict[str, str]:
    """State of each brake."""
    return {one["id"]: one["state"] for one in json.loads(run(settings, "holds", "-o", "json").stdout)["items"]}


def fall_ill(feed: Feed, node: str) -> None:
    """The node has the taint now."""
    feed.node(node, taint())
    feed.flush()


def test_a_region_decides_while_its_link_is_cut(world: World) -> None:
    region, centre = world.region, world.centre
    reader = TopicReader(region, region.commands_topic)
    with WorkerProcess(region, world.folder) as worker, Feed(region) as feed:
        worker.wait_ready()
        for name in ("first", "second", "third"):
            feed.node(name)
            for pod in range(PODS):
                feed.pod(name, f"{name}-{pod}", tolerates(1))
        feed.flush()
        until(lambda: counts(region).get("fleet") is not None, "the fleet, in the region")
        until(lambda: counts(centre) == counts(region), "the fleet, at the centre")

        # Down: a brake and a policy that are set at the centre hold in the region.
        policy = world.folder / "slow.yaml"
        policy.write_text("name: slow\nwhy: test\nlimit: {rate: 10/s}\n")
        assert run(centre, "policy", "apply", str(policy), "--dry-run").returncode == 1, "no rows here"
        assert run(centre, "policy", "apply", str(policy)).returncode == 0
        assert run(centre, "hold", *HOLD, "--id", "far").returncode == 0
        until(lambda: brakes(region) == {"far": "Holds"}, "the brake, in the region")
        until(lambda: b"slow" in run(region, "policy", "get").stdout, "the policy, in the region")
        fall_ill(feed, "first")
        assert not commands(reader.quiet(3.0), "Evict"), "the brake of the centre holds"
        assert run(centre, "release", "far", "--why", "test").returncode == 0
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) == PODS, "what was held", seconds=PATIENCE_SECONDS)

        # Cut: the region goes on, and a brake by its own address does not need the link.
        until(lambda: counts(centre) == counts(region), "the evictions, at the centre")
        world.wire.cut()
        fall_ill(feed, "second")
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) == 2 * PODS, "evictions without a link")
        regions = f"eu={region.bootstrap_servers}"
        held = run(centre, "hold", *HOLD, "--id", "near", "-o", "json", EVICTSTREAM_REGIONS=regions)
        assert list(json.loads(held.stdout)["regions"]) == ["eu"]
        fall_ill(feed, "third")
        assert len(commands(reader.quiet(3.0), "Evict")) == 2 * PODS, "the brake of the region holds"
        assert counts(centre) != counts(region), "nothing comes through a wire that is cut"
        assert run(centre, "release", "near", "--why", "test", EVICTSTREAM_REGIONS=regions).returncode == 0
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) == 3 * PODS, "all", seconds=PATIENCE_SECONDS)

        # Mended: the centre knows what the region does.
        world.wire.mend()
        until(lambda: counts(centre) == counts(region), "the fleet, after the cut")
        assert worker.stop() == 0
    reader.close()
