from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from aiokafka.errors import GroupCoordinatorNotAvailableError

from evictstream.streams.cli.output import warn_of_end
from evictstream.streams.logs import REPEATS, REPEATS_SECONDS, Repeats, configure_logging, write_at_once
from evictstream.streams.settings import Settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_ours_is_json_unless_a_terminal() -> None:
    stream = io.StringIO()
    configure_logging(Settings(), stream)
    structlog.get_logger("evictstream.streams.x").info("gate closed", cluster="c1")
    (line,) = lines(stream)
    assert list(line)[:3] == ["timestamp", "level", "message"], "where collectors look"
    assert line.pop("timestamp").endswith("Z")
    assert line == {"message": "gate closed", "cluster": "c1", "level": "info", "logger": "evictstream.streams.x"}


def test_a_terminal_gets_text() -> None:
    stream = Terminal()
    configure_logging(Settings(), stream)
    structlog.get_logger("evictstream.streams.x").info("gate closed", cluster="c1")
    assert "gate closed" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize(("level", "levels"), [("info", ["info", "error"]), ("warning", ["error"])])
def test_a_new_broker_without_coordinator_is_no_error_at_first(level: str, levels: list[str]) -> None:
    stream = io.StringIO()
    configure_logging(Settings.model_validate({"log_level": level}), stream)
    for _ in range(2):
        log = logging.getLogger("aiokafka.consumer.group_coordinator")
        log.error("Group Coordinator Request failed: %s", GroupCoordinatorNotAvailableError())
    assert [line["level"] for line in lines(stream)] == levels


def test_libraries_come_out_in_the_same_format_from_warning_on() -> None:
    stream = io.StringIO()
    configure_logging(Settings(), stream)
    logging.getLogger("aiokafka.consumer").info("chatter")
    logging.getLogger("aiokafka.consumer").warning("trouble with %s", "t1")
    assert [(line["message"], line["level"]) for line in lines(stream)] == [("trouble with t1", "warning")]


def test_at_debug_libraries_say_more() -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_level="debug"), stream)
    logging.getLogger("kafka.client").info("chatter")
    logging.getLogger("urllib3").debug("chatter")
    assert [line["message"] for line in lines(stream)] == ["chatter", "chatter"]


def test_bound_context_reaches_every_line() -> None:
    stream = io.StringIO()
    configure_logging(Settings(), stream)
    with structlog.contextvars.bound_contextvars(eviction_id="e1"):
        structlog.get_logger().info("ours")
        logging.getLogger("faust").warning("theirs")
    assert [line["eviction_id"] for line in lines(stream)] == ["e1", "e1"]


def test_secrets_are_masked() -> None:
    stream = io.StringIO()
    configure_logging(Settings(), stream)
    structlog.get_logger().info("connect", sasl_plain_password="hunter2", apiToken="hunter2")
    assert "hunter2" not in stream.getvalue()


def test_exceptions_are_data() -> None:
    stream = io.StringIO()
    configure_logging(Settings(), stream)
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError:
        structlog.get_logger().exception("failed")
    assert lines(stream)[0]["exception"][0]["exc_type"] == "ZeroDivisionError"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["json", "text"])
def test_exceptions_do_not_tell_what_was_in_variables(stream: io.StringIO) -> None:
    configure_logging(Settings(), stream)

    def connect(argument: str) -> None:
        raise ValueError(f"{len(argument)} characters")

    try:
        connect("hunter-2".upper())
    except ValueError:
        structlog.get_logger().exception("failed")
    assert "8 characters" in stream.getvalue()
    assert "HUNTER-2" not in stream.getvalue()


def test_a_second_call_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging(Settings(), first)
    configure_logging(Settings(), second)
    structlog.get_logger().info("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def said(filtered: Repeats, name: str, at: float, text: str = "no way to node %s", *names: object) -> str | None:
    record = logging.LogRecord(name, logging.WARNING, "", 0, text, names, None)
    record.created = at
    return record.getMessage() if filtered.filter(record) else None


def test_repeated_library_logs_are_counted_instead() -> None:
    filtered = Repeats()
    first = [said(filtered, "aiokafka", 100.0 + n / 80, "no way to node %s", n % 3) for n in range(80 * 9)]
    assert first == [f"no way to node {n % 3}" for n in range(REPEATS)] + [None] * (80 * 9 - REPEATS)
    later = 100.0 + REPEATS_SECONDS
    assert said(filtered, "aiokafka", later, "no way to node %s", 1) == "no way to node 1 (and 715 more like it)"
    assert said(filtered, "aiokafka", later, "no way to node %s", 2) == "no way to node 2"


def test_each_sentence_is_counted_by_itself_and_ours_are_not() -> None:
    filtered = Repeats()
    for _ in range(REPEATS):
        assert said(filtered, "aiokafka.conn", 100.0) is not None
    assert said(filtered, "aiokafka.conn", 100.0) is None
    assert said(filtered, "aiokafka.client", 100.0) is not None
    assert said(filtered, "aiokafka.conn", 100.0, "100 % sure") is not None
    assert all(said(filtered, "evictstream.streams.engine", 100.0) for _ in range(10 * REPEATS))
    assert said(filtered, "aiokafka.conn", 50.0) is not None, "a clock that was set back is a new while"


def test_at_debug_nothing_is_kept_back() -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_level="debug"), stream)
    for _ in range(2 * REPEATS):
        logging.getLogger("aiokafka").warning("again")
    assert len(lines(stream)) == 2 * REPEATS
    configure_logging(Settings(), stream := io.StringIO())
    for _ in range(2 * REPEATS):
        logging.getLogger("aiokafka").warning("again")
    assert len(lines(stream)) == REPEATS


@pytest.mark.parametrize("mark", ["\x1b]52;c;ZXZpbA==\x07", "\x9b31m", "\u202e", "\nforged"])
def test_no_name_steers_the_terminal_of_a_console(mark: str) -> None:
    stream = Terminal()
    configure_logging(Settings(log_format="console"), stream)
    log = structlog.get_logger("evictstream.streams.x")
    log.info("read", name=f"a{mark}b", names=[f"a{mark}b"])
    logging.getLogger("kafka").critical("cannot reach %s", f"a{mark}b")
    log.error("failed", exc_info=ValueError(f"a{mark.strip()}b"))
    assert mark not in stream.getvalue()
    assert "\x1b[" in stream.getvalue(), "its own colours stay"


def test_libraries_quote_no_record_at_any_level() -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_level="debug"), stream)
    for name in ("kafka.producer.kafka", "aiokafka.consumer.fetcher", "faust.transport", "kubernetes.client.rest"):
        logging.getLogger(name).debug("Sending (key=%r value=%r)", b"c/n", b"all of a pod")
    assert stream.getvalue() == ""
    logging.getLogger("evictstream").debug("ours")
    assert "ours" in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_the_last_words_of_a_process_are_a_line(
    log_format: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "alice"}
    settings = Settings.model_validate({"log_format": log_format, "sasl_password": "hunter2secret", **login})
    configure_logging(settings, io.StringIO())
    monkeypatch.setattr("sys.stderr", sys.__stderr__)
    write_at_once("worker is stuck", wait="loop", stacks="Thread 1:\n  here hunter2secret\n")
    said = capfd.readouterr().err
    assert "hunter2secret" not in said
    if log_format == "json":
        (line,) = map(json.loads, said.splitlines())
        assert list(line)[:3] == ["timestamp", "level", "message"]
        assert (line["level"], line["message"], line["wait"]) == ("critical", "worker is stuck", "loop")
        assert line["stacks"].startswith("Thread 1:\n")
    else:
        assert said.splitlines()[-1] == "worker is stuck: wait loop"


def test_what_ends_a_service_is_a_line_of_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_format="json"), stream)
    warn_of_end("it is over", 1, ValueError("why"))
    (line,) = lines(stream)
    assert (line["level"], line["error"], line["exit_code"]) == ("critical", "it is over", 1)
    assert line["exception"][0]["exc_type"] == "ValueError"
    configure_logging(Settings(log_format="console"), stream)
    warn_of_end("it is over", 1)
    assert capsys.readouterr().err == "evictstream: it is over\n"
