"""`evictstream explain`: the story of a pod, from a recording or from the decisions topic."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_long_json, print_table, say, say_title
from evictstream.streams.cli.progress import ProgressLine, with_progress
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode, FoundProblemError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.models.messages.decision import DecisionRecord
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def explain(
    context: typer.Context,
    pod: Annotated[str, typer.Argument(help="NAMESPACE/NAME or UID of the pod.", metavar="POD")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Recordings; without one, the decisions topic.", metavar="[FILE]...")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Only of this cluster; with files, their cluster.", metavar="NAME", parser=check_cluster_name
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="When lists were made; by default the latest instant within them.", metavar="INSTANT"),
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Say why a pod was evicted, when, and what happened before: each decision in a sentence, with its time.

    Without a file it reads what the service has decided, as far as the decisions topic reaches back. With files it
    replays them, as `evictstream replay` does. Pods that had the same name one after the other have a story each.

    Exits with 0, or with 1 if nothing was decided about such a pod.

    Examples:

    * `evictstream explain shop/cart-7d9 --cluster prod-eu-1`
    * `evictstream explain shop/cart-7d9 incident.jsonl.gz`
    * `evictstream explain 0d5e7718-d806-41d1-8563-7133f0060f0e -o json`
    """
    settings = global_options(context).settings
    with StopSignals() as stop_signals:
        if files:
            found = list(_replayed(settings, files, cluster, at, pod, stop_signals))
        else:
            found = list(stop_signals.interruptible(_decided(settings, cluster, pod)))
    if not found and not stop_signals.is_stopped():
        raise FoundProblemError(
            f"nothing was decided about {pod}", next_step="a pod that tolerates all taints of its node has no story"
        )
    if output is OutputFormat.JSON:
        print_long_json({"pod": pod}, "decisions", map(_as_json, found))
    else:
        _print(found)
    return stop_signals.exit_code or ExitCode.DONE


def _is_about(decision: DecisionRecord, cluster: str | None, pod: str) -> bool:
    if cluster is not None and decision.cluster != cluster:
        return False
    return pod in (decision.pod_uid, f"{decision.namespace}/{decision.pod}")


def _decided(settings: Settings, cluster: str | None, pod: str) -> Iterator[DecisionRecord]:
    """Read the decisions topic to the end that it has now."""
    from evictstream.models.messages.decision import decode_decision
    from evictstream.models.messages.unreadable import Unreadable
    from evictstream.streams.broker.follow import follow

    wanted = [part.encode() for part in (pod.rpartition("/")[2], cluster or "")]
    read = 0
    with (
        ProgressLine("reading decisions") as line,
        follow(settings, settings.decisions_topic, "beginning", is_stopped=lambda: False, idle_seconds=0) as batches,
    ):
        for batch in batches:
            read += len(batch)
            line.show(read, "records")
            for record in batch:
                if record.value is None or not all(part in record.value for part in wanted):
                    continue  # to decode each of some millions would take minutes
                try:
                    decision = decode_decision(record.value)
                except Unreadable as error:
                    say(f"evictstream: {record.place}: no decision ({error.reason})", err=True)
                    continue
                if _is_about(decision, cluster, pod):
                    yield decision


def _replayed(
    settings: Settings, files: list[str], cluster: str | None, at: str | None, pod: str, stop_signals: StopSignals
) -> Iterator[DecisionRecord]:
    from evictstream.models.messages.decision import decode_decision
    from evictstream.streams.recordings.audit_log import what_is_missing
    from evictstream.streams.replay.replay import Replay
    from evictstream.streams.replay.sources import open_source

    def tell(flaw: object) -> None:
        say(f"evictstream: {flaw}", err=True)

    source = open_source(files, cluster=cluster, partitions=settings.partitions, on_flaw=tell, at=at)
    run = Replay(settings, partitions=source.partitions, plays_executor=not source.has_results)
    wanted = pod.rpartition("/")[2].encode()
    records = with_progress(stop_signals.until_signal(source.read()), "replaying", source.total)
    for message in itertools.chain(run.run(records), run.run_on()):
        if message.topic == "decisions" and wanted in message.value:
            decision = decode_decision(message.value)
            if _is_about(decision, cluster, pod):
                yield decision
    for what, count in source.assumed():
        say(f"{what}: {count}")
    if missing := what_is_missing(source.skipped):
        say(missing)


def _print(found: list[DecisionRecord]) -> None:
    from evictstream.streams.replay.story import story

    uids = list(dict.fromkeys((one.cluster, one.pod_uid) for one in found))
    for number, (cluster, uid) in enumerate(uids):
        decisions = [one for one in found if (one.cluster, one.pod_uid) == (cluster, uid)]
        first = decisions[0]
        if number:
            say()
        say_title(f"{first.namespace}/{first.pod} ({uid}) on {first.node} of {cluster}")
        print_table(["when", "what"], [[line.at, line.text] for line in story(decisions)])


def _as_json(decision: DecisionRecord) -> dict[str, object]:
    import msgspec

    from evictstream.streams.replay.story import story

    (line,) = story([decision])
    return {"text": line.text, "decision": msgspec.to_builtins(decision)}
