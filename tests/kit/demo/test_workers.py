"""Starting, watching and ending processes, with a small program in place of a worker."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from evictstream.kit.demo import workers as module
from evictstream.kit.demo.workers import environment, owners, running
from evictstream.models.instants import instant_us
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.settings import Settings

SETTINGS = Settings(bootstrap_servers="kafka:9092", partitions=4, application_id="mine")
PATIENCE_SECONDS = 20

# Takes partitions over, prints something that is no log line, and ends with 0 on SIGTERM. It waits for the signal
# itself: a handler and a sleep lose a signal that comes between the two.
OBEDIENT = """
import json, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("a warning", file=sys.stderr)
is_first = os.getpid() == os.getpgid(0)
at, taken = ("2026-11-26T10:00:01Z", [0, 1]) if is_first else ("2026-11-26T10:00:02Z", [1])
line = {"timestamp": at, "message": "partitions taken over", "partitions": taken}
print(json.dumps(line), file=sys.stderr, flush=True)
print('{"message": "partitions taken over", "part', end="", flush=True)
signal.sigtimedwait({signal.SIGTERM}, 60)
"""
RUDE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
SHORT = "import sys; sys.exit('it cannot be')"


def use(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(module, "_COMMAND", [sys.executable, "-c", program])


def wait_for(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up
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


def test_who_took_a_partition_last_owns_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OBEDIENT)
    with running(2, SETTINGS, tmp_path) as (first, second):
        wait_for(lambda: list(first.taken()) and list(second.taken()))
        assert owners([first, second]) == {
            0: (instant_us("2026-11-26T10:00:01Z"), first),
            1: (instant_us("2026-11-26T10:00:02Z"), second),
        }
        first.kill()
        for worker in (first, second):
            worker.check()
            assert worker.stop() == ""
    assert not is_alive(first.pid)
    assert not is_alive(second.pid)


def test_a_worker_that_exits_alone_fails_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, SHORT)
    with (
        running(1, SETTINGS, tmp_path) as (worker,),
        pytest.raises(FoundProblemError, match=r"worker 1 .* ended by itself with code 1: it cannot be"),
    ):
        wait_for(worker.check)


def test_worker_that_ignores_sigterm_is_killed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STOP_SECONDS", 0.5)
    use(monkeypatch, RUDE)
    with running(1, SETTINGS, tmp_path) as (worker,):
        wait_for((tmp_path / "worker-1.log").read_bytes)
        assert "still ran 0.5 s after SIGTERM" in worker.stop()
        assert not is_alive(worker.pid)


def test_nothing_is_left_when_the_story_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, RUDE)
    pids: list[int] = []

    def break_off() -> None:
        with running(2, SETTINGS, tmp_path) as workers:
            pids.extend(worker.pid for worker in workers)
            message = "in the middle"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="in the middle"):
        break_off()
    assert not any(map(is_alive, pids))
