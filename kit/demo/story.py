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

from evictstream.kit.demo.cleanup import PREFIX, remove_leftovers
from evictstream.kit.demo.judgement import limits_of, problems_of
from evictstream.kit.demo.performance import Performance, play_through
from evictstream.kit.demo.reader import CommandReader, read_log
from evictstream.kit.demo.recording import Recording
from evictstream.kit.demo.summary import Summary, count
from evictstream.kit.demo.view import Show
from evictstream.kit.demo.workers import Workers, now_us
from evictstream.kit.oracle import PodPlan, plan
from evictstream.streams.broker.admin import check_topics, declare_topics
from evictstream.streams.broker.locate import Broker, locate
from evictstream.streams.broker.run_names import delete_own, named
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.settings import Settings
from evictstream.streams.settings.connection import ConnectionSettings

WORKERS = 2

START_SECONDS = 90.0
"""For all workers to own partitions; five seconds are usual, a machine whose cores are busy needs more."""

LOOK_SECONDS = 0.1

# How to speak with a Kafka that was started here: it has one broker, in the clear.
FOR_OWN = Settings().model_dump(
    include={*ConnectionSettings.model_fields, "replication_factor", "min_insync_replicas"},
    exclude={"bootstrap_servers", "client_id"},
)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What the audience may choose: the pace, and whether a worker is killed."""

    speed: float = 1.0
    kill: bool = True


def tell(recording: Recording, settings: Settings, options: Options, show: Show) -> Summary:
    """Tell the story.

    Args:
        recording: the incident.
        settings: which Kafka, if any; all else but names of topics and group, which are this run's own, and what a
            Kafka of its own does not ask for.
        options: pace and kill.
        show: where to.

    Raises:
        BrokerError: Kafka is not as needed.
        FoundProblemError: a worker did not start, or ended by itself.
    """
    _say(show, "looking for a Kafka, or starting one")
    with locate(settings) as broker, _own_topics(settings, broker, show) as mine:
        logs = Path(tempfile.mkdtemp(prefix="evictstream-demo-"))
        try:
            summary = _perform(recording, mine, broker, options, show, logs)
        except FoundProblemError:
            _say(show, f"the workers' logs are in {logs}")
            raise
        except BaseException:
            shutil.rmtree(logs, ignore_errors=True)
            raise
    if summary.problems:
        return dataclasses.replace(summary, logs=str(logs))
    shutil.rmtree(logs, ignore_errors=True)
    return summary


@contextlib.contextmanager
def _own_topics(settings: Settings, broker: Broker, show: Show) -> Iterator[Settings]:
    """Give settings with names that nobody else uses, and their topics; delete those on a Kafka that stays."""
    is_own = broker.kind != "settings"
    on_it = settings.model_copy(update={"bootstrap_servers": broker.bootstrap_servers, **(FOR_OWN if is_own else {})})
    mine = named(on_it, f"{PREFIX}{uuid.uuid4().hex[:8]}")
    _say(show, f"Kafka: {_which(broker)}")
    if not is_own:
        report = check_topics(mine)  # raises at once if nobody answers; then there is nothing to tidy up
        for sentence in remove_leftovers(on_it, report.others, now_us()):
            _say(show, sentence)
    try:
        declare_topics(mine).raise_if_breaking()
        _say(show, f"topics {mine.topic_prefix}* declared, {mine.partitions} partitions each")
        yield mine
    finally:
        if not is_own:
            try:
                delete_own(mine)
            except FoundProblemError as error:  # what the story came to matters more
                _say(show, f"topics {mine.topic_prefix}* are left behind: {error}")


def _perform(
    recording: Recording, settings: Settings, broker: Broker, options: Options, show: Show, logs: Path
) -> Summary:
    with (
        Workers(settings, logs) as workers,
        open_publisher(settings) as publisher,
        CommandReader(settings) as reader,
    ):
        performance = Performance(recording, settings, show, workers=workers, reader=reader, publisher=publisher)
        performance.board.headline = _which(broker)
        workers.start(WORKERS)
        performance.look()
        _say(show, ", ".join(f"worker {one.number} is process {one.pid}" for one in workers.all))
        _wait_for_owners(performance)
        outcome = play_through(performance, speed=options.speed, kill=options.kill)
        problems = workers.stop()
        publisher.flush()
    log = read_log(settings)
    plans = plan(log.inputs, limits_of(settings), settings.partitions)
    found = problems_of(log, plans, settings, end_us=outcome.end_us, excused=outcome.outages)
    evicted = {one.command["podUid"] for one in outcome.seen if one.command["action"] == "Evict"}
    if dead := sum(message.topic == "dead-letters" for message in log.messages):
        problems.append(f"{dead} record(s) became dead letters")
    return Summary(
        incident=recording.name,
        kafka=broker.description,
        pods=len(plans),
        counts=count(outcome.seen, outcome.outages, plans),
        spared=sum(_was_due(one, outcome.end_us) and uid not in evicted for uid, one in plans.items()),
        kill=outcome.kill,
        problems=(*found, *outcome.problems, *problems),
        logs=None,
    )


def _was_due(pod: PodPlan, end_us: int) -> bool:
    evicted_us = pod.course().evicted_us
    return evicted_us is not None and evicted_us <= end_us


def _wait_for_owners(performance: Performance) -> None:
    """Wait until every worker has partitions, and every partition an owner.

    Raises:
        FoundProblemError: that took too long.
    """
    give_up = time.monotonic() + START_SECONDS
    while not performance.all_own():
        if time.monotonic() > give_up:
            problem = f"not all of {WORKERS} workers had partitions within {START_SECONDS:g} s"
            raise FoundProblemError(problem)
        performance.look()
        time.sleep(LOOK_SECONDS)
    for line in performance.board.workers:
        _say(performance.show, line)


def _which(broker: Broker) -> str:
    """Say which Kafka and where, the address once."""
    if broker.bootstrap_servers in broker.description:
        return broker.description
    return f"{broker.description} ({broker.bootstrap_servers})"


def _say(show: Show, sentence: str) -> None:
    show.say(now_us(), sentence)
