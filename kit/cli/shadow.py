"""`evictstream shadow`: what an observing service would have done beside what Kubernetes did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.differences import count_rows, difference_json
from evictstream.kit.cli.incomplete import AllowOption, tell_shortfalls
from evictstream.kit.cli.replay_input import read_files
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_long_json, print_table, say
from evictstream.streams.cli.progress import with_progress
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evictstream.kit.recordings.record import RecordedRecord
    from evictstream.kit.replay.comparison import RunDifference
    from evictstream.kit.replay.shadow import ShadowReport

MOST_LISTED = 50
"""Differences in the table for people; `-o json` has all."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def shadow(
    context: typer.Context,
    recording: Annotated[
        str | None,
        typer.Argument(
            help="A folder of `evictstream record --outputs`. Default: the topics of the service.",
            metavar="RECORDING",
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(help="For topics: only this cluster.", metavar="NAME", parser=check_cluster_name),
    ] = None,
    since: Annotated[str | None, typer.Option(help="For topics: start. Default: all.", metavar="WHEN")] = None,
    until: Annotated[str | None, typer.Option(help="For topics: end. Default: now.", metavar="WHEN")] = None,
    allow: AllowOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Compare what the service would have done with what Kubernetes' own taint eviction controller did.

    Run feed, worker and `evictstream execute --mode observe` beside the built-in controller first. The service's side
    comes from its decisions, that of Kubernetes from the pods: the condition `DisruptionTarget` of a pod says who
    deletes it. Each pod that left at a time that differs by a second or more, or on one side only, is listed with the
    reason; numbers are rows of docs/semantics.md#13. Pods that anything else deleted are counted, and so are those that
    an executor of evictstream deleted.

    Writes nothing to Kafka.

    Exits with 0, also if there are differences; with 1 if the answer lacks something that `--allow` does not name; with
    130 or 143 if stopped by Ctrl-C or SIGTERM.

    Examples:

    * `evictstream shadow --since 7d`
    * `evictstream shadow --since 7d --cluster prod-eu-1 -o json > shadow.json`
    * `evictstream shadow week`, after `evictstream record --outputs week`
    """
    from evictstream.kit.replay.shadow import shadow_of
    from evictstream.kit.replay.sources import open_source

    settings = global_options(context).settings
    files = [] if recording is None else [recording]
    with (
        StopSignals() as stop_signals,
        read_files(
            settings,
            files,
            since=since,
            until=until,
            cluster=None if files else cluster,
            stop_signals=stop_signals,
            with_outputs=True,
        ) as inputs,
    ):
        if (code := stop_signals.exit_code) is not None:
            return code
        source = open_source(inputs, cluster=cluster if files else None, partitions=settings.partitions)
        if files and not source.has_decisions:
            raise WrongUseError(
                f"{recording} has no decisions", next_step="make it with `evictstream record --outputs`"
            )

        def read() -> Iterable[RecordedRecord]:
            return with_progress(stop_signals.until_signal(source.read()), "comparing", source.total)

        report = shadow_of(settings, read, partitions=source.partitions)
    if output is OutputFormat.JSON:
        head = report.summary() | {"clusters": sorted(source.clusters)} | source.summary()
        print_long_json(head, "differences", map(_as_json, report.differences))
    else:
        _print(report)
    return stop_signals.exit_code or tell_shortfalls(source.shortfalls(), allow)


def _print(report: ShadowReport) -> None:
    from evictstream.models.instants import instant_text

    if report.first_us is not None:
        say(f"{instant_text(report.first_us)} to {instant_text(report.last_us)}")
        say()
    print_table(["evictstream would have evicted", "pods", "row", "reason"], _counts(report))
    if report.differences:
        say()
        print_table(["pod", "node", "first at", "evictstream", "row"], _lines(report.differences[:MOST_LISTED]))
    if len(report.differences) > MOST_LISTED:
        say(f"and {len(report.differences) - MOST_LISTED:,} more; -o json has all")


def _counts(report: ShadowReport) -> Iterator[list[str]]:
    yield ["within a second of Kubernetes", str(report.same), "", ""]
    yield from count_rows(report.differences, _WORDS)
    for by, count in sorted(report.otherwise.items()):
        yield ["left for another reason", str(count), "", by]
    yield ["not: its reason went", str(report.cancelled), "", ""]
    yield ["not due yet", str(report.not_due), "", ""]
    if report.done:
        yield ["and has", str(report.done), "", "an executor of evictstream acts"]
    if report.begun_before:
        yield ["not compared", str(report.begun_before), "", "begun before the range"]


_WORDS = {
    "Earlier": "earlier",
    "Later": "later",
    "OnlyHere": "alone",
    "OnlyThere": "not: Kubernetes alone",
}


def _lines(differences: Iterable[RunDifference]) -> Iterator[list[str]]:
    from evictstream.models.instants import instant_text

    for one in differences:
        seconds = "" if one.seconds is None else f"{abs(one.seconds):.1f} s "
        row = one.reason.row if one.reason else None
        yield [
            one.first.name,
            one.first.node,
            f"{instant_text(one.first.at_us)[:19]}Z",
            f"{seconds}{_WORDS[one.kind]}",
            str(row or ""),
        ]


_KINDS = {"OnlyHere": "OnlyEvictstream", "OnlyThere": "OnlyKubernetes"}


def _as_json(one: RunDifference) -> dict[str, object]:
    kind = _KINDS.get(one.kind, one.kind)
    return difference_json(one, kind=kind, here="evictstreamAt", there="kubernetesAt")
