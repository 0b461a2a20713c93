"""The schema of the chart's values: `python -m tests.deploy.chart_schema` writes it.

The settings are those of the program, with its own types and limits, so that a wrong one is refused before anything is
installed. What Kubernetes defines, such as tolerations, is left to the API server.
"""

from __future__ import annotations

import json
from typing import Any, Final

from evictstream.models.messages.fleet import (
    LONGEST_LABEL_KEY,
    LONGEST_LABEL_VALUE,
    LONGEST_PROFILE_NAME,
    LONGEST_PROFILE_NAMESPACE,
    MOST_CLUSTER_LABELS,
)
from evictstream.streams.handover.policy_objects import MOST_MORE
from evictstream.streams.settings import Settings
from tests.deploy.pages import ROOT

SCHEMA: Final = ROOT / "deploy" / "chart" / "values.schema.json"

# Settings that the chart makes of other values, that differ from pod to pod, or that nobody should set.
OWN: Final = frozenset(
    {
        "bootstrap_servers",
        "security_protocol",
        "ssl_cafile",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_password",
        "sasl_mechanism",
        "sasl_username",
        "sasl_password",
        "sasl_oauth_token_file",
        "health_host",
        "health_port",
        "group_instance_id",
        "state_version",
        "kafka_repository",
    }
)
_RULES: Final = ("type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern")

Schema = dict[str, Any]

_ADDRESS: Final = r"([^\s:,]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}"
_FLAG: Final[Schema] = {"type": "boolean"}
_TEXT: Final[Schema] = {"type": "string"}
_GIVEN: Final[Schema] = {"type": "string", "minLength": 1}
_NAME: Final[Schema] = {"type": "string", "maxLength": 253, "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"}
_GIVEN_NAME: Final[Schema] = {**_NAME, "minLength": 1}
_GIVEN_NAMESPACE: Final[Schema] = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
_PORT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 65535}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
# As evictstream.streams.feed.cluster_labels reads them.
_WORD: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_CLUSTER_LABELS: Final[Schema] = {
    "type": "object",
    "maxProperties": MOST_CLUSTER_LABELS,
    "propertyNames": {"pattern": f"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_WORD}$", "maxLength": LONGEST_LABEL_KEY},
    "additionalProperties": {"type": "string", "maxLength": LONGEST_LABEL_VALUE, "pattern": f"^({_WORD})?$"},
}
# As evictstream.streams.feed.cluster_profile reads it.
_PROFILE: Final[Schema] = {
    "type": "string",
    "maxLength": LONGEST_PROFILE_NAMESPACE + 1 + LONGEST_PROFILE_NAME,
    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
}
_OBJECT: Final[Schema] = {"type": "object"}
_OBJECTS: Final[Schema] = {"type": "array", "items": _OBJECT}
_MODE: Final[Schema] = {"enum": ["observe", "delete", "evict", "request"]}
_AMOUNTS: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number"], "pattern": "^[0-9.]+([mkMGTPE]|[KMGTPE]i)?$"},
}


def _closed(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    more = {"required": list(required)} if required else {}
    return {"type": "object", "additionalProperties": False, "properties": properties, **more}


_RESOURCES: Final = _closed({"requests": _AMOUNTS, "limits": _AMOUNTS})
_PROGRAM: Final[Schema] = {"enabled": _FLAG, "replicas": {"type": "integer", "minimum": 0}, "resources": _RESOURCES}


def _where(condition: Schema, then: Schema) -> Schema:
    return {"if": {"properties": condition}, "then": {"properties": then}}


def _present(name: str, its: Schema) -> Schema:
    return {"required": [name], "properties": {name: its}}


def settings_schema() -> Schema:
    """Return the settings that values may have, each with the rules of the program."""
    found = {}
    for name, its in Settings.model_json_schema()["properties"].items():
        if name not in OWN:
            # `null` is Helm's word for a default that is taken away.
            (rules,) = [each for each in its.get("anyOf", [its]) if each.get("type") != "null"]
            found[name] = {rule: rules[rule] for rule in _RULES if rule in rules}
    return _closed(dict(sorted(found.items())))


def _kafka() -> Schema:
    user = _closed({"secretName": _NAME, "username": _TEXT})
    users = {
        program: _closed({"secretName": _GIVEN_NAME, "username": _TEXT}, ("secretName",))
        for program in ("worker", "feed", "executor", "topics")
    }
    tls = _closed(
        {
            "enabled": _FLAG,
            "caSecretName": _NAME,
            "clientCertificate": _FLAG,
            "certificateKey": _GIVEN,
            "privateKeyKey": _GIVEN,
        }
    ) | _where({"enabled": {"const": False}}, {"caSecretName": {"const": ""}, "clientCertificate": {"const": False}})
    passwords = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    # Required too: `null` takes the default away.
    secret = _present("user", _present("secretName", _GIVEN_NAME))
    return _closed(
        {
            "bootstrapServers": {**_GIVEN, "pattern": f"^({_ADDRESS}(,{_ADDRESS})*)?$"},
            "tls": tls,
            "sasl": _closed({"mechanism": {"enum": ["", *passwords, "OAUTHBEARER"]}, "tokenAudience": _GIVEN}),
            "user": user,
            "users": _closed(users),
        },
        ("bootstrapServers",),
    ) | {
        "allOf": [
            {"if": _present("sasl", _present("mechanism", {"enum": passwords})), "then": secret},
            {"if": _present("tls", _present("clientCertificate", {"const": True})), "then": secret},
        ]
    }


def schema() -> Schema:
    """Return the schema of all values. Draft 7, which every Helm 3 and 4 reads."""
    cluster = _closed(
        {
            "name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^/=]+$"},
            "context": _GIVEN,
            "mode": _MODE,
            "profile": _PROFILE,
        },
        ("name",),
    )
    values = {
        "global": _OBJECT,  # Helm's own, where the chart is part of another one
        "image": _closed(
            {
                "repository": {"type": "string", "minLength": 1, "pattern": r"^[^\s@]*$"},
                "tag": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{0,128}$"},
                "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
                "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
            },
            ("repository",),
        ),
        "imagePullSecrets": {"type": "array", "items": _GIVEN_NAME},
        "clusters": {"type": "array", "items": cluster},
        "kubeconfigSecretName": _NAME,
        "kafka": _kafka(),
        "settings": settings_schema(),
        "topics": _closed(
            {
                "enabled": _FLAG,
                "ttlSecondsAfterFinished": {"type": ["integer", "null"], "minimum": 0},
                "resources": _RESOURCES,
            }
        ),
        "worker": _closed(_PROGRAM),
        "feed": _closed(
            {
                **_PROGRAM,
                "newEpoch": _FLAG,
                "labels": _CLUSTER_LABELS,
                "hub": _closed({"kubeconfigSecretName": _NAME, "context": _TEXT}),
            }
        ),
        "executor": _closed(
            {
                **_PROGRAM,
                "mode": _MODE,
                "deleteAfterSeconds": {"type": ["number", "null"], "minimum": 0},
                "rate": {"type": "number", "minimum": 0.01},
                "burst": {"type": "integer", "minimum": 1},
                "events": {"enum": ["none", "evictions", "all"]},
            }
        ),
        # A user that is not root may listen from 1024 on.
        "health": _closed({"port": {**_PORT, "minimum": 1024}}),
        "rbac": _closed({"create": _FLAG}),
        "handover": _closed(
            {
                "enabled": _FLAG,
                "builtIn": {"type": ["boolean", "null"]},
                "more": {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_MORE},
                "guard": _FLAG,
                "excludedNamespaces": {"type": "array", "items": _GIVEN_NAMESPACE},
            }
        ),
        "networkPolicy": _closed(
            {
                "enabled": _FLAG,
                "scrapers": _OBJECTS,
                "kafkaPorts": {"type": "array", "items": _PORT},
                "apiServerPorts": {"type": "array", "minItems": 1, "items": _PORT},
                "egress": _OBJECTS,
            }
        ),
        "podDisruptionBudget": _closed({"enabled": _FLAG}),
        "serviceMonitor": _closed(
            {"enabled": _FLAG, "labels": _TEXTS, "interval": {"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"}}
        ),
        "prometheusRule": _closed({"enabled": _FLAG, "labels": _TEXTS}),
        "dashboards": _closed({"enabled": _FLAG, "labels": _TEXTS}),
        "nodeSelector": _TEXTS,
        "tolerations": _OBJECTS,
        "affinity": _OBJECT,
        "priorityClassName": _NAME,
        "podAnnotations": _TEXTS,
        "podSecurityContext": _OBJECT,
        # Names of pods begin with it, and end with what 63 characters have to hold too.
        "fullnameOverride": {"type": "string", "maxLength": 40, "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$"},
    }
    one_cluster = {"clusters": {"maxItems": 1, "items": {"properties": {"context": {"maxLength": 0}}}}}
    no_hub = {"feed": {"properties": {"hub": {"properties": {"kubeconfigSecretName": {"const": ""}}}}}}
    no_context = {"feed": {"properties": {"hub": {"properties": {"context": {"maxLength": 0}}}}}}
    no_policy = {"handover": {"properties": {"enabled": {"const": False}, "builtIn": {"enum": [False, None]}}}}
    no_program = {program: {"properties": {"enabled": {"const": False}}} for program in ("feed", "executor")}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart evictstream",
        **_closed(values, ("image", "clusters", "kafka")),
        "allOf": [
            _where({"kubeconfigSecretName": {"const": ""}}, one_cluster),
            _where({"kubeconfigSecretName": {"const": ""}} | no_hub, no_context),
            _where({"kubeconfigSecretName": {"minLength": 1}}, no_policy),
            {"if": {"not": {"properties": no_program}}, "then": {"properties": {"clusters": {"minItems": 1}}}},
        ],
    }


def written() -> str:
    """Return the text of the file."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(written(), encoding="utf-8")
