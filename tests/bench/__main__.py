"""Run the measures and say which goals are met. Exit codes: 0 all, 1 not all or a wrong result, 2 wrong use."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.cli.output import OutputFormat, OutputOption
from tests.bench import document, fan_out, governed, memory, replaying, report, throughput, timers
from tests.bench.figures import Figure, WrongResultError
from tests.bench.lab import Lab, say
from tests.bench.machine import Watch
from tests.bench.peers import agreement, latency, lateness, outage, recovery, steady
from tests.bench.scale import beside_kubernetes, eviction_cost, fleet_hour, million, whole_system


class Name(enum.StrEnum):
    """What `--only` takes."""

    THROUGHPUT = "throughput"
    FAN_OUT = "fan-out"
    TIMERS = "timers"
    GOVERNED = "governed"
    MEMORY = "memory"
    REPLAY = "replay"
    STEADY = "steady"
    OUTAGE = "outage"
    LATENCY = "latency"
    LATENESS = "lateness"
    RECOVERY = "recovery"
    MILLION = "million"
    HOUR = "hour"
    CLUSTER = "cluster"
    COST = "cost"
    STORM = "storm"


MEASURES: dict[Name, Callable[[Lab], Awaitable[list[Figure]]]] = {
    Name.THROUGHPUT: throughput.measure,
    Name.FAN_OUT: fan_out.measure,
    Name.TIMERS: timers.measure,
    Name.GOVERNED: governed.measure,
    Name.MEMORY: memory.measure,
    Name.REPLAY: replaying.measure,
    # From here on other programs do the same beside us.
    Name.STEADY: steady.measure,
    Name.OUTAGE: outage.measure,
    Name.LATENCY: latency.measure,
    Name.LATENESS: lateness.measure,
    Name.RECOVERY: recovery.measure,
    # And these show how large it may become: `make scale`.
    Name.MILLION: million.measure,
    Name.HOUR: fleet_hour.measure,
    Name.CLUSTER: whole_system.measure,
    Name.COST: eviction_cost.measure,
    Name.STORM: beside_kubernetes.measure,
}
COMPARING = frozenset({Name.STEADY, Name.OUTAGE, Name.LATENCY, Name.LATENESS, Name.RECOVERY})

SCALE = frozenset({Name.MILLION, Name.HOUR, Name.CLUSTER, Name.COST, Name.STORM})  # only where they are named
USUAL = tuple(name for name in Name if name not in SCALE)

LONGEST_SECONDS = {Name.MILLION: 3_600.0, Name.HOUR: 3_600.0, Name.CLUSTER: 1_800.0, Name.STORM: 5_400.0}
USUAL_LONGEST_SECONDS = 900.0  # for one measure: three times what it takes
NOTABLE_SHARE = 0.05  # of all processor time; an idle system takes a hundredth

app = typer.Typer(add_completion=False)


@app.command()
def bench(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A part of the work, fewer rounds.")] = False,
    only: Annotated[list[Name] | None, typer.Option("--only", help="Measure only this; may be repeated.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Put the figures into docs/performance.md.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Measure one worker with its broker beside it on this machine, and programs that do the same job, and compare
    with the goals. About 45 minutes; `million`, `hour`, `cluster`, `cost`
    and `storm` only run when they are named.
    """
    if write and (quick or only):
        raise typer.BadParameter("--write takes a whole run: leave --quick and --only away")
    # Consumers that are done say so; that is no news.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    watch = Watch()
    try:
        figures, problems = asyncio.run(_measure(only or USUAL, is_quick=quick))
    except asyncio.CancelledError:
        say("terminated")
        raise typer.Exit(128 + signal.SIGTERM) from None
    others = watch.others_share()
    if others is not None:
        hint = "; the figures suffer" if others > NOTABLE_SHARE else ""
        say(f"others used {others:.0%} of the machine{hint}")
    if output is OutputFormat.JSON:
        report.print_object(figures, problems, is_quick=quick, others_share=others)
    else:
        report.print_text(figures, problems)
    if write:
        document.write(figures, problems, others_share=others)
    if problems or not all(figure.is_met for figure in figures):
        raise typer.Exit(1)


async def _measure(names: Sequence[Name], *, is_quick: bool) -> tuple[list[Figure], dict[str, str]]:
    """Give the figures, and why there are none of some measures."""
    figures: list[Figure] = []
    problems: dict[str, str] = {}
    if task := asyncio.current_task():  # as Ctrl-C does, so that no worker outlives this process
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evictstream-bench-")))
        data = folder / "kafka"
        broker = stack.enter_context(EmbeddedBroker(data=data))
        say(broker.description)
        lab = Lab(broker.bootstrap_servers, folder, is_quick, data, broker.nodes[0].pid or 0)
        is_agreed = False
        for name in names:
            longest_seconds = LONGEST_SECONDS.get(name, USUAL_LONGEST_SECONDS)
            try:
                async with asyncio.timeout(longest_seconds):
                    if name in COMPARING and not is_agreed:
                        await agreement.require_all_right(lab)
                        is_agreed = True
                    figures += await MEASURES[name](lab)
            except WrongResultError as error:
                problems[name] = str(error)
            except TimeoutError:
                problems[name] = f"not done after {longest_seconds:g} s"
            if name in problems:
                say(f"{name} gives no figures: {problems[name]}")
    return figures, problems


if __name__ == "__main__":
    app()
