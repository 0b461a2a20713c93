"""Values of the chart: those that have to be given, some that all must work, and wrong ones, one of each kind."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

Values = dict[str, Any]

LEAST: Final[Values] = {
    "image": {"repository": "registry.example/evictstream"},
    "kafka": {"bootstrapServers": "kafka-1:9092,kafka-2:9092"},
    "clusters": [{"name": "prod-eu-1"}],
}


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> Values:
    """Merge as Helm does: mappings key by key, everything else as a whole; null takes away what is there."""
    found = copy.deepcopy(dict(base))
    for name, value in change.items():
        below = found.get(name)
        if name in found and value is None:
            del found[name]
        else:
            found[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return found


MANY: Final[Values] = {
    "kubeconfigSecretName": "fleet",
    "clusters": [{"name": "prod-eu-1", "context": "admin@eu"}, {"name": "prod us", "context": "us", "mode": "evict"}],
}
SECURED: Final[Values] = {
    "kafka": {
        "tls": {"enabled": True, "caSecretName": "kafka-ca", "clientCertificate": True, "certificateKey": "user.crt"},
        "sasl": {"mechanism": "SCRAM-SHA-512"},
        "user": {"secretName": "evictstream-kafka"},
        "users": {
            "executor": {"secretName": "evictstream-executor-kafka", "username": "acts"},
            "topics": {"secretName": "evictstream-operator-kafka"},
        },
    }
}

# What all must render, pass the API server, and give commands that the program takes.
LABELS: Final = {"tier": "gold", "topology.example.com/site": "fra", "empty": ""}
"""Of clusters, as the feed takes them."""

TAKEN: Final[dict[str, Values]] = {
    "least": {},
    "delete": {"executor": {"mode": "delete", "rate": 0.5, "events": "all"}},
    "evict": {"executor": {"mode": "evict", "rate": 1_000_000, "burst": 1_000_000}},
    "request": {"executor": {"mode": "request"}},
    "request, then delete": {"executor": {"mode": "request", "deleteAfterSeconds": 3600}},
    "evict, then delete": {"executor": {"mode": "evict", "deleteAfterSeconds": 3600}},
    "mode of the cluster": {"clusters": [{"name": "prod-eu-1", "mode": "delete"}]},
    "many clusters": MANY,
    "a profile in the hub": {
        "clusters": [{"name": "prod-eu-1", "profile": "fleet/prod-eu-1"}],
        "feed": {"hub": {"kubeconfigSecretName": "hub", "context": "admin@hub"}},
    },
    "a profile in the cluster of the chart": {"clusters": [{"name": "prod-eu-1", "profile": "fleet/prod.eu-1"}]},
    "profiles beside many clusters": {
        "kubeconfigSecretName": "fleet",
        "clusters": [{"name": "prod us", "context": "us", "profile": "fleet/us"}, {"name": "prod-eu-1"}],
        "feed": {"hub": {"context": "admin@hub"}},
    },
    "secured": SECURED,
    "tokens": {"kafka": {"tls": {"enabled": True}, "sasl": {"mechanism": "OAUTHBEARER"}}},
    "workers only": {"clusters": [], "feed": {"enabled": False}, "executor": {"enabled": False}},
    "nothing but programs": {
        "topics": {"enabled": False},
        "rbac": {"create": False},
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
    },
    "handover": {"handover": {"enabled": True}},
    "handover without a backstop": {"handover": {"enabled": True, "more": None, "guard": False}},
    "handover on the way back": {"handover": {"enabled": False, "builtIn": True}},
    "handover of some": {
        "handover": {"enabled": True, "more": 31_536_000, "excludedNamespaces": ["gke-managed-system", "kube-system"]}
    },
    "all there is": {
        "fullnameOverride": "evictions",
        "image": {"tag": "1.2.3", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
        "imagePullSecrets": ["pull"],
        "settings": {"max_object_bytes": 1_000_000, "changelog_dirty_ratio": 0.3, "comparison_operators": True},
        "feed": {"newEpoch": True, "replicas": 1, "labels": LABELS},
        "worker": {"replicas": 16, "resources": {"requests": {"cpu": 2}, "limits": {"memory": "2Gi"}}},
        "health": {"port": 8080},
        "networkPolicy": {
            "scrapers": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
            "kafkaPorts": [9093],
            "egress": [{"ports": [{"protocol": "TCP", "port": 3128}]}],
        },
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "node-role.kubernetes.io/infra", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"sidecar.istio.io/inject": "false"},
        "podSecurityContext": {"runAsUser": 20_000},
    },
}

_KAFKA: Final = LEAST["kafka"]["bootstrapServers"]

# What is wrong, and the path that the refusal has to name.
REFUSED: Final[dict[str, tuple[Values, str]]] = {
    "an unknown name": ({"replicas": 2}, ""),
    "an unknown name further down": ({"worker": {"replica": 2}}, "/worker"),
    "an unknown setting": ({"settings": {"partition": 8}}, "/settings"),
    "a setting that the chart makes": ({"settings": {"health_port": 1}}, "/settings"),
    "a setting in upper case": ({"settings": {"EVICTSTREAM_PARTITIONS": 8}}, "/settings"),
    "a setting of another type": ({"settings": {"partitions": "64"}}, "/settings/partitions"),
    "a setting beyond its limit": ({"settings": {"partitions": 5000}}, "/settings/partitions"),
    "a setting of no choice": ({"settings": {"log_level": "trace"}}, "/settings/log_level"),
    "text for a number": ({"worker": {"replicas": "two"}}, "/worker/replicas"),
    "a fraction": ({"worker": {"replicas": 1.5}}, "/worker/replicas"),
    "below zero": ({"feed": {"replicas": -1}}, "/feed/replicas"),
    "a label with a number": ({"feed": {"labels": {"tier": 1}}}, "/feed/labels/tier"),
    "a label with a space": ({"feed": {"labels": {"tier": "very good"}}}, "/feed/labels/tier"),
    "a profile without a namespace": ({"clusters": [{"name": "a", "profile": "a"}]}, "/clusters/0/profile"),
    "a profile in upper case": ({"clusters": [{"name": "a", "profile": "fleet/A"}]}, "/clusters/0/profile"),
    "a context of a hub without a kubeconfig": ({"feed": {"hub": {"context": "admin@hub"}}}, "/feed/hub/context"),
    "the name of a hub's Secret": (
        {"feed": {"hub": {"kubeconfigSecretName": "Hub_1"}}},
        "/feed/hub/kubeconfigSecretName",
    ),
    "text for a flag": ({"worker": {"enabled": "yes"}}, "/worker/enabled"),
    "no time for the built-in controller": ({"handover": {"more": 0}}, "/handover/more"),
    "a length as text": ({"handover": {"more": "1h"}}, "/handover/more"),
    "a pattern for a namespace": ({"handover": {"excludedNamespaces": ["gke-*"]}}, "/handover/excludedNamespaces/0"),
    "a policy for clusters elsewhere": (
        {"kubeconfigSecretName": "fleet", "handover": {"enabled": True}},
        "/handover/enabled",
    ),
    "a built-in controller elsewhere": (
        {"kubeconfigSecretName": "fleet", "handover": {"builtIn": True}},
        "/handover/builtIn",
    ),
    "a number for text": ({"image": {"tag": 1.2}}, "/image/tag"),
    "no image": ({"image": {"repository": ""}}, "/image/repository"),
    "a digest in the name": ({"image": {"repository": "evictstream@sha256:1"}}, "/image/repository"),
    "a digest that is none": ({"image": {"digest": "sha256:12"}}, "/image/digest"),
    "no Kafka": ({"kafka": {"bootstrapServers": ""}}, "/kafka/bootstrapServers"),
    "Kafka without a port": ({"kafka": {"bootstrapServers": "kafka"}}, "/kafka/bootstrapServers"),
    "Kafka as a list": ({"kafka": {"bootstrapServers": [_KAFKA]}}, "/kafka/bootstrapServers"),
    "no cluster": ({"clusters": []}, "/clusters"),
    "a cluster as text": ({"clusters": ["prod-eu-1"]}, "/clusters/0"),
    "a cluster without a name": ({"clusters": [{"mode": "observe"}]}, "/clusters/0"),
    "a cluster's name with a slash": ({"clusters": [{"name": "arn:aws:eks/shop"}]}, "/clusters/0/name"),
    "two clusters without a kubeconfig": ({"clusters": [{"name": "a"}, {"name": "b"}]}, "/clusters"),
    "a context without a kubeconfig": ({"clusters": [{"name": "a", "context": "c"}]}, "/clusters/0/context"),
    "a mode of a cluster": ({"clusters": [{"name": "a", "mode": "dry-run"}]}, "/clusters/0/mode"),
    "a mode": ({"executor": {"mode": "Delete"}}, "/executor/mode"),
    "events": ({"executor": {"events": True}}, "/executor/events"),
    "a rate of nothing": ({"executor": {"rate": 0}}, "/executor/rate"),
    "a mechanism": ({"kafka": {"sasl": {"mechanism": "GSSAPI"}}}, "/kafka/sasl/mechanism"),
    "a password without a Secret": ({"kafka": {"sasl": {"mechanism": "PLAIN"}}}, "/kafka/user/secretName"),
    "a password, and the Secret taken away": (
        {"kafka": {"sasl": {"mechanism": "PLAIN"}, "user": {"secretName": None}}},
        "/kafka/user",
    ),
    "a password, and no user": ({"kafka": {"sasl": {"mechanism": "SCRAM-SHA-512"}, "user": None}}, "/kafka"),
    "no audience": ({"kafka": {"sasl": {"tokenAudience": ""}}}, "/kafka/sasl/tokenAudience"),
    "a certificate without a Secret": (
        {"kafka": {"tls": {"enabled": True, "clientCertificate": True}}},
        "/kafka/user/secretName",
    ),
    "a certificate, and the Secret taken away": (
        {"kafka": {"tls": {"enabled": True, "clientCertificate": True}, "user": {"secretName": None}}},
        "/kafka/user",
    ),
    "an authority without TLS": ({"kafka": {"tls": {"caSecretName": "ca"}}}, "/kafka/tls/caSecretName"),
    "a password as a value": ({"kafka": {"user": {"password": "hunter2"}}}, "/kafka/user"),
    "a user of no program": ({"kafka": {"users": {"workers": {"secretName": "s"}}}}, "/kafka/users"),
    "a user without a Secret": ({"kafka": {"users": {"feed": {"username": "f"}}}}, "/kafka/users/feed"),
    "the name of a Secret": ({"kubeconfigSecretName": "Fleet_1"}, "/kubeconfigSecretName"),
    "a port of root": ({"health": {"port": 80}}, "/health/port"),
    "a port as text": ({"networkPolicy": {"kafkaPorts": ["9093"]}}, "/networkPolicy/kafkaPorts/0"),
    "no port of an API server": ({"networkPolicy": {"apiServerPorts": []}}, "/networkPolicy/apiServerPorts"),
    "an amount": (
        {"worker": {"resources": {"limits": {"memory": "512 MB"}}}},
        "/worker/resources/limits/memory",
    ),
    "an interval": ({"serviceMonitor": {"interval": "15"}}, "/serviceMonitor/interval"),
    "a label that is no text": ({"nodeSelector": {"gpu": True}}, "/nodeSelector/gpu"),
    "tolerations as one": ({"tolerations": {"operator": "Exists"}}, "/tolerations"),
    "too long a name": ({"fullnameOverride": "e" * 41}, "/fullnameOverride"),
    "a name in upper case": ({"fullnameOverride": "Evictions"}, "/fullnameOverride"),
}
