"""Where settings come from.

A value is taken from the first of these that has it:

1. flags of the command line;
2. the environment, `EVICTSTREAM_<NAME>`, and for the addresses `KAFKA_BOOTSTRAP_SERVERS` after that;
3. the TOML file that `--config` or `EVICTSTREAM_CONFIG` names, its keys at the top level;
4. the default.

Each of them may also name a file that has a secret: `sasl_password_file` gives `sasl_password`, as Secrets of
Kubernetes and of Docker are mounted.

An unknown name is an error in each of them: a misspelt limit that silently stays at its default is found
in an incident otherwise. Settings are read once, at start.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource

from evictstream.streams.errors import SettingsError
from evictstream.streams.settings.model import Settings
from evictstream.streams.settings.secrets import MASK, is_secret

SettingSource = Literal["flag", "environment", "file", "default"]

ENVIRONMENT_PREFIX = "EVICTSTREAM_"
LONGEST_SHOWN = 100
"""Characters of a wrong value that its error repeats: a whole file may have been given for a number."""

CONFIG_VARIABLE = "EVICTSTREAM_CONFIG"
KAFKA_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"

SECRET_FILES = {f"{name}_file": name for name, field in Settings.model_fields.items() if is_secret(field)}

# Kubernetes tells each container where the services of its namespace are. For services called evictstream or
# evictstream-* these names begin alike.
_SERVICE_LINK = re.compile(
    r"(?:.*_)?(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://.*")


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and where each value came from."""

    settings: Settings
    origins: Mapping[str, SettingSource]

    def shown(self) -> dict[str, object]:
        """Return every value as it may be shown: secrets masked, in the order of definition."""
        return {
            name: MASK if isinstance(value := getattr(self.settings, name), SecretStr) else value
            for name in Settings.model_fields
        }


def load_settings(flags: Mapping[str, object] | None = None, config_file: Path | None = None) -> LoadedSettings:
    """Read all sources.

    Args:
        flags: values from the command line by setting's name; `None` values count as not given.
        config_file: TOML file; if `None`, the one that `EVICTSTREAM_CONFIG` names, if any.

    Raises:
        SettingsError: for unknown names, values that do not fit, and files that cannot be read.
    """
    if config_file is None and os.environ.get(CONFIG_VARIABLE):
        config_file = Path(os.environ[CONFIG_VARIABLE])
    layers: dict[SettingSource, Mapping[str, Any]] = {
        "flag": {name: value for name, value in (flags or {}).items() if value is not None},
        "environment": _from_environment(),
        "file": {} if config_file is None else _from_file(config_file),
    }
    _refuse_unknown(layers["flag"], "flag", "")
    layers = {origin: _with_secrets_of_files(layer) for origin, layer in layers.items()}
    values: dict[str, Any] = {}
    origins: dict[str, SettingSource] = dict.fromkeys(Settings.model_fields, "default")
    for origin, layer in reversed(layers.items()):
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise _explained(error, origins) from None  # the cause may hold a secret
    return LoadedSettings(settings=settings, origins=origins)


def environment_with(settings: Settings) -> dict[str, str]:
    """Return this process's environment with exactly these settings, whatever they came from, for a process of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(ENVIRONMENT_PREFIX)}
    kept.pop(KAFKA_VARIABLE, None)
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value is not None and value != field.default:
            shown = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            kept[ENVIRONMENT_PREFIX + name.upper()] = shown
    return kept


def _from_environment() -> Mapping[str, Any]:
    ours = [name for name in os.environ if name.upper().startswith(ENVIRONMENT_PREFIX) and name != CONFIG_VARIABLE]
    names = {name.upper().removeprefix(ENVIRONMENT_PREFIX): name for name in ours}
    in_a_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    _refuse_unknown(
        [short.lower() for short in names if not (in_a_pod and _SERVICE_LINK.fullmatch(short))],
        "environment variable",
        ENVIRONMENT_PREFIX,
    )
    values = {
        name: value
        for name, value in EnvSettingsSource(Settings)().items()
        # A service may be called as a setting, `evictstream-health` as EVICTSTREAM_HEALTH_PORT: then that is not set.
        if not (in_a_pod and _SERVICE_LINK.fullmatch(name.upper()) and _SERVICE_ADDRESS.fullmatch(str(value)))
    }
    values |= {
        name: os.environ[names[name.upper()]] for name in SECRET_FILES if os.environ.get(names.get(name.upper(), ""))
    }
    if "bootstrap_servers" not in values and os.environ.get(KAFKA_VARIABLE):
        values["bootstrap_servers"] = os.environ[KAFKA_VARIABLE]
    return values


def _from_file(path: Path) -> Mapping[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"cannot read the settings file {path}: {error.strerror}"
        raise SettingsError(problem, next_step="name a TOML file that can be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = f"the settings file {path} is not TOML: {error}"
        raise SettingsError(problem, next_step="write one `name = value` per line, text in quotes") from error
    _refuse_unknown(values, f"key in {path}", "")
    return values


def _with_secrets_of_files(layer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the files that a source names for secrets. The line break that an editor adds is no part of one."""
    values = dict(layer)
    for name, secret in SECRET_FILES.items():
        path = values.pop(name, None)
        if path is None:
            continue
        if secret in values:
            raise SettingsError(f"{secret} and {name} are both set", names=[secret], next_step="set one of them")
        try:
            values[secret] = Path(path).read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            problem = f"cannot read {name} {path}: {reason}"
            raise SettingsError(problem, names=[name], next_step="name a file that can be read") from None
    return values


def _refuse_unknown(names: Iterable[str], what: str, prefix: str) -> None:
    for name in names:
        if name in Settings.model_fields or name in SECRET_FILES:
            continue
        spell = str.upper if prefix else str
        nearest = difflib.get_close_matches(name, Settings.model_fields, n=1, cutoff=0.5)
        problem = f"unknown {what} {prefix}{spell(name)}"
        if nearest:
            raise SettingsError(problem, names=[name], next_step=f"did you mean {prefix}{spell(nearest[0])}?")
        raise SettingsError(problem, names=[name])


def _explained(error: ValidationError, origins: Mapping[str, SettingSource]) -> SettingsError:
    problems = []
    names = []
    for detail in error.errors(include_url=False, include_context=False):
        sentence = detail["msg"].removeprefix("Value error, ").partition(", unable to parse")[0]
        if detail["loc"]:
            name = str(detail["loc"][0])
            names.append(name)
            sentence = f"{name} (from {origins.get(name, 'default')}): {sentence[0].lower()}{sentence[1:]}"
            if not is_secret(Settings.model_fields[name]):
                sentence += f", not {str(detail['input'])[:LONGEST_SHOWN]!r}"
        problems.append(sentence)
    return SettingsError("; ".join(problems), names=names)
