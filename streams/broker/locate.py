"""Find a Kafka: the one in the settings, else a container, else the embedded one.

For trying out and for tests. In production `settings.required_bootstrap_servers()` names the Kafka, and nothing is
started.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Literal

import structlog

from evictstream.streams.broker.container import IMAGE, container_broker, engine_answers
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.jars import kafka_classpath
from evictstream.streams.errors import ContainerUnavailableError
from evictstream.streams.settings import Settings

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """A Kafka to use.

    Attributes:
        kind: `settings`: left running afterwards. `container` and `embedded`: started here, ended afterwards.
        bootstrap_servers: its addresses, `host:port,host:port`.
        description: which one it is, for people.
    """

    kind: Literal["settings", "container", "embedded"]
    bootstrap_servers: str
    description: str


@contextlib.contextmanager
def locate(settings: Settings) -> Iterator[Broker]:
    """Find or start a Kafka, log which one, and end it afterwards if it was started here.

    A container engine that answers but cannot start the container (no image, no room) is logged and passed over.
    The Kafka of the settings is not contacted here; its first client sees whether it answers.

    Raises:
        EmbeddedBrokerError: nothing else was there and the embedded one could not be had.
    """
    with contextlib.ExitStack() as stack:
        broker = _from_settings(settings) or _from_container(stack) or _embedded(stack, settings)
        _log.info("Kafka found", kind=broker.kind, bootstrap_servers=broker.bootstrap_servers, which=broker.description)
        yield broker


def _from_settings(settings: Settings) -> Broker | None:
    if settings.bootstrap_servers is None:
        return None
    return Broker("settings", settings.bootstrap_servers, f"the Kafka at {settings.bootstrap_servers}")


def _from_container(stack: contextlib.ExitStack) -> Broker | None:
    if not engine_answers():
        return None
    try:
        servers = stack.enter_context(container_broker())
    except ContainerUnavailableError as error:
        _log.warning("Kafka container not started", problem=error.problem)
        return None
    return Broker("container", servers, f"a container of {IMAGE}")


def _embedded(stack: contextlib.ExitStack, settings: Settings) -> Broker:
    kafka_classpath(settings.kafka_repository)  # downloads what is missing
    broker = stack.enter_context(EmbeddedBroker())
    return Broker("embedded", broker.bootstrap_servers, broker.description)
