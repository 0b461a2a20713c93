"""The whole demo: find a Kafka, start workers, play the incident, kill a worker, judge, tidy up."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from kafka import TopicPartition

from evictstream.kit.demo.judgement import problems_of, read_log
from evictstream.kit.demo.play import Play, expected, kill_moment_us, moved, wall_clock_us
from evictstream.kit.demo.workers import DemoWorker, owners, running
from evictstream.kit.inputs.opening import Input
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import DifferenceKind, compare_runs
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.sources import WatchFiles
from evictstream.streams.broker.admin import declare_topics, topic_names
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.broker.locate import locate
from evictstream.streams.broker.run_names import delete_own, named
from evictstream.streams.errors import FoundProblemError, WrongUseError
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.settings import Settings
from evictstream.streams.settings.connection import ConnectionSettings

PREFIX: Final = "evictstream-demo-"
"""Begins the names of all that a run makes; eight hexadecimal digits of its own follow."""

INCIDENT: Final = "zone-outage-part-recovers-no-evictor"
_EVENTS: Final = "events.jsonl.gz"
DEMO_WORKERS: Final = 2

_START_SECONDS: Final = 90.0
"""For all workers to own partitions; five seconds are usual, a machine whose cores are busy needs more."""

PROBLEMS_SHOWN: Final = 20
"""A rule that is broken breaks for hundreds of pods."""

# How to speak with a Kafka that was started here: it has one broker, in the clear.
_PLAIN: Final = Settings().model_dump(
    include={*ConnectionSettings.model_fields, "replication_factor", "min_insync_replicas"},
    exclude={"bootstrap_servers", "client_id"},
)


def demo_incident() -> Path:
    """Find the folder of the demo's own incident: in the package, or in the clone around it.

    Raises:
        WrongUseError: it is in neither.
    """
    here = Path(__file__).resolve()
    for folder in (here.parent / "incident", here.parents[2] / "examples" / "incidents" / INCIDENT):
        if (folder / _EVENTS).exists():
            return folder
    next_step = "run the demo in a clone, or name a folder of its examples/incidents with --incident"
    raise WrongUseError(f"the recorded incident {INCIDENT} is not installed", next_step=next_step)


def read_incident(folder: Path, partitions: int) -> list[RecordedRecord]:
    """Read an incident in the order of its times. Raises `WrongUseError` if the folder holds none."""
    events = folder / _EVENTS
    source = WatchFiles([Input(str(events), events)], cluster=None, partitions=partitions, unnamed="demo")
    records = list(source.read())
    if source.unreadable or not records:
        problem = f"{events} is no recorded incident that can be read"
        raise WrongUseError(problem, next_step="name one of the folders in examples/incidents")
    return records


def tell(settings: Settings, incident: Path, problems: list[str], *, kills: bool) -> Generator[str]:
    """Do it all, and give a line for each thing that happens. All that was started is gone when this ends.

    Args:
        settings: which Kafka, if any; all else but names of topics and group, which are the run's own, and what a
            Kafka of its own does not ask for.
        incident: folder of the recording.
        problems: gets everything that was wrong, a sentence each.
        kills: whether a worker is killed.

    Raises:
        WrongUseError: there is no incident in the folder.
        BrokerError: Kafka is not as needed.
        FoundProblemError: a worker did not start, or ended by itself.
    """
    recorded = read_incident(incident, settings.partitions)
    yield "looking for a Kafka, or starting one"
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(locate(settings))
        is_own = broker.kind != "settings"
        more = {"bootstrap_servers": broker.bootstrap_servers} | (_PLAIN if is_own else {})
        name = f"{PREFIX}{uuid.uuid4().hex[:8]}"
        mine = named(settings.model_copy(update=more), name)
        yield f"Kafka: {broker.description}; topics {name}* are this demo's"
        if not is_own:
            names = topic_names(mine)  # raises if Kafka does not answer: there is nothing to delete then
            for other in sorted({one[: len(name)] for one in names if one.startswith(PREFIX)}):
                yield f"topics {other}* are of another demo; delete them if it does not run any more"
            stack.callback(delete_own, mine)
        declare_topics(mine).raise_if_breaking()
        logs = Path(tempfile.mkdtemp(prefix=PREFIX))
        stack.callback(_remove, logs, problems)
        yield from _perform(recorded, mine, logs, problems, kills=kills)
    yield from problems[:PROBLEMS_SHOWN]
    if problems:
        yield f"{len(problems)} problem(s); the workers' logs are in {logs}"
    else:
        yield "the oracle agrees: no command was wrong, and none was missing"


def _perform(
    recorded: list[RecordedRecord], settings: Settings, logs: Path, problems: list[str], *, kills: bool
) -> Iterator[str]:
    undisturbed, end_us = expected(recorded, settings)
    kill_us = kill_moment_us(undisturbed, end_us) if kills else None
    with running(DEMO_WORKERS, settings, logs) as workers, contextlib.ExitStack() as stack:
        yield f"{' and '.join(worker.name for worker in workers)} start"
        _wait_for_owners(workers, settings.partitions)
        publisher = stack.enter_context(open_publisher(settings))
        stack.enter_context(our_errors(settings, f"read {settings.commands_topic}"))
        commands = stack.enter_context(contextlib.closing(open_consumer(settings, auto_offset_reset="earliest")))
        commands.assign([TopicPartition(settings.commands_topic, number) for number in range(settings.partitions)])
        play = Play(settings, workers, publisher, commands)
        seconds = (recorded[-1].timestamp - recorded[0].timestamp) / 1_000
        yield f"{len(recorded)} recorded events are played as they happened, in {seconds:.0f} s"
        by_us = (wall_clock_us() // 1_000 - recorded[0].timestamp) * 1_000
        records = moved(recorded, by_us // 1_000)
        yield from play.run(records, kill_us=kill_us and kill_us + by_us, end_us=end_us + by_us)
        stopped_us = wall_clock_us()
        yield "all is played; the workers get SIGTERM"
        problems += filter(None, [worker.stop() for worker in workers])
        publisher.flush()
    yield _compared(play.evictions, undisturbed, by_us)
    if play.killed is not None and not play.outage[1]:
        problems.append(f"no worker took over from {play.killed.name}")
    excused = [(begin, end or stopped_us) for begin, end in [play.outage] if begin]
    problems += problems_of(*read_log(settings), settings, end_us=stopped_us, excused=excused)


def _compared(evictions: EvictionsOfRun, undisturbed: EvictionsOfRun, by_us: int) -> str:
    """Compare with a replay without a kill, whose times are to be moved."""
    owed = [one._replace(at_us=one.at_us + by_us) for one in undisturbed.departures()]
    differences = list(compare_runs(evictions.departures(), owed))
    kinds = Counter(one.kind for one in differences)
    latest = max((one.seconds or 0.0 for one in differences), default=0.0)
    return (
        f"beside a replay without a kill: {kinds[DifferenceKind.SAME]} evictions within the same second,"
        f" {kinds[DifferenceKind.LATER]} up to {latest:.1f} s later, {kinds[DifferenceKind.ONLY_THERE]} not at all"
        " (the taint was gone before the takeover)"
    )


def _wait_for_owners(workers: list[DemoWorker], partitions: int) -> None:
    """Wait until every partition has an owner, and every worker partitions, if there are enough.

    Raises:
        FoundProblemError: that took too long, or a worker has ended.
    """
    give_up = time.monotonic() + _START_SECONDS
    while len(owned := owners(workers)) < partitions or len({one for _, one in owned.values()}) < min(
        len(workers), partitions
    ):
        if time.monotonic() > give_up:
            raise FoundProblemError(f"not all of {len(workers)} workers had partitions within {_START_SECONDS:g} s")
        for worker in workers:
            worker.check()
        time.sleep(0.1)


def _remove(logs: Path, problems: list[str]) -> None:
    if not problems:
        shutil.rmtree(logs, ignore_errors=True)
