"""Which Kafka a brake is about: that of `-b`, or those of all regions, which are asked at the same time.

A brake is written to each region itself and not mirrored there, so a link that is cut or late delays none (decision
069).
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import warn
from evictstream.streams.errors import EvictstreamError
from evictstream.streams.settings import Settings

HERE: Final = ""
"""Stands for the name of the region where no regions are set."""

MOST_REGIONS_AT_ONCE: Final = 16
"""Threads: with more regions the others wait for a moment."""

_T = TypeVar("_T")


class RegionAnswers(NamedTuple, Generic[_T]):
    """What regions have answered.

    Attributes:
        found: by region; `HERE` alone where no regions are set.
        problems: of the regions that could not be asked, or refused.
    """

    found: Mapping[str, _T]
    problems: Mapping[str, EvictstreamError]

    @property
    def is_whole(self) -> bool:
        """Whether every region has answered."""
        return not self.problems

    def warn_of_problems(self) -> None:
        """Say on stderr which regions have not answered, and why."""
        for region, error in self.problems.items():
            warn(f"region {region}: {error}")


def settings_of_regions(context: typer.Context) -> dict[str, Settings]:
    """Return the settings for the Kafka of each region; for one Kafka alone if no regions are set, or `-b` is given."""
    options = global_options(context)
    settings = options.settings
    servers = {} if options.is_kafka_given else settings.servers_of_regions()
    if not servers:
        return {HERE: settings}
    return {name: settings.model_copy(update={"bootstrap_servers": found}) for name, found in servers.items()}


def ask_regions(regions: Mapping[str, Settings], ask: Callable[[Settings], _T]) -> RegionAnswers[_T]:
    """Do something in each region at the same time: one that does not answer holds up no other.

    Raises:
        EvictstreamError: there are no regions, and the one Kafka cannot be used.
    """
    if HERE in regions:
        return RegionAnswers({HERE: ask(regions[HERE])}, {})
    found: dict[str, _T] = {}
    problems: dict[str, EvictstreamError] = {}
    with concurrent.futures.ThreadPoolExecutor(min(len(regions), MOST_REGIONS_AT_ONCE)) as threads:
        asked = {name: threads.submit(ask, settings) for name, settings in regions.items()}
        for name, answer in asked.items():
            try:
                found[name] = answer.result()
            except EvictstreamError as error:
                problems[name] = error
    return RegionAnswers(found, problems)


def in_region(region: str) -> str:
    """Return the beginning of a line about a region; empty where there are none."""
    return f"{region}: " if region else ""
