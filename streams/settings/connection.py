"""How to reach Kafka: addresses, TLS, SASL. Passed unchanged to every client."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr

from evictstream.streams.errors import SettingsError
from evictstream.streams.settings.group import SettingsGroup, matching
from evictstream.streams.settings.secrets import HiddenText

_PORT = r"(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_ADDRESS = rf"(?:[^\s:,]+|\[[0-9a-fA-F:]+\]):{_PORT}"

Addresses = Annotated[str, matching(f"{_ADDRESS}(?:,{_ADDRESS})*", "write host:port, with commas between several")]
"""One or more `host:port` with commas between; an IPv6 address in brackets, a port from 1 to 65535.

The system would take a larger port modulo 65536, and so reach somebody else."""

_REGION = rf"[a-z0-9][a-z0-9-]*={_ADDRESS}(?:,{_ADDRESS})*"


def _each_once(text: str) -> str:
    names = [region.split("=", 1)[0] for region in text.split()]
    if len(set(names)) < len(names):
        raise ValueError("a region is there twice; name each once, with all its addresses")
    return text


Regions = Annotated[
    str,
    matching(f"{_REGION}(?: +{_REGION})*", "write NAME=host:port,host:port for each, with spaces between them"),
    AfterValidator(_each_once),
]
"""The Kafka of each region, by a name of small letters, digits and hyphens."""

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


def _read_token(path: Path) -> HiddenText:
    return HiddenText(path.read_text(encoding="utf-8").strip())


class ConnectionSettings(SettingsGroup):
    """Where Kafka is, and how clients authenticate."""

    bootstrap_servers: Addresses | None = None
    """Kafka's addresses, `host:port,host:port`. Also read from KAFKA_BOOTSTRAP_SERVERS. Without it, all commands that
    need Kafka refuse to start: a guessed address could be a production Kafka. `evictstream demo` starts its own, and
    uses another only with `-b`."""

    regions: Regions | None = None
    """The Kafka of each region, `eu=host:port,host:port us=host:port`. `hold`, `release` and `holds` ask each of them,
    unless `-b` names one. All other settings are the same for all of them. See docs/regions.md."""

    client_id: str = "evictstream"
    """Name in Kafka's logs, metrics and quotas."""

    security_protocol: SecurityProtocol = "PLAINTEXT"
    """Plain by default because the default Kafka is on loopback."""

    ssl_cafile: str | None = None
    """PEM file with the trusted authorities. Without it, the system's."""

    ssl_certfile: str | None = None
    """PEM file with the client's certificate, for mutual TLS."""

    ssl_keyfile: str | None = None
    """PEM file with the key of the client's certificate, if it is in a separate file."""

    ssl_password: SecretStr | None = None
    """Password of the key file. `EVICTSTREAM_SSL_PASSWORD_FILE` names a file that has it."""

    sasl_mechanism: SaslMechanism | None = None
    """Needed with a SASL protocol. `OAUTHBEARER` takes a token, the others a name and a password."""

    sasl_username: str | None = None
    """Name for SASL."""

    sasl_password: SecretStr | None = None
    """Password for SASL. `EVICTSTREAM_SASL_PASSWORD_FILE` names a file that has it."""

    sasl_oauth_token_file: str | None = None
    """File with the token for `OAUTHBEARER`, such as a projected token of a Kubernetes service account. It is read for
    each connection, so whoever renews the token only replaces the file."""

    request_timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Longest wait for a response of the broker. 30 s outlast a leader change; Kafka's own clients use the same."""

    admin_timeout_seconds: Annotated[float, Field(gt=0)] = 15.0
    """Longest wait until Kafka first answers an administrative command. A person waits for it."""

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol in {"SSL", "SASL_SSL"}

    @property
    def uses_sasl(self) -> bool:
        """Whether a name and a password, or a token, are sent."""
        return self.security_protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    def required_bootstrap_servers(self) -> str:
        """Return the addresses, or raise `SettingsError` if none are set."""
        if self.bootstrap_servers is None:
            problem = "no Kafka is set"
            next_step = "set EVICTSTREAM_BOOTSTRAP_SERVERS; `evictstream broker` starts one for trying out"
            raise SettingsError(problem, names=["bootstrap_servers"], next_step=next_step)
        return self.bootstrap_servers

    def servers_of_regions(self) -> dict[str, str]:
        """Return the addresses of each region, by its name; empty if no regions are set."""
        return dict(region.split("=", 1) for region in (self.regions or "").split())

    def security_arguments(self, token_provider: Callable[[Callable[[], str]], object]) -> dict[str, Any]:
        """Return security arguments that aiokafka's and kafka-python's clients take alike.

        Reads the files of certificates and token, so it raises `OSError` or `ssl.SSLError` for files that cannot be
        used. Host names are always checked. The result holds the password: never log it.

        Args:
            token_provider: makes what the client asks for tokens, from a function that reads one.
        """
        arguments: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.uses_tls:
            context = ssl.create_default_context(cafile=self.ssl_cafile)
            if self.ssl_certfile is not None:
                password = None if self.ssl_password is None else self.ssl_password.get_secret_value()
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, password)
            arguments["ssl_context"] = context
        if self.uses_sasl:
            arguments["sasl_mechanism"] = self.sasl_mechanism
        if self.uses_sasl and self.sasl_oauth_token_file is not None:
            read = functools.partial(_read_token, Path(self.sasl_oauth_token_file))
            read()  # a file that is missing is found now, not by a client that goes on trying
            arguments["sasl_oauth_token_provider"] = token_provider(read)
        elif self.uses_sasl:
            arguments["sasl_plain_username"] = self.sasl_username
            arguments["sasl_plain_password"] = (
                None if self.sasl_password is None else HiddenText(self.sasl_password.get_secret_value())
            )
        return arguments
