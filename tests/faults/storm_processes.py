"""What storms on processes share (`brakes.py`, `paced.py`): names and topics of a run, its processes, its command."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Protocol

import structlog

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.faults.loop.real import SETTINGS
from tests.harness.product_process import ProductProcess


class SeenStorm(Protocol):
    """What was seen of a run."""

    def figures(self) -> dict[str, object]:
        """Give what people look at."""

    def problems(self) -> list[str]:
        """Say which promise is broken."""


class StormProcesses:
    """One run: feed, workers and executors are processes as operators run them, on topics of its own.

    Attributes:
        settings: of all of them.
        folder: has their logs.
        draw: what chance decides.
    """

    def __init__(self, servers: str, folder: Path, *, seed: int, **more: object) -> None:
        mine = f"s{seed}-{uuid.uuid4().hex[:6]}"
        names = {"bootstrap_servers": servers, "topic_prefix": f"{mine}.", "application_id": mine}
        self.settings = Settings.model_validate(SETTINGS | names | more)
        declare_topics(self.settings).raise_if_breaking()
        self.folder = folder
        self.draw = Random(seed)

    def start(self, stack: ExitStack, name: str, *arguments: str) -> ProductProcess:
        """Start a command of evictstream, which ends with the stack; the log has this name."""
        return stack.enter_context(ProductProcess(self.settings, *arguments, log=self.folder / f"{name}.log"))


def storm_options(program: str, description: str | None) -> argparse.ArgumentParser:
    """Take the options that all storms have."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.faults.{program}", description=description)
    parser.add_argument("--pods", type=int, default=9_000)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def run_storm(program: str, play: Callable[[str, Path], SeenStorm]) -> int:
    """Play a storm on a broker of its own and print the figures; exit code 1 if a promise is broken.

    `play` gets the broker's address and the folder for logs.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    folder = Path(tempfile.mkdtemp(prefix=f"evictstream-{program}-"))
    with EmbeddedBroker() as broker:
        seen = play(broker.bootstrap_servers, folder)
    print(json.dumps(seen.figures(), indent=2))
    print(f"logs: {folder}", file=sys.stderr)
    return 1 if seen.problems() else 0
