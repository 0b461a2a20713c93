"""`evictstream import`: recordings of nodes and pods, into the topics."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.incomplete import AllowOption, tell_shortfalls
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table
from evictstream.streams.cli.progress import ProgressLine
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, FoundProblemError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.kit.recordings.entries import Flaw, WatchEnded
    from evictstream.kit.recordings.importer import ImportCounts
    from evictstream.kit.recordings.shortfalls import Shortfall
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command(name="import")
def import_(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(help="Recordings: files, folders, pipes; - for stdin.", metavar="RECORDING...")
    ],
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Name of the cluster; overrides the recorded name. kubectl and audit logs record none.",
            metavar="NAME",
            parser=check_cluster_name,
        ),
    ] = None,
    pace: Annotated[
        str,
        typer.Option(help="recorded, fast, or a factor such as 10x.", metavar="PACE"),
    ] = "recorded",
    restamp: Annotated[
        bool,
        typer.Option("--restamp", help="Shift recorded times so that the first is now."),
    ] = False,
    trim: Annotated[
        bool, typer.Option("--trim", help="Send only the fields in use, about a tenth of each object.")
    ] = False,
    into_fed_cluster: Annotated[
        bool,
        typer.Option("--into-fed-cluster", help="Allow the name of a cluster that `evictstream feed` watches."),
    ] = False,
    allow: AllowOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Play recorded changes of nodes and pods into the topics.

    Reads watch events (JSON documents as evictstream writes them, with `cluster`, `type`, `observedAt` and `object`, or
    as kubectl prints them), lists of nodes and pods (`kubectl get -o json`) as the initial state, API server audit
    logs, and folders of `evictstream record`. Several inputs are merged by recorded time. kubectl watches one kind at a
    time and records neither cluster nor time: give `--cluster`, and the files of nodes and pods; they are sent at once,
    in that order.

    An audit log (audit.k8s.io/v1, JSON lines) must contain nodes and pods with their subresources at the level
    RequestResponse; missing parts are counted. Give the logs of all API servers of one cluster together.

    From a folder, only nodes and pods are sent. Each node goes to the partition of its key here, so the number of
    partitions may differ from that of the recording.

    The service accepts an `observedAt` at most one minute before the event is appended, so old recordings need
    `--restamp`. Bookmarks, heartbeats and operator signals are left out. Each line that is not an event is reported and
    counted, and the import continues.

    You can pipe a live watch into it to try things out, but it is not a feed. A pipe without recorded times, as kubectl
    prints them, counts as a live watch. Each kubectl watch ends after 30 to 60 minutes. Later changes are then unknown,
    and evictions of that cluster continue with the last known state. So the import then exits with 1 and says so. For a
    finished recording, give a file, FILE or `- < FILE`, not `cat`; it exits with 0.

    A cluster that `evictstream feed` has ever watched is refused: its state would contain objects that never existed,
    and executors would get commands about them. Use another name with `--cluster`.

    Exits with 0; with 1 if something could not be read that `--allow` does not name, a live watch has ended or a feed
    watches the cluster; with 130 or 143 if stopped by Ctrl-C or SIGTERM. What was counted until then is in the topics.

    Examples:

    * `kubectl get nodes -o json --watch --output-watch-events > nodes.json`
    * `kubectl get pods -A -o json --watch --output-watch-events > pods.json`
    * `evictstream import --cluster lab nodes.json pods.json`
    * `evictstream import --restamp --pace 10x incident.jsonl.gz`
    * `evictstream import --cluster lab --restamp nodes-and-pods.json audit.log.gz`
    * `evictstream import --restamp outage`, after `evictstream record outage`
    """
    from evictstream.kit.recordings.importer import ImportCallbacks, Importer, ImportOptions
    from evictstream.kit.recordings.input_files import open_recordings
    from evictstream.kit.recordings.pace import FeedClock, read_pace
    from evictstream.streams.broker.feed_states import read_fed
    from evictstream.streams.feed.publisher import open_publisher

    options = ImportOptions(cluster=cluster, pace=read_pace(pace), restamp=restamp, trim=trim)
    settings = global_options(context).settings
    with StopSignals() as stop_signals, ProgressLine("importing") as line, open_recordings(files) as items:
        screen = _Screen(line)
        callbacks = ImportCallbacks(
            screen.flaw, screen.say, lambda: screen.progress(importer.counts), stop_signals.is_stopped
        )
        importer = Importer(settings, options, FeedClock(), callbacks)
        sent: Counter[str] = Counter()
        try:
            with open_publisher(settings) as publisher:
                sent = publisher.acknowledged
                fed = {} if into_fed_cluster else read_fed(settings)
                try:
                    importer.play(stop_signals.interruptible(items), publisher, fed)
                finally:
                    publisher.flush()
        except FoundProblemError:
            line.close()
            tell_shortfalls(screen.shortfalls(importer.counts), allow)
            if sent:
                _show(settings, sent, importer.counts, output, is_complete=False)
            raise
        line.close()
        for ended in importer.counts.ended:
            screen.say(_what_ended(ended, sorted(importer.counts.clusters) or ([cluster] if cluster else [])))
        _show(settings, sent, importer.counts, output, is_complete=not stop_signals.is_stopped())
    exit_code = tell_shortfalls(screen.shortfalls(importer.counts), allow)
    return stop_signals.exit_code or (ExitCode.FOUND_PROBLEM if importer.counts.ended else exit_code)


def _what_ended(ended: WatchEnded, clusters: list[str]) -> str:
    """Describe which changes are missing from now on, what follows, and what to do."""
    source, cluster = ended.source, " and ".join(clusters) or "its cluster"
    kinds = " and ".join(f"{kind.lower()}s" for kind in ended.kinds)
    happened = (
        f"the watch of {kinds} of {cluster} has ended ({source}): later changes are not imported"
        if kinds
        else f"{source} ended before its first event: nothing of {cluster} was imported"
    )
    name = clusters[0] if len(clusters) == 1 else "NAME"
    return (
        f"{happened}; evictions of {cluster} go on by what was known last, without a limit of time. List and watch"
        " again at once; no list tells what was deleted meanwhile: where that matters,"
        f" `evictstream cluster forget {name}` comes first. (A finished recording is imported as a file: FILE, or"
        " - < FILE.)"
    )


class _Screen:
    """Words what an import has to say while it runs."""

    def __init__(self, progress: ProgressLine) -> None:
        from evictstream.kit.recordings.shortfalls import LeftOut

        self._left_out = LeftOut()
        self._progress = progress

    def say(self, line: str) -> None:
        # Without a reader on stderr the import goes on: the counts show the same.
        with contextlib.suppress(BrokenPipeError):
            self._progress.say(f"evictstream: {line}")

    def flaw(self, flaw: Flaw) -> None:
        self._left_out.take(flaw)

    def shortfalls(self, counts: ImportCounts) -> Iterator[Shortfall]:
        """Give what is missing in the topics; said once for each kind, at the end."""
        self._left_out.skipped.update(counts.skipped)
        return self._left_out.shortfalls()

    def progress(self, counts: ImportCounts) -> None:
        if self._progress.is_due():
            self._progress.show(counts.handed_over.total(), f"events{_recorded_until(counts)}")


def _recorded_until(counts: ImportCounts) -> str:
    from evictstream.models.instants import instant_text

    return "" if counts.last_us is None else f", recorded until {instant_text(counts.last_us)}"


def _show(
    settings: Settings, sent: Counter[str], counts: ImportCounts, output: OutputFormat, *, is_complete: bool
) -> None:
    from evictstream.models.instants import instant_text

    times = [None if at_us is None else instant_text(at_us) for at_us in (counts.first_us, counts.last_us)]
    if output is OutputFormat.JSON:
        print_json(
            {
                "isComplete": is_complete,
                "nodes": sent[settings.nodes_topic],
                "pods": sent[settings.pods_topic],
                "skipped": dict(sorted(counts.skipped.items())),
                "unreadable": counts.flaws,
                "endedWatches": [{"source": each.source, "kinds": each.kinds} for each in counts.ended],
                "clusters": sorted(counts.clusters),
                "firstObservedAt": times[0],
                "lastObservedAt": times[1],
            }
        )
        return
    rows = [[topic, str(sent[topic])] for topic in (settings.nodes_topic, settings.pods_topic)]
    rows += [[f"left out, {type_}", str(count)] for type_, count in sorted(counts.skipped.items())]
    rows += [["unreadable", str(counts.flaws)]]
    rows += [["clusters", ", ".join(sorted(counts.clusters)) or "-"]]
    rows += [["recorded", f"{times[0]} to {times[1]}"]] if times[0] else []
    rows += [["stopped before the end", "yes"]] if not is_complete else []
    print_table(["what", "events"], rows)
