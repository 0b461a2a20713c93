"""Kafka's program files: downloaded once, checked before every use.

`kafka-jars.lock` beside this file names each file with its SHA-256, so what runs is what was tested, whatever the
repository serves. jgo downloads 46 files, 46 MB, from Maven Central or from a mirror into a folder in the user's cache.
Of several processes at once one downloads, and the others wait.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

from evictstream.streams.errors import CacheUnusableError, DownloadRefusedError, EmbeddedMissingError, FileMismatchError

DOWNLOAD_TIMEOUT_SECONDS = 20
"""For one connection or one silent stretch of a download: a repository that is silent for that long is not
reachable."""


@dataclasses.dataclass(frozen=True, slots=True)
class LockedJar:
    """One line of the lock."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        """As Maven writes it."""
        return f"{self.group}:{self.artifact}:{self.version}"


def locked_jars() -> tuple[LockedJar, ...]:
    """Return the content of the embedded Kafka's lock, in its order."""
    return read_lock(
        resources.files("evictstream.streams.broker").joinpath("kafka-jars.lock").read_text(encoding="utf-8")
    )


def read_lock(text: str) -> tuple[LockedJar, ...]:
    """Return what a lock names, in its order."""
    jars = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            coordinate, digest = line.split(" ")
            group, artifact, version = coordinate.split(":")
            jars.append(LockedJar(group, artifact, version, digest.removeprefix("sha256:")))
    return tuple(jars)


def kafka_version() -> str:
    """Return the version of the embedded Kafka."""
    return next(jar.version for jar in locked_jars() if jar.group == "org.apache.kafka")


def cache_folder() -> Path:
    """Return where the files are kept; it may be deleted at any time.

    That is `evictstream/kafka` in `XDG_CACHE_HOME`, or in `~/.cache`.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evictstream" / "kafka"


def kafka_classpath(repository: str | None = None) -> str:
    """Return Java's class path for Kafka, after downloading what is missing and checking every file.

    Args:
        repository: address of the Maven repository that has the files; Maven Central if `None`.

    Raises:
        EmbeddedMissingError: jgo is not installed.
        CacheUnusableError: the folder for the files cannot be written.
        DownloadRefusedError: a file is missing and cannot be downloaded.
        FileMismatchError: a file is not the locked one, even when fetched anew.
    """
    return classpath(locked_jars(), repository)


def classpath(jars: Iterable[LockedJar], repository: str | None = None) -> str:
    """Return Java's class path for these files, in their order; downloads, checks and raises as `kafka_classpath`."""
    folder = cache_folder()
    with _only_one_process(folder):
        return os.pathsep.join(str(_checked(jar, folder, repository)) for jar in jars)


def _checked(jar: LockedJar, folder: Path, repository: str | None) -> Path:
    path = folder / jar.group.replace(".", "/") / jar.artifact / jar.version / f"{jar.artifact}-{jar.version}.jar"
    if path.exists() and _sha256(path) != jar.sha256:
        path.unlink()  # an earlier download was cut short
    if not path.exists():
        _download(jar, folder, repository)
        actual = _sha256(path)
        if actual != jar.sha256:
            raise FileMismatchError(path, expected=jar.sha256, actual=actual)
    return path


def _download(jar: LockedJar, folder: Path, repository: str | None) -> None:
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415 - part of an optional extra
    except ImportError as error:
        raise EmbeddedMissingError("jgo") from error
    mirrors = None if repository is None else {"mirror": repository}
    context = MavenContext(repo_cache=folder, timeout=DOWNLOAD_TIMEOUT_SECONDS, remote_repos=mirrors)
    try:
        with trusting_as_the_system():
            context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors; jgo's own are RuntimeErrors
        raise DownloadRefusedError(jar.coordinate, reason=_short(error)) from error


@contextlib.contextmanager
def trusting_as_the_system() -> Iterator[None]:
    """Let TLS of this process trust the authorities that the system trusts, as pip, curl and apt do.

    requests brings a list of its own, which lacks a company's authority.

    Raises:
        EmbeddedMissingError: truststore is not installed.
    """
    try:
        import truststore  # noqa: PLC0415 - part of an optional extra
    except ImportError as error:
        raise EmbeddedMissingError("truststore") from error
    truststore.inject_into_ssl()
    try:
        yield
    finally:
        truststore.extract_from_ssl()


def _short(error: BaseException) -> str:
    # requests puts addresses and whole chains of causes into one text; the innermost reason is what helps.
    reason: object = error
    while isinstance(reason, BaseException) and (
        inner := getattr(reason, "reason", None) or (reason.args[0] if reason.args else None)
    ):
        reason = inner
    return str(reason).split(" in remote repositories")[0] or type(error).__name__


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _only_one_process(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise CacheUnusableError(folder, reason=error.strerror or str(error)) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
