"""The ClusterProfile of a cluster in a real hub, read with no more rights than docs/feed.md grants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.control_plane import ControlPlane
from tests.e2e.processes import grant, wait_until
from tests.harness.product_process import ProductProcess
from tests.harness.reading import TopicReader

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

PAGE = Path(__file__).parents[2] / "docs" / "feed.md"
GROUP = "multicluster.x-k8s.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1/namespaces/fleet"
REF = {"namespace": "fleet", "name": "prod-eu-1", "manager": "hubs"}
FLAGS = {"tier": "iron"}

# Of the definition that SIG Multicluster publishes: group, names, scope, versions and the fields that a feed reads.
TEXT = {"type": "string"}
PROPERTY = {"type": "object", "required": ["name", "value"], "properties": {"name": TEXT, "value": TEXT}}
MANAGER = {"type": "object", "required": ["name"], "properties": {"name": TEXT}}
FIELDS = {
    "spec": {"type": "object", "required": ["clusterManager"], "properties": {"clusterManager": MANAGER}},
    "status": {"type": "object", "properties": {"properties": {"type": "array", "items": PROPERTY}}},
}


def definition(*versions: str) -> Object:
    """A definition that serves these versions; the first one is stored."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"clusterprofiles.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/issues/4322"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "ClusterProfile", "plural": "clusterprofiles", "singular": "clusterprofile"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": FIELDS}},
                }
                for version in versions
            ],
        },
    }


def role_of_the_page() -> Object:
    """The role that the page gives to a feed."""
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    (found,) = [one for one in blocks if isinstance(one, dict) and one.get("kind") == "Role"]
    return dict(found)


def grant_in_hub(client: ApiClient) -> None:
    """Let the user `hub` read the one profile."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "fleet"}})
    role = client.create(f"{RIGHTS}/roles", role_of_the_page())
    subject = {"kind": "User", "name": "hub", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": role["metadata"]["name"], "apiGroup": "rbac.authorization.k8s.io"}
    client.create(f"{RIGHTS}/rolebindings", {"metadata": {"name": "feed"}, "roleRef": reference, "subjects": [subject]})


def is_served(client: ApiClient, path: str) -> bool:
    try:
        client.items(path)
    except RefusedError:
        return False
    return True


def told(settings: Settings) -> dict[str, Any]:
    """What the newest heartbeat says of the cluster."""
    reader = TopicReader(settings, settings.nodes_topic)
    beats = [one.value for one in reader.to_end() if one.value["type"] == "HEARTBEAT"]
    reader.close()
    return {name: beats[-1].get(name) for name in ("clusterLabels", "clusterProfile")} if beats else {}


@pytest.mark.parametrize("versions", [("v1alpha1",), ("v1alpha2", "v1alpha1")], ids=lambda one: one[0])
def test_a_profile_of_a_hub_labels_its_cluster(tmp_path: Path, settings: Settings, versions: tuple[str, ...]) -> None:
    settings = settings.model_copy(update={"feed_profile_seconds": 1.0})
    declare_topics(settings)
    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed", "hub"]) as plane:
        client = plane.client()
        grant(client, "feed.yaml", "feed")
        grant_in_hub(client)
        named = client.create(DEFINITIONS, definition(*versions))["metadata"]["name"]
        profiles = f"/apis/{GROUP}/{versions[0]}/namespaces/fleet/clusterprofiles"
        wait_until(lambda: is_served(client, profiles))
        profile = {
            "apiVersion": f"{GROUP}/{versions[0]}",
            "kind": "ClusterProfile",
            "metadata": {"name": REF["name"], "labels": {"tier": "gold", "team": "a"}},
            "spec": {"clusterManager": {"name": REF["manager"]}},
        }
        client.create(profiles, profile)
        place = f"{profiles}/{REF['name']}"
        region = [{"name": "topology.kubernetes.io/region", "value": "eu-west"}]
        client.patch(f"{place}/status", {"status": {"properties": region}})
        where = ("--cluster", "lab=feed", "--kubeconfig", str(plane.kubeconfig))
        of_hub = ("--profile", f"{REF['namespace']}/{REF['name']}", "--hub", "hub", "--label", "tier=iron")
        with ProductProcess(settings, "feed", *where, *of_hub):
            labels = {"topology.kubernetes.io/region": "eu-west", "team": "a", **FLAGS}
            wait_until(lambda: told(settings) == {"clusterLabels": labels, "clusterProfile": REF})
            client.patch(place, {"metadata": {"labels": {"team": "b"}}})
            wait_until(lambda: told(settings)["clusterLabels"] == labels | {"team": "b"})
            client.delete(f"{DEFINITIONS}/{named}")  # and all profiles with it
            wait_until(lambda: not is_served(client, profiles))
        with ProductProcess(settings, "feed", *where, *of_hub):
            reader = TopicReader(settings, settings.nodes_topic)
            before = len(reader.to_end())
            reader.wait_for(lambda seen: any(one.value["type"] == "HEARTBEAT" for one in seen[before:]), "a heartbeat")
            reader.close()
            assert told(settings) == {"clusterLabels": labels | {"team": "b"}, "clusterProfile": REF}
