"""`evictstream accept-gap`: resumes evictions although input expired before it was read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.confirmation import DECLINED, YesOption, is_confirmed, refuse_if_nobody_answers
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.known_clusters import NAMES_LISTED, read_with_progress
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.streams.cli.known_clusters import GapJson

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def accept_gap(
    context: typer.Context,
    partition: Annotated[
        list[int] | None,
        typer.Option(help="Only this partition; repeatable. Default: all.", min=0, metavar="N"),
    ] = None,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Resume evictions in partitions whose input expired before it was read.

    Evictions wait there because the lost input may have removed a taint or a pod. They also resume by themselves once
    the feed of each cluster has listed it again, which is safer. The gaps are shown before you are asked. Only
    partitions with a gap get the signal. If there is none, nothing is sent, and the exit code is 1.

    Examples:

    * `evictstream accept-gap`
    * `evictstream accept-gap --partition 3 --partition 5 --yes`
    """
    from evictstream.streams.feed.operator_signals import accept_gap as accept
    from evictstream.streams.feed.operator_signals import check_partitions
    from evictstream.streams.feed.publisher import open_publisher

    refuse_if_nobody_answers(yes)
    settings = global_options(context).settings
    is_json = output is OutputFormat.JSON
    with open_publisher(settings) as publisher:
        chosen = check_partitions(publisher, settings.nodes_topic, partition or ())
        found = read_with_progress(settings, publisher.partitions).gaps()
        gaps = {number: gap for number, gap in found.items() if number in chosen}
        sent: dict[str, object] = {"type": "ACCEPT_GAP", "topic": settings.nodes_topic, "gaps": list(gaps.values())}
        if not gaps:
            if is_json:
                print_json(sent | {"partitions": []})
            warn(f"{_no_gap(chosen, found)}; nothing was sent")
            return ExitCode.FOUND_PROBLEM
        if not is_json:
            for gap in gaps.values():
                say(_sentence(gap), err=True)
        question = (
            f"Resume evictions in {_listed(gaps)} of {settings.nodes_topic} at {settings.bootstrap_servers}, though"
            " changes that would cancel some of them may have been lost?"
        )
        if not is_confirmed(question, yes):
            return DECLINED
        partitions = accept(publisher, settings.nodes_topic, gaps)
    if is_json:
        print_json(sent | {"partitions": partitions})
    else:
        numbers = ", ".join(map(str, partitions))
        say(f"accepted the gap in {len(partitions)} partitions of {settings.nodes_topic}: {numbers}")
    return ExitCode.DONE


def _sentence(gap: GapJson) -> str:
    lost = ", ".join(f"{count} records of {topic}" for topic, count in gap["lost"].items())
    unlisted = [f"{cluster} ({' and '.join(topics)})" for cluster, topics in gap["unlisted"].items()]
    names = ", ".join(unlisted[:NAMES_LISTED]) + (
        f" and {more} more" if (more := len(unlisted) - NAMES_LISTED) > 0 else ""
    )
    return f"partition {gap['partition']}: lost {lost}, detected at {gap['foundAt']}; not listed since: {names}"


def _no_gap(chosen: Sequence[int], found: Collection[int]) -> str:
    if found:
        return f"{_listed(chosen)} has no gap; {_listed(found)} has one"
    return "no partition has a known gap; a worker detects gaps when it takes over a partition"


def _listed(numbers: Collection[int]) -> str:
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
