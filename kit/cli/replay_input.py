"""What `evictstream replay` reads: files, or without any the topics of the running service, as they are now."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evictstream.kit.cli.incomplete import tell_shortfalls
from evictstream.streams.cli.output import OutputFormat, print_json, print_table, say, warn
from evictstream.streams.cli.progress import ProgressLine, with_progress
from evictstream.streams.cli.topic_times import read_range
from evictstream.streams.errors import FoundProblemError, WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.inputs.opening import Input
    from evictstream.kit.recordings.shortfalls import ShortfallKind
    from evictstream.kit.replay.sources import RecordedFolder, WatchFiles
    from evictstream.streams.cli.stop_signals import StopSignals
    from evictstream.streams.settings import Settings


@contextlib.contextmanager
def read_files(
    settings: Settings,
    files: Sequence[str],
    *,
    since: str | None,
    until: str | None,
    cluster: str | None,
    stop_signals: StopSignals,
    with_outputs: bool = False,
) -> Iterator[list[Input]]:
    """Give files; without any, a recording of the topics, which is removed at the end.

    `with_outputs` records commands and decisions too.

    The topics are recorded first, since a replay reads all partitions in the order of time, and a comparison reads them
    three times. A recording takes a tenth of the topics' bytes.

    Raises:
        WrongUseError: files and a range of time are given.
        FoundProblemError: the topics hold nothing of the cluster.
    """
    if files:
        if since is not None or until is not None:
            raise WrongUseError(
                "--since and --until apply only to topics", next_step="record the range, then replay the recording"
            )
        with open_inputs(files, stop_signals) as inputs:
            yield inputs
        return
    from evictstream.kit.inputs.opening import Input
    from evictstream.kit.recordings.recording_folder import RecordingWriter
    from evictstream.kit.recordings.topic_reader import record_topics

    begin, end = read_range(since, until)
    with tempfile.TemporaryDirectory(prefix="evictstream-replay-") as folder:
        with (
            ProgressLine("recording") as line,
            RecordingWriter(Path(folder) / "topics", partitions=settings.partitions) as writer,
        ):
            record_topics(
                settings,
                writer,
                since=begin,
                until=end,
                clusters=() if cluster is None else (cluster,),
                with_outputs=with_outputs,
                is_stopped=stop_signals.is_stopped,
                progress=lambda role, count: line.show(count, role),
                on_problem=warn,
            )
        if cluster is not None and cluster not in writer.manifest.clusters and not stop_signals.is_stopped():
            raise FoundProblemError(f"the topics have no records of {cluster}", next_step="omit --cluster to read all")
        yield [Input("the topics", Path(folder) / "topics")]


@contextlib.contextmanager
def open_inputs(names: Iterable[str], stop_signals: StopSignals) -> Iterator[list[Input]]:
    """Give what is named, to be read as often as need be; nothing if a signal has ended the wait for a pipe.

    Raises:
        WrongUseError: there is nothing of a name.
    """
    from evictstream.kit.inputs.opening import kept

    with tempfile.TemporaryDirectory(prefix="evictstream-input-") as folder:
        inputs = list(stop_signals.interruptible(kept(names, Path(folder))))
        yield [] if stop_signals.is_stopped() else inputs


def show_check(
    source: RecordedFolder | WatchFiles,
    output: OutputFormat,
    stop_signals: StopSignals,
    allow: Iterable[ShortfallKind] | None,
) -> int:
    """Print what is odd about a recording, up to a signal."""
    from evictstream.kit.recordings.recording_check import ASSUMED, RecordingCheck

    check = RecordingCheck()
    check.take(with_progress(stop_signals.until_signal(source.read()), "checking", source.total))
    if output is OutputFormat.JSON:
        print_json(check.summary() | source.summary())
    else:
        print_table(
            ["what", "count", "a replay assumes"],
            [["records", str(check.records), ""]]
            + [[kind, str(check.counts[kind]), assumed] for kind, assumed in ASSUMED.items()]
            + [[one.what, str(one.amount), one.text] for one in source.shortfalls()],
        )
        places = [[kind, place] for kind in ASSUMED for place in check.places[kind]]
        if places:
            say()
            print_table(["what", "first occurrences"], places)
    return stop_signals.exit_code or tell_shortfalls(source.shortfalls(), allow)
