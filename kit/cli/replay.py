"""`evictstream replay`: what the service makes of a recording, and how another run differs from that."""

from __future__ import annotations

import contextlib
import enum
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.differences import count_rows, difference_json
from evictstream.kit.cli.incomplete import AllowOption, refused, tell_shortfalls
from evictstream.kit.cli.replay_input import read_files, show_check
from evictstream.kit.cli.tried_policies import PolicyOption, steering_of
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_long_json, print_table, say
from evictstream.streams.cli.progress import with_progress
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evictstream.kit.recordings.record import RecordedRecord
    from evictstream.kit.replay.comparison import RunDifference
    from evictstream.kit.replay.replay_report import ReplayReport
    from evictstream.kit.replay.sources import RecordedFolder, WatchFiles
    from evictstream.kit.replay.virtual_partition import ReplayedMessage

_UPSTREAM = "upstream"
MOST_SHOWN = 50
"""Differences in the table for people; `-o json` has all."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


class Results(enum.StrEnum):
    """Where results of evictions come from."""

    RECORDED = "recorded"
    PLAYED = "played"


@app.command()
def replay(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="A folder of `evictstream record`, or files and pipes: watch events, lists, audit logs, packed or not."
            " Without any, the topics of the service.",
            metavar="[RECORDING]...",
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Name of the cluster; overrides the recorded name.", metavar="NAME", parser=check_cluster_name
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare with `upstream`, or with a file of commands, one JSON object per line.", metavar="WHAT"
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Time of the lists. Default: the latest time in them.", metavar="INSTANT"),
    ] = None,
    since: Annotated[str | None, typer.Option(help="For topics: start. Default: all.", metavar="INSTANT")] = None,
    until: Annotated[str | None, typer.Option(help="For topics: end. Default: now.", metavar="INSTANT")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Report anomalies of the recording, and what a replay would assume.")
    ] = False,
    run_on: Annotated[
        float, typer.Option(help="Continue for this many seconds after the last event.", min=0, metavar="SECONDS")
    ] = 0.0,
    results: Annotated[
        Results | None,
        typer.Option(
            help="played: each eviction succeeds, its pod is deleted. Default: recorded, if there are any.",
            metavar="|".join(Results),
        ),
    ] = None,
    toleration_seconds: Annotated[
        list[str] | None,
        typer.Option(
            help="Replace `tolerationSeconds` in all tolerations of a key that have one; repeatable.",
            metavar="KEY=SECONDS",
        ),
    ] = None,
    policy: PolicyOption = None,
    unsteered: Annotated[
        bool, typer.Option("--unsteered", help="Leave out brakes and policies that the recording holds.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(help="Write commands, decisions and dead letters to a folder.", metavar="FOLDER")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write an HTML page with timeline, table and stories.", metavar="FILE")
    ] = None,
    allow: AllowOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Replay a recording in virtual time, without Kafka: the same decisions each time, on any machine.

    Rules and limits come from the settings, so `--set outage_gap_seconds=0` shows the effect of another value. Recorded
    events of a pod after the replay has evicted it are left out.

    `--against upstream` runs a model of Kubernetes' own taint eviction controller on the same recording, and `--against
    FILE` reads the commands of another run. Each pod that left in only one of them, or at a time that differs by a
    second or more, is listed with the reason; numbers are rows of docs/semantics.md#13.

    Brakes and policies that a recording holds stand from their times on. Those of `--policy` stand from the first
    record on, in place of recorded ones of the same name; `evictstream policy test` also shows what is without them.

    Without a file, it reads the topics of the service into a temporary folder, and writes nothing to Kafka.

    `--html` draws a post-mortem: nodes with taints, pods with deadlines, evictions over time. The page needs no
    network. `--html` needs `pip install 'evictstream[report]'`.

    Exits with 0; with 1 if the answer lacks something that `--allow` does not name; with 130 or 143 if stopped by
    Ctrl-C or SIGTERM.

    Examples:

    * `evictstream replay examples/incidents/manual-taints-no-evictor/events.jsonl.gz --against upstream`
    * `evictstream replay --since 2026-11-21T02:00:00Z --cluster prod-eu-1 --against upstream`
    * `evictstream replay outage --check`
    * `evictstream replay outage --against upstream`, after `evictstream record outage`
    * `evictstream replay outage --against upstream --html outage.html`
    * `evictstream replay incident.jsonl.gz --to replayed`
    * `evictstream replay incident.jsonl.gz --policy nights.yaml --run-on 86400`
    * `evictstream replay incident.jsonl.gz --toleration-seconds maintenance=600 --against replayed/commands.jsonl`
    """
    from evictstream.kit.replay.edited_records import read_seconds, with_toleration_seconds
    from evictstream.kit.replay.message_files import MessageFiles
    from evictstream.kit.replay.replay_report import report_of
    from evictstream.kit.replay.sources import open_source
    from evictstream.kit.report.report_files import ReportFile

    settings = global_options(context).settings
    if against is not None and against != _UPSTREAM and not Path(against).is_file():
        raise WrongUseError(f"--against {against} is not a file", next_step="give a file of commands, or upstream")
    seconds = read_seconds(toleration_seconds or ())
    steering = steering_of(policy, is_followed=not unsteered)
    report_file = ReportFile(html)
    with StopSignals() as stop_signals, contextlib.ExitStack() as stack:
        inputs = stack.enter_context(
            read_files(settings, files or (), since=since, until=until, cluster=cluster, stop_signals=stop_signals)
        )
        if (code := stop_signals.exit_code) is not None:
            return code
        own_cluster = cluster if files else None  # topics were read of this cluster only, and name it
        source = open_source(inputs, cluster=own_cluster, partitions=settings.partitions, at=at)
        if check:
            return show_check(source, output, stop_signals, allow)
        is_played = not source.has_results if results is None else results is Results.PLAYED
        kept = None if to is None else stack.enter_context(MessageFiles(to))

        def keep(message: ReplayedMessage) -> None:
            report_file.take(message)
            if kept is not None:
                kept.write(message)

        def read() -> Iterable[RecordedRecord]:
            records = with_progress(stop_signals.until_signal(source.read()), "replaying", source.total)
            return report_file.watched(with_toleration_seconds(records, seconds))

        report = report_of(
            settings,
            read,
            partitions=source.partitions,
            plays_executor=is_played,
            run_on_seconds=run_on,
            against=against,
            steering=steering,
            keep=keep,
        )
        report_file.write(report, title=_title(files[0]) if files else settings.application_id)
    if output is OutputFormat.JSON:
        head: dict[str, object] = (
            report.summary() | {"clusters": sorted(source.clusters), "unreadable": source.unreadable} | source.summary()
        )
        print_long_json(head, "differences", map(_as_json, report.differences))
    else:
        _print(report, source)
    shortfalls = itertools.chain(source.shortfalls(), refused(report.messages["dead-letters"]))
    return stop_signals.exit_code or tell_shortfalls(shortfalls, allow)


def _title(file: str) -> str:
    """Name a recording on its page: many files of incidents have one name, and their folders tell them apart."""
    path = Path(file).resolve()
    return path.name if path.is_dir() or file == "-" else f"{path.parent.name}/{path.name}"


def _print(report: ReplayReport, source: RecordedFolder | WatchFiles) -> None:
    rows = [[name, str(value)] for name, value in (*report.rows(), *source.rows())]
    print_table(["what", "count"], [*rows, ["unreadable lines", str(source.unreadable)]])
    if report.against is None:
        return
    say()
    print_table(
        [f"compared with {report.against}", "pods", "row", "reason"],
        [["the same", str(report.same), "", ""], *count_rows(report.differences, _WORDS)],
    )
    if report.without_policy is not None:
        same, different = report.without_policy
        say(f"had no policy moved seconds: {same:,} the same, {different:,} different")
    if report.differences:
        say()
        print_table(["pod", "node", "here", "there", "seconds", "row"], _lines(report.differences[:MOST_SHOWN]))
    if len(report.differences) > MOST_SHOWN:
        say(f"and {len(report.differences) - MOST_SHOWN:,} more; -o json has all")


_WORDS = {
    "Earlier": "earlier here",
    "Later": "later here",
    "OnlyHere": "only here",
    "OnlyThere": "only there",
}


def _lines(differences: Iterable[RunDifference]) -> Iterable[list[str]]:
    from evictstream.models.instants import instant_text

    for one in differences:
        times = [instant_text(side.at_us) if side else "-" for side in (one.here, one.there)]
        seconds = "" if one.seconds is None else f"{one.seconds:+.1f}"
        row = one.reason.row if one.reason else None
        yield [one.first.name, one.first.node, *times, seconds, str(row or "")]


def _as_json(one: RunDifference) -> dict[str, object]:
    return difference_json(one, kind=one.kind, here="here", there="there")
