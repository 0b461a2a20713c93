"""How each command that speaks with Kafka is called, so that a test can have them all."""

from __future__ import annotations

from typing import Final

from tests.streams.cli.command_tree import commands, options_of

EVENT: Final = b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n","uid":"u","resourceVersion":"1"}}}\n'
"""What is given to a command that reads standard input."""

_OF_CLUSTER: Final = "--cluster lab --kubeconfig {kubeconfig}"

CONNECTING: Final = {
    "accept-gap": "--yes",
    "cluster forget": "lab --yes --wait 1",
    "commands": "--idle-seconds 1",
    "conformance executor": "-- false",
    "conformance feed": "-- false",
    "dead-letters resend": "nodes/0/0 --yes",
    "dead-letters show": "nodes/0/0",
    "demo": "-b {servers} --no-kill --incident {incident}",
    "describe node": "nobody",
    "describe pod": "shop/nobody",
    "execute": _OF_CLUSTER,
    "explain": "shop/nobody",
    "feed": _OF_CLUSTER,
    "get clusters": "",
    "get dead-letters": "",
    "get evictions": "",
    "get nodes": "",
    "hold": "--all --why test --for 1m",
    "holds": "",
    "incidents approve": "0000000000 --why test",
    "incidents list": "",
    "incidents reject": "0000000000 --why test",
    "incidents show": "0000000000",
    "policy apply": "examples/policies/agents.yaml",
    "policy delete": "nothing --why test",
    "policy diff": "examples/policies/agents.yaml",
    "policy get": "",
    "import": "- --cluster lab",
    "record": "{folder}/recorded",
    "release": "nothing --why test",
    "replay": "",
    "shadow": "",
    "status": "",
    "topics check": "",
    "topics declare": "",
    "what-if": "--cordon --nodes n",
    "worker": "",
}
"""Each of them with the rest of its command line. Places that a test fills: folder, incident, kubeconfig, servers."""

ALONE: Final = {
    "broker",
    "completion",
    "config",
    "handover check",
    "handover move",
    "handover policy",
    "handover restore",
    "policy test",
    "rules taint",
    "rules tolerations",
    "rules verdict",
    "schema",
    "version",
}
"""The others, which need no Kafka."""


def takes_json(name: str) -> bool:
    """Whether a command prints JSON if `-o json` asks for it."""
    return name in _JSON


def command_line(name: str, *more: str, **places: object) -> list[str]:
    """What is typed after `evictstream`, with `more` behind the command's name."""
    return [*name.split(), *more, *CONNECTING[name].format(**places).split()]


_JSON: Final = {" ".join(words) for words, command in commands() if "--output" in options_of(command)}
