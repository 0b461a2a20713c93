"""Before anything is timed, all programs have to say the right thing about each pod of a small fleet.

Each program gets twelve nodes of its own, one for each case below, with three pods each. In the end the last command
about each pod is compared with what semantics.md part B asks for, written here by hand.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.streams.settings import Settings
from tests.bench.figures import WrongResultError, require
from tests.bench.fleet import UNTOLERATED, Fleet, Node, Pod, now_us
from tests.bench.lab import Lab, say
from tests.bench.log import values
from tests.bench.peers.programs import PROGRAMS, Program, running
from tests.bench.writing import BulkWriter

PODS_PER_NODE: Final = 3
TIMEOUT_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.3
QUIET_SECONDS: Final = 1.5  # for a command that nobody is owed


class Said(NamedTuple):
    """The last command about a pod: its action, and the deadline of a `Schedule`."""

    action: str
    deadline_us: int = 0


class _Command(msgspec.Struct):
    action: str
    pod: str
    deadline: Moment


class _Cases(NamedTuple):
    """A node for each case: what happens to it or its pods, which tolerate 300 s where nothing is said."""

    left_alone: Node
    unreachable: Node
    unreachable_and_back: Node
    untolerated: Node
    untolerated_and_back: Node
    tolerated_for_a_second: Node
    pods_deleted_meanwhile: Node
    pods_finished_meanwhile: Node
    shortened_to_a_second: Node
    prolonged: Node
    pods_seen_after_the_taint: Node
    old_taint_repeated_after_it_was_gone: Node


async def require_all_right(lab: Lab) -> None:
    """Let each program do it; raises `WrongResultError` for the first that is wrong."""
    for program in PROGRAMS:
        await require_right(lab, program)
        say(f"{program.title} is right on all cases")


async def require_right(lab: Lab, program: Program) -> None:
    """Raise `WrongResultError` unless this program says of each pod what has to be said."""
    settings = lab.settings(f"agreement-{program.name}")
    fleet = Fleet(nodes=len(_Cases._fields), pods_per_node=PODS_PER_NODE, partitions=settings.partitions)
    async with BulkWriter(settings) as writer, running(program, settings, lab.folder) as process:
        with process.blamed():
            await _go_through(settings, fleet, writer)


async def _go_through(settings: Settings, fleet: Fleet, writer: BulkWriter) -> None:
    cases = _Cases(*fleet.nodes)
    loaded_us = now_us()
    late = _pods(fleet, cases.pods_seen_after_the_taint)
    early = [pod for pod in fleet.pods if pod not in late]
    seconds = {cases.tolerated_for_a_second: 1}
    await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
    await writer.write(
        settings.pods_topic,
        (fleet.pod_event(pod, b"ADDED", seconds=seconds.get(pod.node, 300), at_us=loaded_us) for pod in early),
    )
    await writer.write(settings.nodes_topic, fleet.marker_nodes())
    markers = fleet.markers()
    await writer.write(settings.pods_topic, markers.entries)
    await _wait(settings, fleet, dict.fromkeys(markers.pods, "Schedule"))
    # Everything is known: now the taints.
    # Append times are whole milliseconds, and nothing counts for later than it was appended.
    tainted_us = now_us() // 1_000 * 1_000
    on_fire = (cases.untolerated, cases.untolerated_and_back)
    down = [node for node in cases if node not in {cases.left_alone, *on_fire}]
    events = list(fleet.node_events(down, tainted=True, at_us=tainted_us))
    await writer.write(settings.nodes_topic, events)
    fires = fleet.node_events(on_fire, tainted=True, at_us=tainted_us, taint=UNTOLERATED)
    await writer.write(settings.nodes_topic, fires)
    expected = {pod.name: "Schedule" for pod in early if pod.node in down}
    expected |= {pod.name: "Evict" for node in on_fire for pod in _pods(fleet, node)}
    expected |= {pod.name: "Evict" for pod in _pods(fleet, cases.tolerated_for_a_second)}
    await _wait(settings, fleet, expected)
    # What happens meanwhile, and an old taint once more.
    back = (cases.unreachable_and_back, cases.untolerated_and_back, cases.old_taint_repeated_after_it_was_gone)
    await writer.write(settings.nodes_topic, fleet.node_events(back, tainted=False))
    repeated = [
        entry for node, entry in zip(down, events, strict=True) if node == cases.old_taint_repeated_after_it_was_gone
    ]
    await writer.write(settings.nodes_topic, repeated)
    await writer.write(
        settings.pods_topic,
        (
            *fleet.pod_events(_pods(fleet, cases.pods_deleted_meanwhile), b"DELETED"),
            *(
                entry._replace(value=entry.value.replace(b'"Running"', b'"Succeeded"'))
                for entry in fleet.pod_events(_pods(fleet, cases.pods_finished_meanwhile), b"MODIFIED")
            ),
            *fleet.pod_events(_pods(fleet, cases.shortened_to_a_second), b"MODIFIED", seconds=1),
            *fleet.pod_events(_pods(fleet, cases.prolonged), b"MODIFIED", seconds=600),
            *(fleet.pod_event(pod, b"ADDED", seconds=300, at_us=tainted_us + 1_000) for pod in late),
        ),
    )
    in_300 = Said("Schedule", tainted_us + 300_000_000)
    final = {
        cases.unreachable: in_300,
        cases.unreachable_and_back: Said("Cancel"),
        cases.untolerated: Said("Evict"),
        cases.untolerated_and_back: Said("Cancel"),
        cases.tolerated_for_a_second: Said("Evict"),
        cases.pods_deleted_meanwhile: Said("Cancel"),
        cases.pods_finished_meanwhile: Said("Cancel"),
        cases.shortened_to_a_second: Said("Evict"),
        cases.prolonged: Said("Schedule", tainted_us + 600_000_000),
        cases.old_taint_repeated_after_it_was_gone: Said("Cancel"),
    }
    by_pod = {pod.name: said for node, said in final.items() for pod in _pods(fleet, node)}
    # The time of a pod that is seen after the taint starts then.
    by_pod |= {pod.name: Said("Schedule", tainted_us + 300_001_000) for pod in late}
    await _wait(settings, fleet, {name: said.action for name, said in by_pod.items()})
    await asyncio.sleep(QUIET_SECONDS)
    found = await _said(settings, fleet)
    wrong = {name: (found.get(name), said) for name, said in by_pod.items() if found.get(name) != said}
    require(not wrong, f"found and expected differ for {len(wrong)} pods: {dict(sorted(wrong.items())[:3])}")
    require(found.keys() == by_pod.keys(), f"commands about {sorted(found.keys() - by_pod.keys())[:3]}")


def _pods(fleet: Fleet, node: Node) -> list[Pod]:
    return [pod for pod in fleet.pods if pod.node == node]


async def _wait(settings: Settings, fleet: Fleet, expected: dict[str, str]) -> None:
    """Wait until the last command of each of these pods is the expected one."""
    until = time.monotonic() + TIMEOUT_SECONDS
    while True:
        found = await _said(settings, fleet, everybody=True)
        missing = {name for name, action in expected.items() if name not in found or found[name].action != action}
        if not missing:
            return
        if time.monotonic() > until:
            name = min(missing)
            problem = f"{len(missing)} pods wait for a command, such as {name} for {expected[name]}: {found.get(name)}"
            raise WrongResultError(problem)
        await asyncio.sleep(POLL_SECONDS)


async def _said(settings: Settings, fleet: Fleet, *, everybody: bool = False) -> dict[str, Said]:
    """Read the last command about each pod of the fleet, or markers too."""
    names = {pod.name for pod in fleet.pods}
    found = {}
    for command in _commands(await values(settings, settings.commands_topic)):
        if everybody or command.pod in names:
            deadline_us = microseconds(command.deadline) if command.action == "Schedule" else 0
            found[command.pod] = Said(command.action, deadline_us)
    return found


def _commands(found: Iterable[bytes]) -> list[_Command]:
    decoder = msgspec.json.Decoder(_Command)
    return [decoder.decode(value) for value in found]
