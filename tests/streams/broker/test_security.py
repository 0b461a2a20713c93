"""Each way to log in that settings offer, against a broker that asks for it: both clients, and a wrong secret.

SASL_SSL with PLAIN is in `tests/streams/cli/test_secrets.py`.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from evictstream.kit.demo.workers import environment
from evictstream.streams.broker.admin import check_topics, declare_topics
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.errors import BrokerUnusableError
from evictstream.streams.settings import Settings
from tests.harness import copies
from tests.harness.secured import CLIENT_KEY_PASSWORD, CLIENT_PEM, PASSWORD, secured_ways, server_tls
from tests.streams.cli.running import COMMAND, PATIENCE_SECONDS, ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LOGIN = "org.apache.kafka.common.security"
SCRAM, OAUTH, TLS = (f"listener.name.detour{number}" for number in range(3))
WAYS = [pytest.param("oauth"), *(pytest.param(way, marks=pytest.mark.kit) for way in ("scram", "tls"))]


def token(lifetime_seconds: float) -> str:
    """A token without a signature, as Kafka's own validator for trials takes it."""
    now = time.time()
    claims = {"sub": "alice", "iat": now - 1_000, "exp": now + lifetime_seconds}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return "".join(f"{base64.urlsafe_b64encode(part).decode().rstrip('=')}." for part in parts)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Settings for each way, and under `wrong` what is to be changed so that the broker lets nobody in."""
    folder = tmp_path_factory.mktemp("security")
    trusted, held, expired = folder / "clients.pem", folder / "token", folder / "expired"
    trusted.write_text(CLIENT_PEM.read_text().partition("-----BEGIN ENCRYPTED")[0])
    held.write_text(token(3_600))
    expired.write_text(token(-500))
    tls, authority = server_tls(folder, TLS)
    properties = tls | {
        f"{SCRAM}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{SCRAM}.scram-sha-512.sasl.jaas.config": f"{LOGIN}.scram.ScramLoginModule required;",
        f"{OAUTH}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OAUTH}.oauthbearer.sasl.jaas.config": (
            f'{LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        f"{TLS}.ssl.client.auth": "required",
        f"{TLS}.ssl.truststore.type": "PEM",
        f"{TLS}.ssl.truststore.location": str(trusted),
    }
    with secured_ways(["SASL_PLAINTEXT", "SASL_PLAINTEXT", "SSL"], properties) as (plain, (scram, oauth, by_tls)):
        with admin_client(Settings(bootstrap_servers=plain), "make a user") as admin:
            user: Any = UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_512, PASSWORD)
            assert admin.alter_user_scram_credentials([user]) == {"alice": None}
        yield {
            "scram": {
                "bootstrap_servers": scram,
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_username": "alice",
                "sasl_password": PASSWORD,
                "wrong": {"sasl_password": "not-hers"},
            },
            "oauth": {
                "bootstrap_servers": oauth,
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauth_token_file": str(held),
                "wrong": {"sasl_oauth_token_file": str(expired)},
            },
            "tls": {
                "bootstrap_servers": by_tls,
                "security_protocol": "SSL",
                "ssl_cafile": str(authority),
                "ssl_certfile": str(CLIENT_PEM),
                "ssl_password": CLIENT_KEY_PASSWORD,
                "wrong": {"ssl_certfile": None, "ssl_password": None},
            },
        }


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, ways: dict[str, dict[str, Any]]) -> dict[str, Any]:
    own = {"partitions": 1, "topic_prefix": f"{request.param}.", "application_id": request.param}
    return ways[request.param] | own


def test_a_worker_works_with_the_right_secret(way: dict[str, Any]) -> None:
    settings = Settings.model_validate({name: value for name, value in way.items() if name != "wrong"})
    declare_topics(settings)
    with copies.start(
        [*COMMAND, "worker"], env=environment(settings), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        said = b""
        for line in process.stdout:
            said += line
            if b"partitions taken over" in line:
                process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0, said.decode()[-2000:]
    assert b"partitions taken over" in said


def test_nobody_gets_in_with_a_wrong_one(way: dict[str, Any]) -> None:
    settings = Settings.model_validate(way | way.pop("wrong"))
    with pytest.raises(BrokerUnusableError):
        check_topics(settings)
