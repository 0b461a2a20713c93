"""The binaries of a real control plane, built once from Go modules and kept: `python -m tests.e2e.binaries`.

`controlplane/` beside this file is an ordinary Go module. What is built from it lies in the user's cache, in a
folder named after the version and a digest of the sources: a change is built anew, and nothing is built twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCES = Path(__file__).with_name("controlplane")
PROGRAMS = ("certificates", "etcd", "kube-apiserver", "kube-controller-manager")

# Modules and compiled packages take 4 GB while it builds; the binaries that stay take 230 MB.
GO_CACHES = "go"


def kubernetes_version() -> str:
    """Return the version that the Go module asks for, such as v1.36.3."""
    found = re.search(r"^\s+k8s\.io/kubernetes (v\S+)$", (SOURCES / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, "controlplane/go.mod names no version of k8s.io/kubernetes"
    return found[1]


def cache_folder() -> Path:
    """Return `evictstream/kubernetes` in the user's cache; it may be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evictstream" / "kubernetes"


def binaries_folder() -> Path:
    """Return where the binaries of this version and these sources are, or will be."""
    digest = hashlib.sha256()
    for file in sorted(each for each in SOURCES.rglob("*") if each.is_file()):
        digest.update(f"{file.relative_to(SOURCES).as_posix()}\0".encode())
        digest.update(file.read_bytes())
    return cache_folder() / f"{kubernetes_version()}-{digest.hexdigest()[:12]}"


def are_built() -> bool:
    """Tell whether a control plane can be started."""
    return all((binaries_folder() / program).is_file() for program in PROGRAMS)


def build(go: str) -> None:
    """Build what is missing with this Go; takes minutes the first time, and nothing afterwards."""
    target = binaries_folder()
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second build waits, and finds everything done
        if are_built():
            return
        caches = cache_folder() / GO_CACHES
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOMODCACHE": str(caches / "modules"),
            "GOCACHE": str(caches / "build"),
            "GOFLAGS": "-modcacherw",  # without it the cache could not be deleted with `rm`
            "GOWORK": "off",
        }
        # Without the version the API server calls itself v0.0.0, and clients that look at it go astray.
        version = f"-X k8s.io/component-base/version.gitVersion={kubernetes_version()}"
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="building-") as folder:
            binaries = Path(folder) / "binaries"
            flags = ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w {version}", "-o", f"{binaries}/"]
            subprocess.run([go, "build", *flags, "./cmd/..."], cwd=SOURCES, env=environment, check=True)
            shutil.rmtree(target, ignore_errors=True)
            binaries.rename(target)
        shutil.rmtree(caches, ignore_errors=True)  # only another version would need them again


def main() -> int:
    """Build, and say where; without Go say what to do."""
    if are_built():
        sys.stdout.write(f"Kubernetes {kubernetes_version()} is built: {binaries_folder()}\n")
        return 0
    go = shutil.which("go")
    if go is None:
        sys.stderr.write("no `go` on the PATH: install Go 1.26 or newer, then run `make kubernetes` again\n")
        return 1
    sys.stdout.write(f"building Kubernetes {kubernetes_version()}: minutes, once, and 4 GB of disk meanwhile\n")
    sys.stdout.flush()
    began = time.monotonic()
    try:
        build(go)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"`go build` failed with code {error.returncode}; what it said is above\n")
        return 1
    sys.stdout.write(f"built in {time.monotonic() - began:.0f} s: {binaries_folder()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
