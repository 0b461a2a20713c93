"""A broker that asks for rights, its users, and the rights that docs/kafka-rights.md gives them."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafka.admin import ACL, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType

from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.properties import Detour
from evictstream.streams.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "kafka-rights.md").read_text(encoding="utf-8")
DOMAIN = "evictstream"
PASSWORD = "of-everybody"

LETTERS = {"R": "READ", "W": "WRITE", "C": "DESCRIBE_CONFIGS", "+": "CREATE", "D": "DESCRIBE"}
IMPLYING = {"READ", "WRITE"}


def table_of_rights() -> dict[str, dict[str, set[str]]]:
    """Return the page's table: operations by user, as its column is called, and by the first cell of the row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    start = next(number for number, row in enumerate(rows) if row[1:3] == ["worker", "feed"])
    users = rows[start][1:]
    found: dict[str, dict[str, set[str]]] = {user: {} for user in users}
    for first, *cells in rows[start + 2 :]:
        if len(cells) != len(users):
            break
        for user, cell in zip(users, cells, strict=True):
            operations = {LETTERS[letter] for letter in cell.split()}
            found[user][first] = operations | ({"DESCRIBE"} if operations & IMPLYING else set())
    return found


def acls_of_page(domain: str) -> list[ACL]:
    """Return what the page's commands make, for an application and a prefix of another name."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    for option in ("--allow-principal", "--operation", "--topic", "--group", "--transactional-id"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("--resource-pattern-type", choices=["prefixed"], default="literal")
    found: list[ACL] = []
    for line in PAGE.replace("\\\n", " ").splitlines():
        if line.startswith("acls "):
            found += _acls(parser.parse_args(shlex.split(line.replace(DOMAIN, domain))[1:]))
    return found


def _acls(given: argparse.Namespace) -> Iterator[ACL]:
    pattern = ACLResourcePatternType[given.resource_pattern_type.upper()]
    kinds = {ResourceType.TOPIC: given.topic, ResourceType.GROUP: given.group}
    kinds[ResourceType.TRANSACTIONAL_ID] = given.transactional_id
    for principal in given.allow_principal:
        for word in given.operation:
            operation = ACLOperation["DESCRIBE_CONFIGS" if word == "DescribeConfigs" else word.upper()]
            for kind, names in kinds.items():
                for name in names:
                    place = ResourcePattern(kind, name, pattern)
                    yield ACL(principal, "*", operation, ACLPermissionType.ALLOW, place)


@dataclasses.dataclass(frozen=True)
class RightsBroker:
    """A broker that gives nothing to anybody but what the page says, in some domains of trust."""

    everything: str
    secured: str

    def settings(self, domain: str, user: str | None = None, **more: object) -> Settings:
        """Return settings of a domain, for one of its users; without one, for somebody who may do everything."""
        names: dict[str, object] = {"topic_prefix": f"{domain}.", "application_id": domain, "partitions": 2}
        if user is None:
            return Settings.model_validate({"bootstrap_servers": self.everything, **names, **more})
        sasl = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_password": PASSWORD}
        login = {"bootstrap_servers": self.secured, "sasl_username": f"{domain}-{user}"}
        return Settings.model_validate({**login, **sasl, **names, **more})


@contextlib.contextmanager
def rights_broker(domains: Sequence[str]) -> Iterator[RightsBroker]:
    """Start one whose second listener asks for a password; the first is of the operator who may do everything."""
    acls = [acl for domain in domains for acl in acls_of_page(domain)]
    users = sorted({str(acl.principal).removeprefix("User:") for acl in acls})
    login = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    way = "listener.name.detour0"
    broker = EmbeddedBroker(
        detours=1,
        properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",  # the first listener, and the broker itself
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,DETOUR0:SASL_PLAINTEXT",
            f"{way}.sasl.enabled.mechanisms": "PLAIN",
            f"{way}.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};"
            ),
        },
    )
    node = broker.nodes[0]
    port = node.address.detours[0].listen_port
    node.address = dataclasses.replace(node.address, detours=(Detour(port, port),))  # a way that is straight
    with broker:
        found = RightsBroker(str(broker.bootstrap_servers), f"127.0.0.1:{port}")
        with admin_client(found.settings(DOMAIN), "give rights") as admin:
            done: Any = admin.create_acls(acls)
            assert not done["failed"], done["failed"]
        yield found
