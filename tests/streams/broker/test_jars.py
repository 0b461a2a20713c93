from __future__ import annotations

import contextlib
import hashlib
import http.server
import os
import re
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.streams.broker import jars
from evictstream.streams.broker.jars import LockedJar, kafka_classpath, locked_jars
from evictstream.streams.errors import CacheUnusableError, DownloadRefusedError, EmbeddedMissingError, FileMismatchError
from tests.harness.certificates import OPENSSL, Certificate, certificate, server_context

REAL_LOCK = locked_jars()
CONTENT = b"a jar"
JAR = LockedJar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One jar is locked, and the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "locked_jars", lambda: (JAR,))
    return tmp_path / "evictstream" / "kafka"


class Repository:
    """Stands in for jgo's download of one file."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)

    def __call__(self, _jar: LockedJar, folder: Path, _repository: str | None) -> None:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        path = file_in(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(answer)


def file_in(folder: Path) -> Path:
    return folder / "org/example/thing/1.0/thing-1.0.jar"


def test_missing_files_are_downloaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_download", Repository(CONTENT))
    assert kafka_classpath() == kafka_classpath() == str(file_in(folder))


def test_a_file_that_was_cut_short_is_fetched_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_download", Repository(CONTENT))
    file_in(folder).parent.mkdir(parents=True)
    file_in(folder).write_bytes(CONTENT[:2])
    kafka_classpath()
    assert file_in(folder).read_bytes() == CONTENT


def test_a_file_that_is_not_the_locked_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_download", Repository(b"something else"))
    with pytest.raises(FileMismatchError) as caught:
        kafka_classpath()
    assert caught.value.path == file_in(folder)
    assert caught.value.expected == JAR.sha256


def test_a_refused_download_says_what_to_set_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    import jgo.maven  # noqa: PLC0415 - heavy, and only here

    def refuse(*_: object, **__: object) -> None:
        message = "[Errno 111] Connection refused"
        raise ConnectionRefusedError(message)

    monkeypatch.setattr(jgo.maven.Artifact, "resolve", refuse)
    with pytest.raises(DownloadRefusedError, match="EVICTSTREAM_BOOTSTRAP_SERVERS") as caught:
        kafka_classpath()
    assert caught.value.coordinate == "org.example:thing:1.0"
    assert "Connection refused" in caught.value.reason
    assert isinstance(caught.value.__cause__, OSError)


def test_a_mirror_is_asked_and_no_one_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jgo.maven._core  # noqa: PLC0415 - heavy, and only here

    monkeypatch.setattr(jgo.maven._core, "DEFAULT_REMOTE_REPOS", {"central": "http://127.0.0.1:1"})
    with _serving() as address:
        assert kafka_classpath(f"{address}/maven2") == str(file_in(folder))
    file_in(folder).unlink()
    with pytest.raises(DownloadRefusedError, match="EVICTSTREAM_KAFKA_REPOSITORY"):
        kafka_classpath(f"{address}/maven2")


def test_a_home_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CacheUnusableError, match=r"file/evictstream/kafka: Not a directory; set XDG_CACHE_HOME"):
        kafka_classpath()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(EmbeddedMissingError, match=r"install evictstream\[embedded\]"):
        kafka_classpath()


def test_the_lock_names_files_versions_and_digests_only() -> None:
    assert len(REAL_LOCK) > 40
    for jar in REAL_LOCK:
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar
        assert os.sep not in jar.coordinate
    assert len({(jar.group, jar.artifact) for jar in REAL_LOCK}) == len(REAL_LOCK)


def test_the_embedded_kafka_is_the_containers() -> None:
    from evictstream.streams.broker.container import IMAGE  # noqa: PLC0415 - only here

    (version,) = {jar.version for jar in REAL_LOCK if jar.group == "org.apache.kafka"}
    assert f"apache/kafka:{version}" == IMAGE


@pytest.mark.skipif(OPENSSL is None, reason="needs the program openssl")
def test_an_authority_of_the_system_alone_is_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """pip, curl and apt trust it too, and requests' own list does not have it."""
    import jgo.maven._core  # noqa: PLC0415 - heavy, and only here

    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    own = certificate(tmp_path, "repository")
    with _serving(own) as address:
        monkeypatch.setattr(jgo.maven._core, "DEFAULT_REMOTE_REPOS", {"central": address})
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path, "another").certificate))
        with pytest.raises(DownloadRefusedError, match="CERTIFICATE_VERIFY_FAILED"):
            kafka_classpath()
        monkeypatch.setenv("SSL_CERT_FILE", str(own.certificate))
        assert kafka_classpath() == str(file_in(folder))
    assert ssl.SSLContext.__module__ == "ssl", "nothing else of the process is changed"


@contextlib.contextmanager
def _serving(own: Certificate | None = None) -> Iterator[str]:
    """A repository with one file, over HTTPS if there is a certificate."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path.endswith(".jar") else 404)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that does not trust it goes
        if own is not None:
            server.socket = server_context(own).wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{'http' if own is None else 'https'}://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
