"""Programs that tests build once from Go modules, and keep.

Beside the tests lies an ordinary Go module that names the versions. What is built from it lies in the user's cache, in
a folder named after the version and a digest of the sources: a change is built anew, and nothing is built twice.

`go.mod` and `go.sum` name one version. Another one has two files of its own in the same folder, such as `v1.36.3.mod`
and `v1.36.3.sum`, and an environment variable asks for it.
"""

from __future__ import annotations

import dataclasses
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

# Modules and compiled packages take gigabytes while it builds; what stays is the programs.
GO_CACHES = "go"


class UnknownVersionError(LookupError):
    """The environment asks for a version that has no files."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GoPrograms:
    """Programs of one Go module.

    Attributes:
        title: what they are, for messages.
        sources: the folder of the module.
        module: the required module whose version counts.
        programs: names of what is built.
        packages: what is built, as `go build` is told.
        version_variable: the Go variable that gets the version, for programs that would not know it; or none.
        folder_name: in the user's cache.
        how: the command that builds them, for messages.
        cost: what a build takes, for messages.
        variable: the environment variable that asks for another version than that of `go.mod`, such as 1.36.3; or none.
    """

    title: str
    sources: Path
    module: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    version_variable: str | None = None
    folder_name: str
    how: str
    cost: str
    variable: str | None = None

    def version(self) -> str:
        """Return the version that is asked for, such as v1.37.2."""
        return self._named_in(self._module_file())

    def versions(self) -> tuple[str, ...]:
        """Return all versions that can be asked for, that of `go.mod` first."""
        others = sorted(self.sources.glob("v*.mod"))
        return tuple(map(self._named_in, (self.sources / "go.mod", *others)))

    def _named_in(self, module_file: Path) -> str:
        text = module_file.read_text(encoding="utf-8")
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)(?: // indirect)?$", text, re.MULTILINE)
        assert found is not None, f"{self.sources.name}/{module_file.name} names no version of {self.module}"
        return found[1]

    def _module_file(self) -> Path:
        """Return the file that names the version which is asked for.

        Raises:
            UnknownVersionError: the environment asks for a version without such a file.
        """
        usual = self.sources / "go.mod"
        asked = os.environ.get(self.variable, "") if self.variable else ""
        wanted = "v" + asked.removeprefix("v")
        if not asked or wanted == self._named_in(usual):
            return usual
        other = self.sources / f"{wanted}.mod"
        if wanted not in self.versions():
            known = ", ".join(each.removeprefix("v") for each in self.versions())
            raise UnknownVersionError(f"{self.variable}={asked}: {self.title} can be built at {known}")
        return other

    def _files(self) -> dict[str, Path]:
        """Return the sources of this version, by their names as Go sees them, in order."""
        module_file = self._module_file()
        sources = {
            each.relative_to(self.sources).as_posix(): each
            for each in self.sources.rglob("*")
            if each.is_file() and not (each.parent == self.sources and each.name.startswith("v"))
        }
        sources |= {f"go{each}": module_file.with_suffix(each) for each in (".mod", ".sum")}
        return dict(sorted(sources.items()))

    def cache_folder(self) -> Path:
        """Return their folder in the user's cache; it may be deleted at any time."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "evictstream" / self.folder_name

    def folder(self) -> Path:
        """Return where the programs of this version and these sources are, or will be."""
        digest = hashlib.sha256()
        for name, file in self._files().items():
            digest.update(f"{name}\0".encode())
            digest.update(file.read_bytes())
        return self.cache_folder() / f"{self.version()}-{digest.hexdigest()[:12]}"

    def are_built(self) -> bool:
        """Tell whether all of them can be started."""
        return all((self.folder() / program).is_file() for program in self.programs)

    def why_missing(self) -> str:
        """Say why a test that needs them is skipped."""
        return f"{self.title} {self.version()} is not built: run `{self.how}` (needs Go)"

    def build(self, go: str) -> None:
        """Build what is missing with this Go; takes minutes the first time, and nothing afterwards."""
        cache, target = self.cache_folder(), self.folder()
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second build waits, and finds everything done
            if self.are_built():
                return
            caches = cache / GO_CACHES
            environment = {
                **os.environ,
                "CGO_ENABLED": "0",
                "GOMODCACHE": str(caches / "modules"),
                "GOCACHE": str(caches / "build"),
                "GOFLAGS": "-modcacherw",  # without it the cache could not be deleted with `rm`
                "GOWORK": "off",
            }
            version = f" -X {self.version_variable}={self.version()}" if self.version_variable else ""
            with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as folder:
                programs = Path(folder) / "programs"
                flags = ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w{version}", "-o", f"{programs}/"]
                flags.append(f"-modfile={self._module_file()}")
                subprocess.run([go, "build", *flags, *self.packages], cwd=self.sources, env=environment, check=True)
                shutil.rmtree(target, ignore_errors=True)
                programs.rename(target)
            shutil.rmtree(caches, ignore_errors=True)  # only another version would need them again

    def main(self) -> int:
        """Build, and say where; without Go, or for an unknown version, say what to do."""
        try:
            self.version()
        except UnknownVersionError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        if self.are_built():
            sys.stdout.write(f"{self.title} {self.version()} is built: {self.folder()}\n")
            return 0
        go = shutil.which("go")
        if go is None:
            sys.stderr.write(f"no `go` on the PATH: install Go 1.26 or newer, then run `{self.how}` again\n")
            return 1
        sys.stdout.write(f"building {self.title} {self.version()}: {self.cost}\n")
        sys.stdout.flush()
        began = time.monotonic()
        try:
            self.build(go)
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"`go build` failed with code {error.returncode}; what it said is above\n")
            return 1
        sys.stdout.write(f"built in {time.monotonic() - began:.0f} s: {self.folder()}\n")
        return 0
