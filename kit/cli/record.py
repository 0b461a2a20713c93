"""`evictstream record`: the topics of a service into a folder, to replay later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.recordings.record import STEERING_ROLES
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table, warn
from evictstream.streams.cli.progress import ProgressLine
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.cli.topic_times import read_range
from evictstream.streams.errors import ExitCode
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from evictstream.kit.recordings.recording_folder import Manifest

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def record(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.", metavar="FOLDER")],
    *,
    cluster: Annotated[
        list[str] | None,
        typer.Option(help="Only this cluster; repeatable.", metavar="NAME", parser=check_cluster_name),
    ] = None,
    since: Annotated[
        str, typer.Option(help="Start: beginning, 5m, or a time such as 2026-11-21T02:15:00Z.", metavar="WHEN")
    ] = "beginning",
    until: Annotated[str | None, typer.Option(help="End. Default: now.", metavar="WHEN")] = None,
    outputs: Annotated[bool, typer.Option("--outputs", help="Also record commands and decisions.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Record the topics of nodes, pods and results, as far back as they reach, and all brakes and policies.

    Commits nothing and joins no group. The folder gets one compressed file per partition, and a manifest with counts,
    times, missing offsets and checksums. If stopped by Ctrl-C or SIGTERM, it contains what was read until then.

    A recording can be replayed on its own only if it contains a complete listing of each cluster. Feeds list when they
    start, and every `EVICTSTREAM_FEED_RELIST_HOURS`.

    Exits with 0; with 1 if there is nothing about a named cluster; with 130 or 143 if stopped.

    Examples:

    * `evictstream record outage --since 2026-11-21T02:00:00Z --until 2026-11-21T04:00:00Z --outputs`
    * `evictstream record prod-eu-1 --cluster prod-eu-1`
    * `evictstream replay outage --against upstream`
    """
    from evictstream.kit.recordings.recording_folder import RecordingWriter
    from evictstream.kit.recordings.topic_reader import record_topics

    settings = global_options(context).settings
    begin, end = read_range(since, until)
    with (
        StopSignals() as stop_signals,
        ProgressLine("recording") as line,
        RecordingWriter(folder, partitions=settings.partitions) as writer,
    ):
        record_topics(
            settings,
            writer,
            since=begin,
            until=end,
            clusters=cluster or (),
            with_outputs=outputs,
            is_stopped=stop_signals.is_stopped,
            progress=lambda role, count: line.show(count, role),
            on_problem=warn,
        )
    if output is OutputFormat.JSON:
        print_json(summary(writer.manifest))
    else:
        _print(writer.manifest)
    unseen = sorted(set(cluster or ()) - writer.manifest.clusters.keys())
    for name in unseen:
        warn(f"the topics have no records of {name}: check the name")
    return stop_signals.exit_code or (ExitCode.FOUND_PROBLEM if unseen else ExitCode.DONE)


def summary(manifest: Manifest) -> dict[str, object]:
    """Say what a recording holds, for programs."""
    files = manifest.files.values()
    logs = [file for file in files if file.topic not in STEERING_ROLES]  # the others may be older, and are compacted
    times = [(file.first_timestamp, file.last_timestamp) for file in logs]
    return {
        "records": manifest.records,
        "topics": {role: sum(file.records for file in files if file.topic == role) for role in _roles(manifest)},
        "clusters": manifest.clusters,
        "firstAt": _instant(min((first for first, _ in times), default=None)),
        "lastAt": _instant(max((last for _, last in times), default=None)),
        "missingOffsets": sum(file.missing for file in logs),
        "setBack": sum(file.set_back for file in logs),
    }


def _roles(manifest: Manifest) -> list[str]:
    return sorted({file.topic for file in manifest.files.values()})


def _instant(timestamp_ms: int | None) -> str | None:
    from evictstream.models.instants import instant_text

    return None if timestamp_ms is None else instant_text(timestamp_ms * 1_000)


def _print(manifest: Manifest) -> None:
    counts = summary(manifest)
    rows = [["records", f"{manifest.records:,}"]]
    rows += [[f"  {role}", f"{count:,}"] for role, count in counts["topics"].items()]  # type: ignore[attr-defined]
    rows += [["clusters", ", ".join(manifest.clusters) or "-"]]
    rows += [["recorded", f"{counts['firstAt']} to {counts['lastAt']}"]] if counts["lastAt"] else []
    rows += [["offsets missing", str(counts["missingOffsets"])], ["times that went back", str(counts["setBack"])]]
    print_table(["what", "count"], rows)
