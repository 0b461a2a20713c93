"""What a whole pod has beyond the fields in use: as much as the API server gives of a small Deployment's pod, 5 KB."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.bench.fleet import Rest

_AT: Final = "2026-11-21T02:15:53Z"
_ENVIRONMENT: Final = {
    f"CHECKOUT_{name}": f"value-of-{name.lower()}" for name in ("HOST", "PORT", "TOKEN_FILE", "ZONE")
}
_PROBE: Final[dict[str, Any]] = {
    "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_CONTAINER: Final[dict[str, Any]] = {
    "name": "checkout",
    "image": "registry.example.com/payments/checkout:1.42.0",
    "args": ["--listen=:8080", "--log-format=json"],
    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
    "env": [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()],
    "resources": {"limits": {"cpu": "2", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
    "volumeMounts": [
        {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    ],
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
_SPEC: Final[dict[str, Any]] = {
    "volumes": [
        {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [{"configMap": {"name": "ca"}}]}}
    ],
    "containers": [_CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "checkout",
    "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
    "schedulerName": "default-scheduler",
    "priority": 0,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_STATUS: Final[dict[str, Any]] = {
    "conditions": [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _AT} for kind in _CONDITIONS
    ],
    "hostIP": "10.1.2.3",
    "podIP": "10.2.3.4",
    "podIPs": [{"ip": "10.2.3.4"}],
    "startTime": _AT,
    "containerStatuses": [
        {
            "name": "checkout",
            "state": {"running": {"startedAt": _AT}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": _CONTAINER["image"],
            "imageID": f"registry.example.com/payments/checkout@sha256:{'3f' * 32}",
            "containerID": f"containerd://{'a7' * 32}",
            "started": True,
        }
    ],
    "qosClass": "Burstable",
}


def _fields(value: object) -> object:
    """Name fields as `managedFields` does."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(inner) for key, inner in value.items()}
    return {}


_METADATA: Final[dict[str, Any]] = {
    "generateName": "checkout-7d9c5b6f4-",
    "creationTimestamp": _AT,
    "labels": {"app.kubernetes.io/name": "checkout", "pod-template-hash": "7d9c5b6f4", "team": "payments"},
    "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
    "ownerReferences": [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "checkout-7d9c5b6f4",
            "uid": "0c8a4e52-7d0b-4a51-9b1f-6a1f7d1c2b3a",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ],
    "managedFields": [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": _AT,
            "fieldsType": "FieldsV1",
            "fieldsV1": _fields(part),
        }
        for manager, part in (
            ("kube-controller-manager", {"spec": {**_SPEC, "containers": _CONTAINER}}),
            ("kubelet", {"status": {**_STATUS, "conditions": dict.fromkeys(_CONDITIONS, _STATUS["conditions"][0])}}),
        )
    ],
}


def _members(value: dict[str, Any]) -> bytes:
    return b"," + json.dumps(value, separators=(",", ":"))[1:-1].encode()


WHOLE: Final = Rest(_members(_METADATA), _members(_SPEC), _members(_STATUS))

KEPT: Final = Rest(_members({"ownerReferences": _METADATA["ownerReferences"]}), b',"priority":0', b"")
"""What a feed keeps of these members: the traits that policies select by."""
