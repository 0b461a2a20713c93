"""The binaries of a real control plane, built once and kept: `python -m tests.e2e.binaries`.

`KUBERNETES=1.36.3` in the environment asks for another version than that of `go.mod`, here and in all tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.harness.go_programs import GoPrograms

CONTROL_PLANE = GoPrograms(
    title="Kubernetes",
    sources=Path(__file__).with_name("controlplane"),
    module="k8s.io/kubernetes",
    programs=("certificates", "etcd", "kube-apiserver", "kube-controller-manager"),
    packages=("./cmd/...",),
    # Without the version the API server calls itself v0.0.0, and clients that look at it go astray.
    version_variable="k8s.io/component-base/version.gitVersion",
    folder_name="kubernetes",
    how="make kubernetes",
    cost="minutes, once, and 4 GB of disk meanwhile; 230 MB stay",
    variable="KUBERNETES",
)

if __name__ == "__main__":
    sys.exit(CONTROL_PLANE.main())
