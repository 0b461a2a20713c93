"""Declare evictstream's topics and check them, through kafka-python's administrative client.

`declare_topics` creates what is missing and reports the rest; neither function ever changes a topic that exists,
because an operator may have had a reason, and partitions cannot be taken back. Both wait at most
`admin_timeout_seconds` for the first answer and `request_timeout_seconds` for each further one. Doing it twice, or from
two places at once, is fine.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.broker.first_contact import KafkaFacts
from evictstream.streams.broker.topic_specs import TopicSpec, topic_specs
from evictstream.streams.errors import BrokerRefusedError, TopicsDifferError
from evictstream.streams.settings import Settings

_RETRY_SECONDS = 0.25
"""Between questions about a topic that a broker has not heard of."""

_SEE_SETTINGS = "DESCRIBE_CONFIGS"

_ABSENT = (UnknownTopicOrPartitionError.errno, TopicAuthorizationFailedError.errno)
"""Of a topic that is not there, or that this user may not see: Kafka then does not say which."""

PROPAGATION_SECONDS = 10.0
"""How long a new topic may take to reach all brokers: tens of milliseconds as a rule, seconds when they are busy."""

_STEPS = {
    "topic": "`evictstream topics declare` creates missing topics",
    # A cluster's partition follows from their number, so clusters would be separated from their state.
    "partitions": "set EVICTSTREAM_PARTITIONS to what the topics have, and never add partitions to them",
}
"""What to do about a difference, by what differs."""

Severity = Literal["breaks", "weakens"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing about one topic that is not as specified.

    Attributes:
        topic: its name.
        what: `topic` (it is missing), `partitions`, `replication.factor`, or the name of a topic setting.
        expected: what the specification says.
        actual: what Kafka says; `missing` for a missing topic.
        severity: `breaks`: evictstream would be wrong, the worker refuses to start. `weakens`: slower or less safe.
    """

    topic: str
    what: str
    expected: str
    actual: str
    severity: Severity

    def __str__(self) -> str:
        """As a sentence without a full stop."""
        if self.what == "topic":
            return f"{self.topic} is missing"
        return f"{self.topic}: {self.what} is {self.actual}, must be {self.expected}"


def advice(differences: Iterable[Difference]) -> str:
    """Say what to do about them, once for each kind."""
    kinds = {one.what for one in differences}
    steps = [step for what, step in _STEPS.items() if what in kinds]
    return "; ".join(steps if kinds <= _STEPS.keys() else [*steps, "change other settings of the topics yourself"])


@dataclasses.dataclass(frozen=True, slots=True)
class TopicsReport:
    """What was found and done.

    Attributes:
        bootstrap_servers: which Kafka.
        topics: all topics that were looked at, in order of specification.
        created: those that were missing and have been created just now.
        differences: everything that is not as specified, now.
        kafka: what it says of itself.
        rights: what this user may do with each topic that was looked at, in Kafka's words; no entry where Kafka does
            not say.
    """

    bootstrap_servers: str
    topics: tuple[str, ...]
    created: tuple[str, ...]
    differences: tuple[Difference, ...]
    kafka: KafkaFacts
    rights: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)

    @property
    def breaking(self) -> tuple[Difference, ...]:
        """The differences with which a worker must not start."""
        return tuple(difference for difference in self.differences if difference.severity == "breaks")

    def breaking_but(self, but: str | None = None, whole: Collection[str] = ()) -> tuple[Difference, ...]:
        """Return the differences with which a program must not start.

        Args:
            but: what may differ.
            whole: topics of which that may not differ either.
        """
        return tuple(one for one in self.breaking if one.what != but or one.topic in whole)

    def raise_if_breaking(self, *, but: str | None = None, whole: Collection[str] = ()) -> None:
        """Raise `TopicsDifferError` with the complete list if `breaking_but` has any."""
        if wrong := self.breaking_but(but, whole):
            raise TopicsDifferError([str(difference) for difference in wrong], next_step=advice(wrong))

    def raise_if_forbidden(self, operation: Literal["READ", "WRITE"], topics: Iterable[str]) -> None:
        """Raise `BrokerRefusedError` if this user may not do that with each of these topics."""
        _refuse_forbidden(operation, self.rights, topics)


def declare_topics(settings: Settings, specs: Sequence[TopicSpec] | None = None) -> TopicsReport:
    """Create the topics that are missing; report what differs in those that were there.

    Args:
        settings: which Kafka, and what topics if `specs` is not given.
        specs: other topics, for tests.
    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused; topics before the refused one may have been created.
        SettingsError: no Kafka is set, or its certificates cannot be read.
    """
    return _report(settings, specs, create=True)


def check_topics(settings: Settings, specs: Sequence[TopicSpec] | None = None) -> TopicsReport:
    """Report everything that is missing or differs; change nothing. Arguments and errors as in `declare_topics`."""
    return _report(settings, specs, create=False)


def _report(settings: Settings, specs: Sequence[TopicSpec] | None, *, create: bool) -> TopicsReport:
    wanted = topic_specs(settings) if specs is None else tuple(specs)
    next_step = "give this user the rights to create and describe topics"
    with admin_client(settings, "describe topics", next_step=next_step) as client:
        present = present_topics(client, [spec.name for spec in wanted])
        missing = [spec for spec in wanted if spec.name not in present]
        if create and missing:
            _create(client, missing)
            missing_names: set[str] = set()
        else:
            missing_names = {spec.name for spec in missing}
        _visible(client, missing_names)
        existing = [spec for spec in wanted if spec.name not in missing_names]
        differences = [
            Difference(topic=name, what="topic", expected="present", actual="missing", severity="breaks")
            for name in sorted(missing_names)
        ]
        found, rights = _compared(client, existing)
        differences += found
    return TopicsReport(
        bootstrap_servers=str(settings.bootstrap_servers),
        topics=tuple(spec.name for spec in wanted),
        created=tuple(spec.name for spec in missing) if create else (),
        differences=tuple(differences),
        kafka=client.facts,
        rights=rights,
    )


def topic_names(settings: Settings) -> frozenset[str]:
    """Return the names of all topics of this Kafka, which may be tens of thousands.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
    """
    with admin_client(settings, "list topics") as client:
        return frozenset(client.list_topics())


def present_topics(client: KafkaAdminClient, names: Sequence[str]) -> set[str]:
    """Return which of these topics are there, and may be seen by this user; asks about no other topic."""
    return {topic["name"] for topic in client.describe_topics(list(names)) if topic["error_code"] not in _ABSENT}


def kept_seconds(settings: Settings, names: Sequence[str]) -> float:
    """Return for how long all of these topics keep a record at least; infinity where no time limits them.

    Args:
        settings: which Kafka.
        names: of topics.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
        TopicsDifferError: one of them is missing.
    """
    with admin_client(settings, "describe topics") as client:
        if missing := sorted(set(names) - present_topics(client, names)):
            _visible(client, missing)
            raise TopicsDifferError([f"{name} is missing" for name in missing])
        _, configs = _described(client, list(names))
    retentions = [int(configs[name]["retention.ms"]["value"]) for name in names]
    return min(math.inf if milliseconds < 0 else milliseconds / 1_000 for milliseconds in retentions)


def _create(client: KafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    wanted = {
        spec.name: {
            "num_partitions": spec.partitions,
            "replication_factor": spec.replication_factor,
            "configs": dict(spec.configs),
        }
        for spec in specs
    }
    for answer in client.create_topics(wanted, raise_errors=False)["topics"]:
        error = for_code(answer["error_code"])
        # Somebody else was faster: then it is theirs, and the comparison that follows says whether it fits.
        if answer["error_code"] != 0 and error is not TopicAlreadyExistsError:
            reason = f"{error.__name__}: {answer.get('error_message') or 'no reason given'}"
            is_forbidden = issubclass(error, AuthorizationError)
            next_step = "give this user the right Create on it (docs/kafka-rights.md)" if is_forbidden else ""
            raise BrokerRefusedError(f"create topic {answer['name']}", reason=reason, next_step=next_step)
    client.wait_for_topics(list(wanted))


def readable_partitions(settings: Settings, topic: str) -> tuple[int, ...]:
    """Return the partition numbers of a topic that this user may read, in order.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused, or this user may not read it.
        TopicsDifferError: the topic is missing.
    """
    with admin_client(settings, f"read {topic}") as client:
        (found,) = _visible(client, [topic])
    if rights := _rights(found):
        _refuse_forbidden("READ", {topic: rights}, [topic])
    if not found["partitions"]:
        raise TopicsDifferError([f"{topic} is missing"])
    return tuple(sorted(one["partition_index"] for one in found["partitions"]))


def _refuse_forbidden(
    operation: Literal["READ", "WRITE"], rights: Mapping[str, frozenset[str]], topics: Iterable[str]
) -> None:
    forbidden = [name for name in topics if name in rights and operation not in rights[name]]
    if forbidden:
        raise BrokerRefusedError(
            f"{operation.lower()} {', '.join(forbidden)}",
            reason="this user has no right to do so",
            next_step=f"give it the right {operation.title()} on them (docs/kafka-rights.md)",
        )


def _visible(client: KafkaAdminClient, names: Iterable[str]) -> list[dict[str, Any]]:
    """Describe topics; refuse those that this user may not see: they may be there, and to create them does not help."""
    asked = sorted(names)
    topics: list[dict[str, Any]] = client.describe_topics(asked) if asked else []
    hidden = [topic["name"] for topic in topics if topic["error_code"] == TopicAuthorizationFailedError.errno]
    if hidden:
        raise BrokerRefusedError(
            f"describe {', '.join(hidden)}",
            reason="this user may not see them, whether they are there or not",
            next_step="give it the rights of docs/kafka-rights.md",
        )
    return topics


def _compared(
    client: KafkaAdminClient, specs: Sequence[TopicSpec]
) -> tuple[list[Difference], dict[str, frozenset[str]]]:
    """Return what differs from the specifications, and what this user may do with each topic."""
    topics, configs = _described(client, [spec.name for spec in specs])
    differences: list[Difference] = []
    for spec in specs:
        values = {name: str(config["value"]) for name, config in configs.get(spec.name, {}).items()}
        partitions = topics[spec.name]["partitions"] if spec.name in topics else ()
        differences += compare_topic(spec, partitions=partitions, configs=values)
    return differences, {name: rights for name, topic in topics.items() if (rights := _rights(topic))}


def _rights(topic: Mapping[str, Any]) -> frozenset[str]:
    """Return what this user may do with a topic; nothing where Kafka does not say, as before 2.3."""
    return frozenset(topic.get("authorized_operations") or ())


def _described(client: KafkaAdminClient, names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask what topics and their settings are, by topic.

    Any broker may answer, also one that has not yet heard of a topic just made: it knows no settings of it at all,
    while a topic always has some. So it is asked again for a while, unless this user may not see settings.
    """
    if not names:
        return {}, {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    give_up_at = time.monotonic() + PROPAGATION_SECONDS
    while True:
        topics = {topic["name"]: topic for topic in _visible(client, names) if topic["partitions"]}
        configs = client.describe_configs(resources, config_filter="all")["topic"]
        bare = [name for name in topics if not configs.get(name)]
        is_forbidden = any((rights := _rights(topics[name])) and _SEE_SETTINGS not in rights for name in bare)
        is_whole = len(topics) == len(names) and not bare
        if is_whole or is_forbidden or time.monotonic() > give_up_at:
            break
        time.sleep(_RETRY_SECONDS)
    if bare:
        raise BrokerRefusedError(
            f"describe the settings of {', '.join(bare)}",
            reason="it shows no settings",
            next_step="give this user the right DescribeConfigs on these topics",
        )
    return topics, configs


def compare_topic(
    spec: TopicSpec,
    *,
    partitions: Sequence[Mapping[str, Any]],
    configs: Mapping[str, str],
) -> Iterator[Difference]:
    """Yield what differs between a specification and what Kafka says of the topic. Pure."""
    copies = sorted({len(partition["replica_nodes"]) for partition in partitions})
    facts: Iterable[tuple[str, str, str]] = [
        ("partitions", str(spec.partitions), str(len(partitions))),
        ("replication.factor", str(spec.replication_factor), " and ".join(map(str, copies))),
        *((name, value, configs.get(name, "unknown to this Kafka")) for name, value in spec.configs.items()),
    ]
    for what, expected, actual in facts:
        if actual != expected:
            severity: Severity = "breaks" if what in spec.essential else "weakens"
            yield Difference(topic=spec.name, what=what, expected=expected, actual=actual, severity=severity)
