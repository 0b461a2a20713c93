"""kafka-python's client for administration, opened once a broker answers, and what a cluster says of itself.

Both wait at most `admin_timeout_seconds` for the first answer, and `request_timeout_seconds` for each further one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
)

from evictstream.streams.broker.clients import KafkaPythonTokens
from evictstream.streams.broker.first_contact import CONTACT_AGAIN_SECONDS, KafkaFacts, first_contact
from evictstream.streams.errors import BrokerError, BrokerRefusedError, BrokerUnreachableError, SettingsError
from evictstream.streams.settings import Settings

PROBE_TIMEOUT_SECONDS = 2.0
"""For asking a broker on loopback whether it is up, again and again."""


class ClosingAdminClient(KafkaAdminClient):  # type: ignore[misc] # the library has no types
    """Closes what it opened when it cannot start; the library's own leaves its thread and its socket behind.

    Attributes:
        facts: what Kafka has said of itself; `admin_client` sets it.
    """

    facts: KafkaFacts

    def __init__(self, **configs: Any) -> None:
        try:
            super().__init__(**configs)
        except BaseException:
            self._closed = False
            self.close()
            raise


@contextlib.contextmanager
def admin_client(
    settings: Settings,
    operation: str,
    *,
    next_step: str = "give this user the right to do so",
    first_answer_seconds: float | None = None,
    is_told: bool = True,
) -> Iterator[ClosingAdminClient]:
    """Open kafka-python's client for administration, once a broker answers, and close it.

    Args:
        settings: where Kafka is and how to speak with it.
        operation: what Kafka is to do, for errors, as `look at topics`.
        next_step: what to do when this user may not do that.
        first_answer_seconds: how long to wait for a broker that answers; `admin_timeout_seconds` by default.
        is_told: whether the log says what is waited for.

    Raises:
        SettingsError: the certificate files cannot be used.
        BrokerUnreachableError: no broker answered in time.
        BrokerUnusableError: what answers does not fit the settings.
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
        facts = first_contact(
            servers, security, client_id=settings.client_id, wait_seconds=first_answer_seconds, is_told=is_told
        )
        client = ClosingAdminClient(
            bootstrap_servers=servers.split(","),
            client_id=settings.client_id,
            bootstrap_timeout_ms=max(1, int((give_up_at - time.monotonic()) * 1000)),
            reconnect_backoff_ms=int(CONTACT_AGAIN_SECONDS * 1000),
            request_timeout_ms=int(settings.request_timeout_seconds * 1000),
            **security,
        )
        client.facts = facts
        yield client
    except (KafkaTimeoutError, KafkaConnectionError, NodeNotReadyError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise BrokerUnreachableError(servers, waited_seconds=first_answer_seconds, reason=reason) from error
    except AuthorizationError as error:
        reason = f"{type(error).__name__}: {error}"
        raise BrokerRefusedError(operation, reason=reason, next_step=next_step) from error
    except KafkaError as error:
        raise BrokerRefusedError(operation, reason=f"{type(error).__name__}: {error}") from error
    finally:
        if client is not None:
            client.close()


@dataclasses.dataclass(frozen=True, slots=True)
class Probe:
    """What a cluster says of itself: its id, and how many of its brokers take part now."""

    cluster_id: str
    active_brokers: int


def probe(bootstrap_servers: str) -> Probe | None:
    """Ask an unprotected cluster; `None` without an answer within 2 s."""
    try:
        settings = Settings(bootstrap_servers=bootstrap_servers)
        with admin_client(
            settings, "describe the cluster", first_answer_seconds=PROBE_TIMEOUT_SECONDS, is_told=False
        ) as client:
            answer = client.describe_cluster()
    except BrokerError:
        return None
    # A broker that went away stays on the list, fenced.
    active = [broker for broker in answer["brokers"] if not broker.get("is_fenced", False)]
    return Probe(cluster_id=answer["cluster_id"], active_brokers=len(active))
