"""Logs: one stream of events on stderr, JSON unless it is a terminal, evictstream's and the libraries' alike.

Here: `structlog.get_logger(__name__)`, an event in a few words and the facts as fields: `log.info("gate closed",
cluster=..., reason=...)`. Bind cluster, node, pod UID and eviction id where they are known;
`structlog.contextvars.bind_contextvars` reaches everything that a task logs. Libraries (faust, mode, aiokafka, kafka)
log through the standard library and come out in the same format, from `warning` on and each sentence five times in ten
seconds unless the level is `debug`; those that would quote whole records then log from `info` on. Never log a
`SecretStr`'s value, security arguments or whole records: keys, ids and sizes say enough. Should a library name a
secret, the log has a mask instead: each finished line, and whatever else goes to stderr, is searched for the secrets of
the settings, and for passwords in addresses. On a console nothing that is logged steers the terminal.

Each JSON line is one object that begins with `timestamp`, `level` and `message`, as collectors expect; the message is
the event. A traceback is a field of its line.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import time
from collections.abc import Iterable
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from evictstream.streams.printing import one_line, printable
from evictstream.streams.settings import Settings
from evictstream.streams.settings.secrets import MASK, Hider

# What libraries log at `info` (each rebalance, each connection) drowns the rest. At `debug` everything is logged.
LIBRARIES = ("aiokafka", "asyncio", "docker", "faust", "jgo", "kafka", "mode", "testcontainers", "urllib3")

# Without any broker they repeat a handful of sentences some 80 times a second, until the watchdog ends the worker.
REPEATS = 5
REPEATS_SECONDS = 10.0
MAX_SENTENCES = 1_000  # remembered; libraries have some dozens, unless one builds them from what it was sent

# What these log at `debug` holds whole records, requests and answers.
QUOTING = ("aiokafka", "faust", "kafka", "kubernetes", "mode")

_GROUP_LOGGER = "aiokafka.consumer.group_coordinator"
_NO_COORDINATOR = "GroupCoordinatorNotAvailableError"

_OF_LINES = ("stack", "exception")  # fields
_SECRET_MARKS = ("password", "secret", "token")


_stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp")
_hider = Hider()  # until settings are read there are no secrets
_is_json = False


def logs_are_json() -> bool:
    """Whether `configure_logging` has chosen JSON: among its lines a line of text could not be read by collectors."""
    return _is_json


def without_secrets(text: str) -> str:
    """Return a text as it may be shown: without the secrets of the settings that `configure_logging` got last."""
    return _hider.hide(text)


class SecretlessStream:
    """A text stream that masks secrets, for all that does not go through logging.

    Error lines of commands, warnings, and tracebacks of threads and of logging itself go to stderr directly. Each piece
    that is written is searched by itself.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write without secrets; returns the length of the whole text."""
        self._stream.write(without_secrets(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write pieces."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Pass everything else to the stream."""
        return getattr(self._stream, name)


class _SecretlessFormatter(structlog.stdlib.ProcessorFormatter):
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


AFTERMATH_SECONDS = 3.0
"""Once Kafka is back, libraries go on about requests of before: coordinators that moved, commits that failed."""


class LibraryHush(logging.Filter):
    """Keeps back what libraries log, but for tracebacks, while one line of evictstream names the cause."""

    def __init__(self) -> None:
        super().__init__()
        self._kept_back: int | None = None  # lines, since `begin`
        self._ends_at: float | None = None  # by the clock of log lines

    def begin(self) -> None:
        """Keep back from now on."""
        self._kept_back, self._ends_at = self._kept_back or 0, None

    def end(self, after_seconds: float = 0.0) -> int:
        """End that, now or later; returns how many lines were kept back."""
        count = self._kept_back or 0
        if self._kept_back is not None:
            self._kept_back, self._ends_at = (
                (None, None) if after_seconds <= 0 else (count, time.time() + after_seconds)
            )
        return count

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record passes; its own time counts."""
        if self._ends_at is not None and record.created >= self._ends_at:
            self._kept_back = self._ends_at = None
        if self._kept_back is None or not _is_of_library(record):
            return True
        if record.levelno >= logging.CRITICAL or record.exc_info:
            return True
        self._kept_back += 1
        return False


class Repeats(logging.Filter):
    """Lets each sentence of a library pass a few times in an interval, and counts the rest in the next interval.

    A sentence is the format in the code: "cannot reach %s" is one, whatever it cannot reach. Other loggers pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._repeats: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record passes; its own time counts."""
        if not _is_of_library(record):
            return True
        sentence = record.name, str(record.msg)
        since, times = self._repeats.get(sentence, (record.created, 0))
        if not 0 <= record.created - since < REPEATS_SECONDS:
            if times > REPEATS:
                record.msg = f"{record.msg} (and {times - REPEATS} more like it)"
            since, times = record.created, 0
        if len(self._repeats) >= MAX_SENTENCES:
            self._repeats.clear()
        self._repeats[sentence] = since, times + 1
        return times < REPEATS


class NewBroker(logging.Filter):
    """Lowers the first error about a group without coordinator to `info`: a new broker takes seconds to have one."""

    def __init__(self, level: int) -> None:
        """`level` is that of the log: above `info` the line is left out."""
        super().__init__()
        self._level = level
        self._is_first = True

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record passes."""
        if self._is_first and record.name == _GROUP_LOGGER and _NO_COORDINATOR in record.getMessage():
            self._is_first = False
            record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
        return record.levelno >= self._level


def _is_of_library(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in LIBRARIES


def configure_logging(settings: Settings, stream: TextIO | None = None, hush: LibraryHush | None = None) -> None:
    """Send all logs to `stream`, stderr if not given, in the format of the settings; `hush` may keep some back.

    Call it once per process, before the first log line; another call replaces what was set before. Faust has to
    leave logging alone (`loghandlers=[]` and no `logging_config` of its own).
    """
    global _hider, _is_json  # noqa: PLW0603 - one process has one log, and one set of settings
    _hider = Hider(settings)
    stream = sys.stderr if stream is None else stream
    stream = getattr(stream, "rich_proxied_file", stream)  # colours are its own; what is said is made printable here
    _is_json = settings.log_format == "json" or (settings.log_format == "auto" and not stream.isatty())
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        _stamp,
        structlog.processors.StackInfoRenderer(),
        mask_secrets,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # so that tests, and a second call, can replace all this
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        _SecretlessFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_last_steps(as_json=_is_json, colors=stream.isatty()),
            ],
        ),
    )
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    quiet = level > logging.DEBUG
    if quiet:
        for each in (hush, NewBroker(level), Repeats()):
            if each is not None:
                handler.addFilter(each)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(max(level, logging.WARNING) if quiet else level)
    for name in QUOTING:
        logging.getLogger(name).setLevel(max(logging.getLogger(name).level, logging.INFO))
    if quiet:
        # kafka-python logs each error that it also raises; one line is enough.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)


def mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the value of every field whose name speaks of a password, secret or token.

    A net under a mistake, not a licence to log them.
    """
    for name in event:
        if any(mark in name.lower() for mark in _SECRET_MARKS):
            event[name] = MASK
    return event


def _last_steps(*, as_json: bool, colors: bool) -> list[Processor]:
    # By default both show the local variables of each frame: passwords, whole records, the settings.
    if as_json:
        as_data = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(as_data),
            in_order_of_collectors,
            structlog.processors.JSONRenderer(),
        ]
    # Rich would break lines and colour parts of words, and so hide a secret from the search for it.
    return [
        printable_values,
        structlog.dev.ConsoleRenderer(
            colors=colors, timestamp_key="timestamp", exception_formatter=_printable_traceback
        ),
    ]


def in_order_of_collectors(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Begin with the three fields that collectors look for, and call the event what they call it."""
    first = {"timestamp": event.pop("timestamp"), "level": event.pop("level"), "message": event.pop("event")}
    return {**first, **event}


def write_at_once(event: str, *, stacks: str, **facts: object) -> None:
    """Write the last critical line of a process that hangs, past the log and its lock, which may hang too.

    Args:
        event: as in any line.
        stacks: of its threads, over several lines; a console shows them first, and JSON as a field. May be empty.
        facts: fields.
    """
    if _is_json:
        stamp = _stamp(None, "", {})
        line = {**stamp, "level": "critical", "message": event, "logger": __name__, **facts}
        text = json.dumps({**line, "stacks": stacks} if stacks else line, default=str)
    else:
        text = f"{stacks}{event}: {', '.join(f'{name} {value}' for name, value in facts.items())}"
    os.write(sys.stderr.fileno(), f"{without_secrets(text)}\n".encode())


def printable_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Make what a console shows printable: names and errors come from outside."""
    return {
        name: value if not isinstance(value, str) else printable(value) if name in _OF_LINES else one_line(value)
        for name, value in event.items()
    }


def _printable_traceback(written: TextIO, error: structlog.typing.ExcInfo) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    written.write(printable(text.getvalue()))
