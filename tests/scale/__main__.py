"""Run the scale measures: `python -m tests.scale`, or `make scale`."""

from __future__ import annotations

import asyncio
import enum
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from streams.broker.embedded import EmbeddedBroker
from streams.cli.output import OutputFormat, OutputOption
from tests.bench import report
from tests.bench.figures import Figure, WrongResultError
from tests.bench.lab import Lab, say
from tests.scale import fleet_hour, million


class Name(enum.StrEnum):
    """What `--only` takes."""

    MILLION = "million"
    HOUR = "hour"


MEASURES: dict[Name, Callable[[Lab], Awaitable[list[Figure]]]] = {
    Name.MILLION: million.measure,
    Name.HOUR: fleet_hour.measure,
}
LONGEST_SECONDS = 3_600.0

app = typer.Typer(add_completion=False)


@app.command()
def scale(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the work or less.")] = False,
    only: Annotated[list[Name] | None, typer.Option("--only", help="Measure only this; may be repeated.")] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Load one worker with a million pods, and with an hour of a hundred clusters. Some twenty minutes."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    figures, problems = asyncio.run(_measure(only or list(Name), is_quick=quick))
    if output is OutputFormat.JSON:
        report.print_object(figures, problems, is_quick=quick, others_share=None)
    else:
        report.print_text(figures, problems)
    if problems or not all(figure.is_met for figure in figures):
        raise typer.Exit(1)


async def _measure(names: list[Name], *, is_quick: bool) -> tuple[list[Figure], dict[str, str]]:
    figures: list[Figure] = []
    problems: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="evictstream-scale-") as folder:
        data = Path(folder) / "kafka"
        with EmbeddedBroker(data=data, heap_megabytes=1_024) as broker:
            say(broker.description)
            lab = Lab(broker.bootstrap_servers, Path(folder), is_quick, data)
            for name in names:
                try:
                    async with asyncio.timeout(LONGEST_SECONDS):
                        figures += await MEASURES[name](lab)
                except WrongResultError as error:
                    problems[name] = str(error)
                except TimeoutError:
                    problems[name] = f"not done after {LONGEST_SECONDS:g} s"
                if name in problems:
                    say(f"{name} gives no figures: {problems[name]}")
    return figures, problems


if __name__ == "__main__":
    app()
