"""`evictstream explain`: the story of a pod, from a recording or from the decisions topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.incomplete import AllowOption, tell_shortfalls
from evictstream.kit.cli.replay_input import open_inputs
from evictstream.kit.cli.seeing import present_us
from evictstream.kit.cli.tried_policies import PolicyOption, steering_of
from evictstream.models.instants import MILLISECOND_US
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, warn
from evictstream.streams.cli.progress import ProgressLine, with_progress
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import FoundProblemError, WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.kit.cli.explain_output import ExplainAnswer
    from evictstream.kit.recordings.entries import Entry
    from evictstream.kit.replay.asked_pod import AskedPod
    from evictstream.kit.replay.explanation import Explainer, Explanation
    from evictstream.kit.replay.recorded_steering import RecordedSteering
    from evictstream.streams.settings import Settings


app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def explain(
    context: typer.Context,
    pod: Annotated[
        str, typer.Argument(help="NAMESPACE/NAME or UID of the pod, or an unambiguous name.", metavar="POD")
    ],
    files: Annotated[
        list[str] | None, typer.Argument(help="Recordings. Default: the decisions topic.", metavar="[FILE]...")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Only this cluster; with files, their cluster.", metavar="NAME", parser=check_cluster_name),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Time of the lists. Default: the latest time in them.", metavar="INSTANT"),
    ] = None,
    policy: PolicyOption = None,
    allow: AllowOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Show why a pod was evicted, when, and what happened before: each decision in a sentence, with its time.

    Without a file, it reads the decisions of the service, as far back as the decisions topic reaches. With files, it
    replays them, as `evictstream replay` does. If they contain recorded decisions (`evictstream record --outputs`), it
    shows those, and any different decision of the replay. Each line names its source: `recorded`, `replay`, or `played`
    for the actions of a played executor. Pods that had the same name one after the other each get their own story.

    If a brake or policy holds the eviction, it says which one and which clause, since when, and until when. A recording
    is replayed with the brakes and policies that it holds; `--policy` adds those of a file.

    If nothing was decided about the pod, it says why. If the pod is unknown, it lists similar names.

    Exits with 0; with 1 if no such pod is known, pods in several namespaces have the name, or the recording lacks
    something that `--allow` does not name.

    Examples:

    * `evictstream explain shop/cart-7d9 --cluster prod-eu-1`
    * `evictstream explain shop/cart-7d9 incident.jsonl.gz`
    * `evictstream explain shop/cart-7d9 incident.jsonl.gz --policy nights.yaml`
    * `evictstream explain 0d5e7718-d806-41d1-8563-7133f0060f0e -o json`
    """
    from evictstream.kit.cli.explain_output import print_explanation, print_explanation_json, problem_of
    from evictstream.kit.replay.asked_pod import AskedPod
    from evictstream.kit.replay.explanation import PodAnswer

    settings, asked = global_options(context).settings, AskedPod(pod)
    with StopSignals() as stop_signals:
        if files:
            steering = steering_of(policy)
            answer = _replayed(settings, files, cluster, at, asked=asked, stop_signals=stop_signals, steering=steering)
        elif policy:
            raise WrongUseError("--policy needs a recording", next_step="name one, or see `evictstream policy apply`")
        else:
            answer = _decided(settings, cluster, asked, stop_signals)
    is_unknown = answer.explanation.answer in (PodAnswer.UNKNOWN, PodAnswer.SEVERAL)
    if is_unknown and stop_signals.exit_code is not None:
        return stop_signals.exit_code
    if output is OutputFormat.JSON:
        print_explanation_json(asked.text, answer)
    elif not is_unknown:
        print_explanation(answer)
    exit_code = tell_shortfalls(answer.shortfalls, allow)
    if is_unknown:
        problem, next_step = problem_of(asked.text, answer)
        raise FoundProblemError(problem, next_step=next_step)
    return stop_signals.exit_code or exit_code


def _decided(settings: Settings, cluster: str | None, asked: AskedPod, stop_signals: StopSignals) -> ExplainAnswer:
    """Read the decisions topic to the end that it has now; then the service's rows, if these may say more."""
    from evictstream.kit.cli.explain_output import ExplainAnswer
    from evictstream.kit.replay.asked_pod import Match
    from evictstream.kit.replay.explanation import Explainer, PodAnswer
    from evictstream.kit.replay.live_tables import read_live_rows

    explainer = Explainer(asked, cluster=cluster)
    for _ in stop_signals.interruptible(_read_decisions(settings, explainer)):
        pass
    explanation = explainer.explanation()
    is_exact = explanation.answer is PodAnswer.STORY and all(one.match is Match.EXACT for one in explanation.pods)
    if not is_exact and not stop_signals.is_stopped():
        with ProgressLine("reading the state") as line:
            tables = read_live_rows(settings, lambda count: line.show(count, "rows"))
        explainer.observed(tables.observed_pods(asked, present_us()))
        explanation = explainer.explanation(tables.addresses(cluster))
    if not stop_signals.is_stopped():
        _look_at_holds(settings, explainer, explanation)
    return ExplainAnswer(
        explanation=explanation, recorded=explainer.recorded, recorded_us=explainer.recorded_us, cluster=cluster
    )


def _look_at_holds(settings: Settings, explainer: Explainer, explanation: Explanation) -> None:
    """Find what holds the evictions of the pods; the rows are read only if something may."""
    from evictstream.kit.cli.explain_output import is_open
    from evictstream.kit.cli.known_steering import known_steering
    from evictstream.kit.replay.live_tables import read_live_rows

    pods = [pod for pod in explanation.pods if is_open(pod)]
    if not pods:
        return
    with known_steering(settings) as newest:
        steering = newest()
    now_us = steering.now_us(present_us())
    holders = {pod.cluster: steering.of_cluster(pod.cluster, now_us) for pod in pods}
    if any(holders.values()):
        with ProgressLine("reading the state") as line:
            tables = read_live_rows(settings, lambda count: line.show(count, "rows"))
        explainer.take_holds(tables.holds(holders, {pod.uid for pod in pods}, now_us))


def _read_decisions(settings: Settings, explainer: Explainer) -> Iterator[None]:
    from evictstream.kit.replay.story import Teller
    from evictstream.models.messages.unreadable import Unreadable
    from evictstream.streams.broker.follow import follow

    read = 0
    with (
        ProgressLine("reading decisions") as line,
        follow(settings, settings.decisions_topic, "beginning", is_stopped=lambda: False, idle_seconds=0) as batches,
    ):
        for batch in batches:
            read += len(batch)
            line.show(read, "records")
            for record in batch:
                if record.value is None:
                    continue
                try:
                    explainer.take(record.value, record.timestamp_ms * MILLISECOND_US, Teller.RECORDED)
                except Unreadable as error:
                    warn(f"{record.place}: no decision ({error.reason})")
            yield


def _replayed(
    settings: Settings,
    files: list[str],
    cluster: str | None,
    at: str | None,
    *,
    asked: AskedPod,
    stop_signals: StopSignals,
    steering: RecordedSteering,
) -> ExplainAnswer:
    from evictstream.kit.cli.explain_output import ExplainAnswer
    from evictstream.kit.replay.explanation import Explainer
    from evictstream.kit.replay.pod_observer import PodObserver
    from evictstream.kit.replay.replay import Replay
    from evictstream.kit.replay.sources import open_source
    from evictstream.streams.worker.service_config import cluster_rules

    def see_unbound(entry: Entry) -> None:
        observer.see_unbound(cluster or entry.cluster or "", bytes(entry.object), entry.observed_at_us or 0)

    observer, explainer = PodObserver(asked, cluster_rules(settings)), Explainer(asked)
    with open_inputs(files, stop_signals) as inputs:
        source = open_source(inputs, cluster=cluster, partitions=settings.partitions, on_unbound=see_unbound, at=at)
        # Where a service ran, no result means that none came.
        is_played = not (source.has_results or source.has_decisions)
        run = Replay(
            settings,
            partitions=source.partitions,
            plays_executor=is_played,
            observer=observer,
            steering=steering,
        )
        records = with_progress(stop_signals.until_signal(source.read()), "replaying", source.total)
        explanation = explainer.take_replay(run, observer, records, on_problem=warn)
    for begun in run.epochs:
        warn(begun)
    for objection in run.objections():
        warn(f"the service evicts nothing while this cannot be read: {objection}")
    return ExplainAnswer(
        explanation=explanation,
        recorded=explainer.recorded,
        recorded_us=explainer.recorded_us,
        is_replay=True,
        is_played=is_played,
        assumed=tuple(source.assumed()),
        summary=source.summary(),
        shortfalls=tuple(source.shortfalls()),
    )
