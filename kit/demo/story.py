"""The whole demo: find a Kafka, start workers, play the incident, kill a worker, judge, sum up, tidy up."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from evictstream.kit.demo.cleanup import PREFIX, remove_leftovers
from evictstream.kit.demo.judgement import limits_of, problems_of
from evictstream.kit.demo.play import Play
from evictstream.kit.demo.progress import DemoProgress
from evictstream.kit.demo.recording import Recording
from evictstream.kit.demo.summary import Summary, count
from evictstream.kit.demo.topics import read_log, reader_of
from evictstream.kit.demo.workers import Workers, listed, now_us, partitions_of
from evictstream.kit.oracle import PodPlan, plan
from evictstream.streams.broker.admin import check_topics, declare_topics
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.locate import Broker, locate
from evictstream.streams.broker.run_names import delete_own, named
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.settings import Settings
from evictstream.streams.settings.connection import ConnectionSettings

WORKERS: Final = 2

START_SECONDS: Final = 90.0
"""For all workers to own partitions; five seconds are usual, a machine whose cores are busy needs more."""

LOOK_SECONDS: Final = 0.1

# How to speak with a Kafka that was started here: it has one broker, in the clear.
FOR_OWN: Final = Settings().model_dump(
    include={*ConnectionSettings.model_fields, "replication_factor", "min_insync_replicas"},
    exclude={"bootstrap_servers", "client_id"},
)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What the audience may choose: the pace, and whether a worker is killed."""

    speed: float = 1.0
    kill: bool = True


def tell(recording: Recording, settings: Settings, options: Options, out: TextIO) -> Summary:
    """Tell the story.

    Args:
        recording: the incident.
        settings: which Kafka, if any; all else but names of topics and group, which are this run's own, and what a
            Kafka of its own does not ask for.
        options: pace and kill.
        out: where to say what happens, a line for each thing.

    Raises:
        BrokerError: Kafka is not as needed.
        FoundProblemError: a worker did not start, or ended by itself.
    """
    progress = DemoProgress(out)
    progress.say("looking for Kafka, or starting it")
    with locate(settings) as broker, _own_topics(settings, broker, progress) as mine:
        logs = Path(tempfile.mkdtemp(prefix="evictstream-demo-"))
        try:
            summary = _perform(recording, mine, broker, options, progress, logs)
        except FoundProblemError:
            progress.say(f"the workers' logs are in {logs}")
            raise
        except BaseException:
            shutil.rmtree(logs, ignore_errors=True)
            raise
    if summary.problems:
        return dataclasses.replace(summary, logs=str(logs))
    shutil.rmtree(logs, ignore_errors=True)
    return summary


@contextlib.contextmanager
def _own_topics(settings: Settings, broker: Broker, progress: DemoProgress) -> Iterator[Settings]:
    """Give settings with names that nobody else uses, and their topics; delete those on a Kafka that stays."""
    is_own = broker.kind != "settings"
    on_it = settings.model_copy(update={"bootstrap_servers": broker.bootstrap_servers, **(FOR_OWN if is_own else {})})
    mine = named(on_it, f"{PREFIX}{uuid.uuid4().hex[:8]}")
    is_told = broker.bootstrap_servers in broker.description
    progress.say(f"Kafka: {broker.description}" + ("" if is_told else f" ({broker.bootstrap_servers})"))
    if not is_own:
        report = check_topics(mine)  # raises at once if nobody answers; then there is nothing to tidy up
        for sentence in remove_leftovers(on_it, report.others, now_us()):
            progress.say(sentence)
    try:
        declare_topics(mine).raise_if_breaking()
        progress.say(f"topics {mine.topic_prefix}* declared, {mine.partitions} partitions each")
        yield mine
    finally:
        if not is_own:
            try:
                delete_own(mine)
            except FoundProblemError as error:  # what the story came to matters more
                progress.say(f"topics {mine.topic_prefix}* could not be deleted: {error}")


def _perform(
    recording: Recording, settings: Settings, broker: Broker, options: Options, progress: DemoProgress, logs: Path
) -> Summary:
    with Workers(settings, logs) as workers, open_publisher(settings) as publisher, contextlib.ExitStack() as stack:
        workers.start(WORKERS)
        progress.say(", ".join(f"worker {one.number} is process {one.pid}" for one in workers.all))
        _wait_for_owners(workers, settings.partitions)
        for worker in workers.all:
            progress.say(f"worker {worker.number} has partitions {listed(partitions_of(worker, workers.owners()))}")
        stack.enter_context(our_errors(settings, f"hand out {settings.commands_topic}"))
        reader = stack.enter_context(contextlib.closing(reader_of(settings, [settings.commands_topic])))
        play = Play(
            recording,
            settings,
            workers=workers,
            publisher=publisher,
            reader=reader,
            progress=progress,
        )
        problems = play.run(speed=options.speed, kill=options.kill)
        end_us = now_us()
        progress.say("the recording is played; stopping the workers with SIGTERM")
        problems += workers.stop()
        publisher.flush()
    log = read_log(settings)
    plans = plan(log.inputs, limits_of(settings), settings.partitions)
    if dead := sum(message.topic == "dead-letters" for message in log.messages):
        problems.append(f"{dead} record(s) became dead letters")
    evicted = {one.command["podUid"] for one in play.seen if one.command["action"] == "Evict"}
    outages = play.outages()
    return Summary(
        incident=recording.name,
        kafka=broker.description,
        pods=len(plans),
        counts=count(play.seen, outages, plans),
        spared=sum(_was_due(one, end_us) and uid not in evicted for uid, one in plans.items()),
        kill=play.kill,
        problems=(*problems_of(log, plans, settings, end_us=end_us, excused=outages), *problems),
        logs=None,
    )


def _was_due(pod: PodPlan, end_us: int) -> bool:
    evicted_us = pod.course().evicted_us
    return evicted_us is not None and evicted_us <= end_us


def _wait_for_owners(workers: Workers, partitions: int) -> None:
    """Wait until every worker has partitions, and every partition an owner.

    Raises:
        FoundProblemError: that took too long.
    """
    give_up = time.monotonic() + START_SECONDS
    while len(owners := workers.owners()) < partitions or set(owners.values()) != set(workers.all):
        if time.monotonic() > give_up:
            problem = f"not all of {WORKERS} workers had partitions within {START_SECONDS:g} s"
            raise FoundProblemError(problem)
        workers.look()
        time.sleep(LOOK_SECONDS)
