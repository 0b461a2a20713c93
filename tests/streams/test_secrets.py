"""No secret of the settings is ever shown, whoever writes it, and in whatever form."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import TextIO, cast

import pytest
import structlog
import typer
from pydantic import SecretStr

from evictstream.streams.logs import SecretlessStream, configure_logging, without_secrets
from evictstream.streams.settings import Settings
from evictstream.streams.settings.secrets import MASK, SHORTEST_HIDDEN

SECRET_SETTINGS = [name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)]

VALUES = {
    "plain": "hunter2secret",
    "quotes": 'Joe\'s "own" password',
    "one kind of quote": "Joe's password",
    "backslashes": "C:\\dir\\new",
    "other letters": "pässwörd-密码",
    "line break": "first line\nsecond  line",
    "like a pattern": "a.*b(c[d|e$",
    "as short as can be": "x7Qz",
}


class Quoting:
    """A thing of a library that shows all it has."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"Quoting({ {'password': self.secret, 'raw': self.secret.encode()} })"


def sentence(secret: str) -> None:
    logging.getLogger("kafka.admin").info("with configuration: %s", {"sasl_plain_password": secret})


def field(secret: str) -> None:
    structlog.get_logger().info("connects", arguments={"login": ["alice", secret]})


def exception(secret: str) -> None:
    try:
        try:
            raise ValueError(f"{secret} refused")  # noqa: TRY301 - a chain of causes
        except ValueError as error:
            raise RuntimeError(f"cannot connect: {error!r} {Quoting(secret)}") from error
    except RuntimeError as error:
        logging.getLogger("aiokafka").exception("Unexpected exception")
        structlog.get_logger().warning("partition lost", reason=repr(error))


def payload(secret: str) -> None:
    raw = b"\0alice\0" + secret.encode()
    logging.getLogger("aiokafka.conn").info("Request: %s", f"SaslAuthenticate(auth_bytes={raw!r})")


def token(secret: str) -> None:
    for user in ("u", "us", "use"):
        text = base64.b64encode(f"\0{user}\0{secret}".encode()).decode()
        logging.getLogger("urllib3").debug("Authorization: %s", text)


def arguments_that_do_not_fit(secret: str) -> None:
    logging.getLogger("kafka").info("%d connections", secret)


def error_line(secret: str) -> None:
    typer.echo(f"evictstream: {' '.join(f'no login with {secret}'.split())}", err=True)


def printed_traceback(secret: str) -> None:
    traceback.print_exception(OSError(secret))


def thread(secret: str) -> None:
    def fail() -> None:
        raise OSError(f"refused: {secret}")

    failing = threading.Thread(target=fail)
    hook, threading.excepthook = threading.excepthook, threading.__excepthook__  # pytest has one of its own
    try:
        failing.start()
        failing.join()
    finally:
        threading.excepthook = hook


SAYINGS: list[Callable[[str], None]] = [
    sentence, field, exception, payload, token, arguments_that_do_not_fit,
    error_line, printed_traceback, thread,
]  # fmt: skip


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    configure_logging(Settings())
    root.handlers[:], root.level = before
    structlog.reset_defaults()


def having(name: str, value: str, **more: object) -> Settings:
    return Settings().model_copy(update={name: SecretStr(value), "log_level": "debug", **more})


def shown(secret: str) -> set[str]:
    """How somebody could read it out of a text."""
    raw = secret.encode()
    return {
        secret, repr(secret)[1:-1], repr(raw)[2:-1], json.dumps(secret)[1:-1], json.dumps(repr(secret)[1:-1])[1:-1],
        " ".join(secret.split()), *(base64.b64encode(f"\0{u}\0".encode() + raw).decode() for u in ("u", "us", "use")),
    }  # fmt: skip


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", SECRET_SETTINGS)
def test_no_secret_is_shown_whoever_writes_it(
    name: str, value: str, log_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", SecretlessStream(cast("TextIO", written)))
    configure_logging(having(name, value, log_format=log_format))
    for say in SAYINGS:
        say(value)
        text = written.getvalue()
        assert MASK in text, say.__name__
        assert [form for form in shown(value) if form in text] == [], say.__name__
        written.seek(0)
        written.truncate()


def test_lines_stay_readable_as_json() -> None:
    written = io.StringIO()
    configure_logging(having("sasl_password", 'Joe\'s "own"\npassword'), written)
    field('Joe\'s "own"\npassword')
    exception('Joe\'s "own"\npassword')
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert lines[0]["arguments"] == {"login": ["alice", MASK]}


@pytest.mark.parametrize("value", ["", "a", "a" * (SHORTEST_HIDDEN - 1)])
def test_a_very_short_secret_blanks_no_other_word(value: str) -> None:
    configure_logging(having("sasl_password", value), io.StringIO())
    assert without_secrets("banana aaa") == "banana aaa"


def test_a_client_shows_no_password_however_short() -> None:
    sasl = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "me"}
    arguments = Settings.model_validate(sasl | {"sasl_password": "abc"}).security_arguments(lambda read: read)
    assert arguments["sasl_plain_password"] == "abc"
    assert "abc" not in f"{arguments}"


def test_settings_that_come_later_count() -> None:
    configure_logging(having("sasl_password", "first-secret"), io.StringIO())
    configure_logging(having("sasl_password", "later-secret"), io.StringIO())
    assert without_secrets("first-secret later-secret") == f"first-secret {MASK}"


def test_an_error_in_a_command_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hunter2secret"
    configure_logging(having("sasl_password", secret))
    stream = SecretlessStream(sys.stderr)
    stream.writelines([secret, "\n"])
    assert capsys.readouterr().err == f"{MASK}\n"
    assert stream.encoding == sys.stderr.encoding


@pytest.mark.parametrize("login", ["user:password", "password", "user:p@ss:word"])
def test_no_login_of_an_address_is_shown(login: str) -> None:
    written = io.StringIO()
    configure_logging(Settings(), written)
    logging.getLogger("urllib3").warning("Retrying https://%s@api.example:6443/api/v1/pods?limit=1", login)
    text = written.getvalue()
    assert f"https://{MASK}@api.example:6443/api/v1/pods" in text
    assert "pass" not in text


def test_an_address_without_a_login_stays() -> None:
    for text in ("https://api:6443/a?b=c@d", "mail me@here", "a://b/c@d"):
        assert without_secrets(text) == text
