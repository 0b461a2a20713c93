"""The global options of one run, and the settings that they lead to.

They may stand before a command and after it, as people type them: each command has them too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.streams.settings import LoadedSettings, Settings


class GlobalOptions:
    """Global flags, and settings that are read at their first use, so that `--help` never fails on them.

    Attributes:
        debug: whether internal failures show a traceback.
        is_service: whether the command runs until it is stopped: what ends it is a line of its log.
        wants_json: whether a program reads what the command prints, and so its errors.
    """

    def __init__(self) -> None:
        self.debug = False
        self.is_service = False
        self.wants_json = False
        self._config_file: Path | None = None
        self._flags: dict[str, object] = {}
        self._loaded: LoadedSettings | None = None

    def take(self, name: str, value: Any) -> None:
        """Remember a global option; what is given once more replaces what was given, and `--set` adds to it.

        Args:
            name: `config`, `bootstrap_servers`, `assignments` or `debug`.
            value: as typed; empty where the option was not given.

        Raises:
            WrongUseError: an assignment is not `NAME=VALUE`.
        """
        if not value:
            return
        if name == "debug":
            self.debug = True
        elif name == "config":
            self._config_file = value
        elif name == "bootstrap_servers":
            self._flags["bootstrap_servers"] = value
        else:
            self._flags |= map(_assigned, value)

    @property
    def loaded(self) -> LoadedSettings:
        """Settings with their origins; the first use reads them and sets up logs. Raises `SettingsError`.

        From then on stderr shows no secret, whatever code writes there.
        """
        if self._loaded is None:
            from evictstream.streams.kafka_reach import REACH
            from evictstream.streams.logs import SecretlessStream, configure_logging
            from evictstream.streams.settings import load_settings

            _refuse_secrets(self._flags)
            self._loaded = load_settings(self._flags, self._config_file)
            configure_logging(self._loaded.settings, hush=REACH.hush)
            if not isinstance(sys.stderr, SecretlessStream):
                sys.stderr = cast("TextIO", SecretlessStream(sys.stderr))
        return self._loaded

    @property
    def settings(self) -> Settings:
        """The settings alone."""
        return self.loaded.settings

    @property
    def is_kafka_given(self) -> bool:
        """Whether `-b` names a Kafka."""
        return "bootstrap_servers" in self._flags

    def settings_of_service(self) -> Settings:
        """Return the settings for a command that runs until it is stopped."""
        self.is_service = True
        return self.settings


def _assigned(assignment: str) -> tuple[str, str]:
    name, equals, value = assignment.partition("=")
    if not equals:
        problem = f"--set {assignment} is not NAME=VALUE"
        raise WrongUseError(problem, next_step="write for example --set partitions=16")
    return name.strip().lower(), value


def _refuse_secrets(flags: Mapping[str, object]) -> None:
    """Refuse a secret on the command line, which all users of the machine may read in the list of processes."""
    from evictstream.streams.settings import Settings
    from evictstream.streams.settings.secrets import is_secret

    for name in flags:
        if name in Settings.model_fields and is_secret(Settings.model_fields[name]):
            raise WrongUseError(
                f"--set {name} would stand in the list of processes",
                next_step=f"set EVICTSTREAM_{name.upper()}, or name a file that has it with --set {name}_file=FILE",
            )


def global_options(context: typer.Context) -> GlobalOptions:
    """Return what `run` put into typer's context."""
    return context.ensure_object(GlobalOptions)


def _take(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> None:
    global_options(context).take(str(parameter.name), value)


_option = functools.partial(typer.Option, callback=_take, expose_value=False, rich_help_panel="Global options")

ConfigOption = Annotated[
    Path | None, _option(help="TOML file with settings; default: EVICTSTREAM_CONFIG.", metavar="FILE")
]
ServersOption = Annotated[
    str | None, _option("--bootstrap-servers", "-b", help="Addresses of Kafka brokers.", metavar="HOST:PORT,...")
]
AssignmentsOption = Annotated[
    list[str] | None, _option("--set", "-s", help="Any setting; repeatable.", metavar="NAME=VALUE")
]
DebugOption = Annotated[bool, _option("--debug", help="Show the traceback of an internal failure.")]
