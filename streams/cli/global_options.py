"""The global options of one run, and the settings that they lead to."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast, get_args

import typer

from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.streams.settings import LoadedSettings, Settings


class GlobalOptions:
    """Global flags, and settings that are read at their first use, so that `--help` never fails on them."""

    def __init__(self) -> None:
        self.debug = False
        self._config_file: Path | None = None
        self._flags: dict[str, object] = {}
        self._loaded: LoadedSettings | None = None

    def take_flags(
        self,
        config_file: Path | None,
        bootstrap_servers: str | None,
        assignments: Sequence[str],
        *,
        debug: bool,
    ) -> None:
        """Remember the global flags.

        Raises:
            WrongUseError: an assignment is not `NAME=VALUE`.
        """
        self.debug = debug
        self._config_file = config_file
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                problem = f"--set {assignment} is not NAME=VALUE"
                raise WrongUseError(problem, next_step="write for example --set partitions=16")
            self._flags[name.strip().lower()] = value
        if bootstrap_servers is not None:
            self._flags["bootstrap_servers"] = bootstrap_servers

    @property
    def loaded(self) -> LoadedSettings:
        """Settings with their origins; the first use reads them and sets up logs. Raises `SettingsError`.

        From then on stderr shows no secret, whatever code writes there.
        """
        if self._loaded is None:
            from evictstream.streams.logs import SecretlessStream, configure_logging
            from evictstream.streams.settings import load_settings

            _refuse_secrets(self._flags)
            self._loaded = load_settings(self._flags, self._config_file)
            configure_logging(self._loaded.settings)
            if not isinstance(sys.stderr, SecretlessStream):
                sys.stderr = cast("TextIO", SecretlessStream(sys.stderr))
        return self._loaded

    @property
    def settings(self) -> Settings:
        """The settings alone."""
        return self.loaded.settings


def _refuse_secrets(flags: Mapping[str, object]) -> None:
    """Refuse a secret on the command line, which all users of the machine may read in the list of processes."""
    from pydantic import SecretStr

    from evictstream.streams.settings import Settings

    for name in flags:
        field = Settings.model_fields.get(name)
        if field is not None and SecretStr in (field.annotation, *get_args(field.annotation)):
            raise WrongUseError(
                f"--set {name} would stand in the list of processes",
                next_step=f"give it by the environment, as EVICTSTREAM_{name.upper()}",
            )


def global_options(context: typer.Context) -> GlobalOptions:
    """Return what `run` put into typer's context."""
    return context.ensure_object(GlobalOptions)
