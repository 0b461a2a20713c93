"""What of a release's chart may never change, recorded: `python -m tests.compatibility.recorded_chart VERSION`.

Kubernetes refuses an upgrade that changes one of these fields, or people and other programs rely on the name: pods are
members of groups by their names, service accounts are users of Kafka, services are scraped. Like the records beside it,
a file is made once, when its version is released, and never again.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from tests.compatibility.recorded import FOLDER
from tests.deploy.test_kustomize_base import OBJECTS, Object

FIXED: Final[dict[str, tuple[str, ...]]] = {
    "ClusterRoleBinding": ("roleRef",),
    "Deployment": ("spec.selector",),
    "Service": ("spec.clusterIP", "spec.ports", "spec.selector"),
    "ServiceAccount": (),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
}
"""Fields that stay, by kind; the name stays too."""


def _field(of: Object, path: str) -> Any:
    found: Any = of
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def fixed() -> dict[str, Object]:
    """Return what stays of the chart as it is rendered now, by kind and name."""
    return {
        f"{each['kind']}/{each['metadata']['name']}": {path: _field(each, path) for path in FIXED[each["kind"]]}
        for each in OBJECTS
        if each["kind"] in FIXED
    }


if __name__ == "__main__":
    (version,) = sys.argv[1:]
    with (FOLDER / f"chart-{version}.json").open("x", encoding="utf-8") as file:
        file.write(json.dumps(fixed(), indent=2, sort_keys=True) + "\n")
