"""Declare evictstream's topics and check them, through kafka-python's administrative client.

`declare_topics` creates what is missing and reports the rest; neither function ever changes a topic that exists,
because an operator may have had a reason, and partitions cannot be taken back. Both wait at most
`admin_timeout_seconds` for the first answer and `request_timeout_seconds` for each further one. Doing it twice, or from
two places at once, is fine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    TopicAlreadyExistsError,
    for_code,
)

from evictstream.streams.broker.clients import KafkaPythonTokens
from evictstream.streams.broker.topic_specs import TopicSpec, topic_specs
from evictstream.streams.errors import BrokerRefusedError, BrokerUnreachableError, SettingsError, TopicsDifferError
from evictstream.streams.settings import Settings

PROBE_TIMEOUT_SECONDS = 2.0
"""For asking a broker on loopback whether it is up, again and again."""

_CONNECT_SECONDS = 1.0
"""For one address to accept a connection; a round trip around the world takes a third of it."""

_RETRY_SECONDS = 0.25
"""Between attempts to reach a broker: soon enough for a person, seldom enough for a broker that is starting."""

PROPAGATION_SECONDS = 10.0
"""How long a new topic may take to reach all brokers: tens of milliseconds as a rule, seconds when they are busy."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class TopicsReport:
    """What was found and done.

    Attributes:
        bootstrap_servers: which Kafka.
        topics: all topics that were looked at, in order of specification.
        created: those that were missing and have been created just now.
        differences: everything that is not as specified, now.
        others: names of all other topics on that Kafka.
        brokers: how many brokers that Kafka has.
    """

    bootstrap_servers: str
    topics: tuple[str, ...]
    created: tuple[str, ...]
    differences: tuple[Difference, ...]
    others: frozenset[str]
    brokers: int

    @property
    def breaking(self) -> tuple[Difference, ...]:
        """The differences with which a worker must not start."""
        return tuple(difference for difference in self.differences if difference.severity == "breaks")

    def raise_if_breaking(self) -> None:
        """Raise `TopicsDifferError` with the complete list if a worker must not start."""
        if self.breaking:
            raise TopicsDifferError([str(difference) for difference in self.breaking])


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


@dataclasses.dataclass(frozen=True, slots=True)
class Probe:
    """What a cluster says of itself: its id, and how many of its brokers take part now."""

    cluster_id: str
    active_brokers: int


def probe(bootstrap_servers: str) -> Probe | None:
    """Ask an unprotected cluster; `None` without an answer within 2 s."""
    try:
        settings = Settings(bootstrap_servers=bootstrap_servers)
        with admin_client(settings, "describe the cluster", first_answer_seconds=PROBE_TIMEOUT_SECONDS) as client:
            answer = client.describe_cluster()
    except (BrokerUnreachableError, BrokerRefusedError):
        return None
    # A broker that went away stays on the list, fenced.
    active = [broker for broker in answer["brokers"] if not broker.get("is_fenced", False)]
    return Probe(cluster_id=answer["cluster_id"], active_brokers=len(active))


def _report(settings: Settings, specs: Sequence[TopicSpec] | None, *, create: bool) -> TopicsReport:
    wanted = topic_specs(settings) if specs is None else tuple(specs)
    next_step = "give this user the rights to create and describe topics"
    with admin_client(settings, "describe topics", next_step=next_step) as client:
        brokers = len(client.describe_cluster()["brokers"])
        present = set(client.list_topics())
        missing = [spec for spec in wanted if spec.name not in present]
        if create and missing:
            _create(client, missing)
            missing_names: set[str] = set()
        else:
            missing_names = {spec.name for spec in missing}
        existing = [spec for spec in wanted if spec.name not in missing_names]
        differences = [
            Difference(topic=name, what="topic", expected="present", actual="missing", severity="breaks")
            for name in sorted(missing_names)
        ]
        differences += _differences(client, existing)
    return TopicsReport(
        bootstrap_servers=str(settings.bootstrap_servers),
        topics=tuple(spec.name for spec in wanted),
        created=tuple(spec.name for spec in missing) if create else (),
        differences=tuple(differences),
        others=frozenset(present.difference(spec.name for spec in wanted)),
        brokers=brokers,
    )


def kept_seconds(settings: Settings, names: Sequence[str]) -> float:
    """Return for how long all of these topics keep a record at least; infinity where no time limits them.

    Args:
        settings: which Kafka.
        names: of topics that are there.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
    """
    with admin_client(settings, "describe topics") as client:
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
            raise BrokerRefusedError(f"create topic {answer['name']}", reason=reason)
    client.wait_for_topics(list(wanted))


def _differences(client: KafkaAdminClient, specs: Sequence[TopicSpec]) -> list[Difference]:
    if not specs:
        return []
    partitions, configs = _described(client, [spec.name for spec in specs])
    differences: list[Difference] = []
    for spec in specs:
        values = {name: str(config["value"]) for name, config in configs.get(spec.name, {}).items()}
        differences += compare_topic(spec, partitions=partitions.get(spec.name, []), configs=values)
    return differences


def _described(client: KafkaAdminClient, names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask for partitions and settings of topics, by topic.

    Any broker may answer, also one that has not yet heard of a topic just made: it knows no settings of it at all,
    while a topic always has some. So it is asked again for a while.
    """
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    give_up_at = time.monotonic() + PROPAGATION_SECONDS
    while True:
        partitions = {topic["name"]: topic["partitions"] for topic in client.describe_topics(names)}
        configs = client.describe_configs(resources, config_filter="all")["topic"]
        is_whole = all(partitions.get(name) and configs.get(name) for name in names)
        if is_whole or time.monotonic() > give_up_at:
            break
        time.sleep(_RETRY_SECONDS)
    if hidden := [name for name in names if partitions.get(name) and not configs.get(name)]:
        raise BrokerRefusedError(
            f"describe the settings of {', '.join(hidden)}",
            reason="it shows no settings",
            next_step="give this user the right DescribeConfigs on these topics",
        )
    return partitions, configs


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


class ClosingAdminClient(KafkaAdminClient):  # type: ignore[misc] # the library has no types
    """Closes what it opened when the first contact fails; the library's own leaves its thread and its socket behind."""

    def __init__(self, **configs: Any) -> None:
        try:
            super().__init__(**configs)
        except BaseException:
            self._closed = False
            self.close()
            raise


def _wait_until_a_broker_listens(servers: str, give_up_at: float) -> None:
    """Connect to each address until one accepts; raise the last `OSError` when time is up.

    The library would do that too, but leaves a socket open for each attempt that fails, and tries 20 times a second.
    """
    while True:
        for server in servers.split(","):
            host, _, port = server.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
            except OSError:
                if time.monotonic() + _RETRY_SECONDS > give_up_at:
                    raise
            else:
                return
        time.sleep(_RETRY_SECONDS)


@contextlib.contextmanager
def admin_client(
    settings: Settings,
    operation: str,
    *,
    next_step: str = "give this user the right to do so",
    first_answer_seconds: float | None = None,
) -> Iterator[KafkaAdminClient]:
    """Open kafka-python's client for administration, once a broker listens, and close it.

    Args:
        settings: where Kafka is and how to speak with it.
        operation: what Kafka is to do, for errors, as `look at topics`.
        next_step: what to do when this user may not do that.
        first_answer_seconds: how long to wait for a broker that listens; `admin_timeout_seconds` by default.

    Raises:
        SettingsError: the certificate files cannot be used.
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
    """
    first_answer_seconds = first_answer_seconds or settings.admin_timeout_seconds
    servers = settings.required_bootstrap_servers()
    try:
        security = settings.security_arguments(KafkaPythonTokens)
    except OSError as error:  # also SSLError
        problem = f"cannot use the files for certificates or a token: {error}"
        names = ["ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_oauth_token_file"]
        raise SettingsError(problem, names=names) from error
    client = None
    give_up_at = time.monotonic() + first_answer_seconds
    try:
        _wait_until_a_broker_listens(servers, give_up_at)
        client = ClosingAdminClient(
            bootstrap_servers=servers.split(","),
            client_id=settings.client_id,
            bootstrap_timeout_ms=max(1, int((give_up_at - time.monotonic()) * 1000)),
            reconnect_backoff_ms=int(_RETRY_SECONDS * 1000),
            request_timeout_ms=int(settings.request_timeout_seconds * 1000),
            **security,
        )
        yield client
    except (KafkaTimeoutError, KafkaConnectionError, NodeNotReadyError, OSError) as error:
        raise BrokerUnreachableError(servers, waited_seconds=first_answer_seconds) from error
    except AuthorizationError as error:
        reason = f"{type(error).__name__}: {error}"
        raise BrokerRefusedError(operation, reason=reason, next_step=next_step) from error
    except KafkaError as error:
        raise BrokerRefusedError(operation, reason=f"{type(error).__name__}: {error}") from error
    finally:
        if client is not None:
            client.close()
