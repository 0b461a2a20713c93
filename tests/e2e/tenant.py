"""A tenant who may create pods in a namespace of its own and nothing else, and the pods with which it does harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.objects import NODES, pod, pods
from tests.e2e.processes import wait_until

TENANT: Final = "tenant"
"""Its user, its namespace and its role."""

CALLS_AT_ONCE: Final = 8

LEVELS: Final = 9_900
"""Of one managed field. The API server keeps some more, and Python's readers give up at 990, 1,500 or 9,992 of them."""

LARGE_PODS: Final = 44
"""So many of them are a page of 277 MiB: Go's JSON writes six characters for each `<`."""

LARGE_VALUE: Final = "<" * 1_100_000

LONG_LISTS: Final = 101
LONGEST_LIST: Final = 1_000
"""Tolerations that the service looks at in one pod."""

CROWD: Final = 55_000
"""Pods of one node: their UIDs are more than one record of Kafka holds."""

CROWDED: Final = "crowded"
"""The node of the crowd. No kubelet plays it: its pods are never run."""

AFFINITY_TERMS: Final = 60_000
"""1.1 MB in etcd, twice that as JSON: more than a record of Kafka holds."""

EVERYTHING: Final[Object] = {"operator": "Exists"}


def admit(client: ApiClient) -> None:
    """Make the namespace, and grant the tenant to create pods there. `client` may do everything."""
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{TENANT}"
    client.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})
    client.create(
        f"{rights}/roles",
        {"metadata": {"name": TENANT}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]},
    )
    client.create(
        f"{rights}/rolebindings",
        {
            "metadata": {"name": TENANT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": TENANT},
            "subjects": [{"kind": "User", "name": TENANT, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": CROWDED}})
    wait_until(lambda: _has_account(client))


def _has_account(client: ApiClient) -> bool:
    try:
        return client.get(f"/api/v1/namespaces/{TENANT}/serviceaccounts/default") is not None
    except RefusedError:
        return False


def attack(tenant: ApiClient, how: str, node: str, prefix: str) -> None:
    """Create the pods of one kind of harm.

    Args:
        tenant: the client of the user `tenant`.
        how: a key of `HARM`.
        node: to which they are bound, but for the crowd.
        prefix: of their names.
    """
    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        for _ in pool.map(lambda text: tenant.create(pods(TENANT), text), HARM[how](node, prefix)):
            pass


def _deep(node: str, prefix: str) -> Iterator[bytes]:
    fields = '{"f:a":' * LEVELS + "{}" + "}" * LEVELS
    managed = f'{{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}'
    text = _text(node, f"{prefix}-deep")
    yield text.replace('"metadata": {', f'"metadata": {{"managedFields": [{managed}], ', 1).encode()


def _large(node: str, prefix: str) -> Iterator[bytes]:
    for number in range(LARGE_PODS):
        found = pod(f"{prefix}-large-{number}", node)
        found["spec"]["containers"][0]["env"] = [{"name": "A", "value": LARGE_VALUE}]
        yield json.dumps(found).encode()


def _shields(node: str, prefix: str) -> Iterator[bytes]:
    junk = [
        {"key": f"evil.example/{number}", "operator": "Exists", "effect": "NoExecute"}
        for number in range(LONGEST_LIST - 2)  # admission adds two
    ]
    for number in range(LONG_LISTS):
        yield json.dumps(pod(f"{prefix}-shield-{number}", node, tolerations=junk)).encode()


def _crowd(_: str, prefix: str) -> Iterator[bytes]:
    for number in range(CROWD):
        yield json.dumps(pod(f"{prefix}-{number}", CROWDED, tolerations=[EVERYTHING])).encode()


def _affinity(node: str, prefix: str) -> Iterator[bytes]:
    term = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}] * AFFINITY_TERMS}
    found = pod(f"{prefix}-affine", node)
    found["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    yield json.dumps(found, separators=(",", ":")).encode()


def _text(node: str, name: str) -> str:
    return json.dumps(pod(name, node))


HARM: Final = {
    "an object too deep": _deep,
    "a page too large": _large,
    "a node shielded by long lists": _shields,
    "a crowd on one node": _crowd,
    "an affinity larger than a record": _affinity,
}
"""What a tenant may try, by what it makes."""
