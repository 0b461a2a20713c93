"""Starting, watching and ending processes, with a small program in place of a worker."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from evictstream.kit.demo import workers as module
from evictstream.kit.demo.workers import Workers, environment, partitions_of
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.settings import Settings

SETTINGS = Settings(bootstrap_servers="kafka:9092", partitions=4, application_id="mine")

# Takes the partitions that its arguments name, prints something that is no log line, and ends with 0 on SIGTERM.
# It waits for the signal itself: a handler and a sleep lose a signal that comes between the two.
OBEDIENT = """
import json, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("a warning", file=sys.stderr)
at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
line = {"event": "partitions taken over", "partitions": json.loads(sys.argv[1]), "at": at}
print(json.dumps(line), file=sys.stderr, flush=True)
signal.sigtimedwait({signal.SIGTERM}, 60)
"""
RUDE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
SHORT = "import sys; sys.exit('it cannot be')"


def use(monkeypatch: pytest.MonkeyPatch, program: str, *arguments: str) -> None:
    monkeypatch.setattr(module, "_COMMAND", [sys.executable, "-c", program, *arguments])


def look_until_owned(workers: Workers, count: int) -> None:
    give_up = time.monotonic() + 20
    while len(workers.owners()) < count:
        assert time.monotonic() < give_up
        workers.look()
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_environment_says_what_differs_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVICTSTREAM_CONFIG", "elsewhere.toml")
    monkeypatch.setenv("evictstream_partitions", "64")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "elsewhere:1")
    monkeypatch.setenv("LANGUAGE", "kept")
    secret = SETTINGS.model_copy(update={"sasl_password": SecretStr("x")})
    found = environment(secret)
    assert found["LANGUAGE"] == "kept"
    assert {name: value for name, value in found.items() if "evictstream" in name.lower() or "KAFKA" in name} == {
        "EVICTSTREAM_APPLICATION_ID": "mine",
        "EVICTSTREAM_BOOTSTRAP_SERVERS": "kafka:9092",
        "EVICTSTREAM_LOG_FORMAT": "json",
        "EVICTSTREAM_PARTITIONS": "4",
        "EVICTSTREAM_SASL_PASSWORD": "x",
    }


def test_owners_are_read_from_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Workers(SETTINGS, tmp_path) as workers:
        use(monkeypatch, OBEDIENT, "[0, 1, 2, 3]")
        workers.start(1)
        look_until_owned(workers, 4)
        use(monkeypatch, OBEDIENT, "[1, 3]")
        workers.start(1)
        give_up = time.monotonic() + 20
        while not partitions_of(workers.all[1], workers.owners()):
            assert time.monotonic() < give_up
            workers.look()
        assert partitions_of(workers.all[0], workers.owners()) == {0, 2}
        assert partitions_of(workers.all[1], workers.owners()) == {1, 3}
        assert workers.stop() == []
    assert not any(is_alive(worker.pid) for worker in workers.all)


def test_a_killed_worker_is_no_error_and_stays_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OBEDIENT, "[0]")
    with Workers(SETTINGS, tmp_path) as workers:
        workers.start(1)
        workers.all[0].kill()
        assert not workers.all[0].running
        workers.look()
        assert workers.stop() == []


def test_a_worker_that_exits_alone_fails_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, SHORT)
    with Workers(SETTINGS, tmp_path) as workers:
        workers.start(1)
        workers.all[0].wait()
        with pytest.raises(FoundProblemError, match=r"worker 1 ended by itself with code 1: it cannot be") as raised:
            workers.look()
    assert str(tmp_path / "worker-1.log") in raised.value.next_step


def test_worker_that_ignores_sigterm_is_killed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOP_SECONDS", 2.0)
    use(monkeypatch, RUDE)
    with Workers(SETTINGS, tmp_path) as workers:
        workers.start(1)
        give_up = time.monotonic() + 20
        while not workers.all[0].log_file.read_bytes():
            assert time.monotonic() < give_up
            time.sleep(0.02)
        (problem,) = workers.stop()
    assert "worker 1 ended with code -9" in problem
    assert not is_alive(workers.all[0].pid)


def test_nothing_is_left_when_the_story_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, RUDE)
    workers = Workers(SETTINGS, tmp_path)

    def break_off() -> None:
        with workers:
            workers.start(2)
            message = "in the middle"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="in the middle"):
        break_off()
    assert not any(is_alive(worker.pid) for worker in workers.all)
