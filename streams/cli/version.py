"""`evictstream version`: what a report of a fault has to name."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of
from typing import Final

import typer

from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say

CLIENTS: Final = ("aiokafka", "faust-streaming", "kafka-python", "kubernetes")
"""Those that speak with Kafka and with API servers."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def version(output: OutputOption = OutputFormat.TEXT) -> None:
    """Show the versions of evictstream, of Python and of the clients of Kafka and Kubernetes.

    Examples:

    * `evictstream version`
    * `evictstream version -o json`
    """
    libraries = {name: version_of(name) for name in CLIENTS}
    if output is OutputFormat.JSON:
        print_json(
            {
                "evictstream": version_of("evictstream"),
                "python": platform.python_version(),
                "platform": platform.platform(),
                "libraries": libraries,
            }
        )
        return
    say(f"evictstream {version_of('evictstream')}")
    say(f"Python {platform.python_version()} on {platform.platform()}")
    say(", ".join(f"{name} {number}" for name, number in libraries.items()))
