"""Reads one context of a kubeconfig as kubectl reads it: of several files the first that names something counts.

The client library merges files too, but takes the last current context, and sends requests without credentials where a
user is missing. What kubectl would refuse is refused here, by name.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]
from kubernetes.config.config_exception import ConfigException

_SECTIONS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}

_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields that name files, from the folder of the kubeconfig that holds them."""

Section = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigContext:
    """A context with what it names; files have absolute names.

    Attributes:
        name: of the context.
        cluster: where, and what vouches for it.
        user: who; empty where the context names none, which kubectl takes for an anonymous user.
    """

    name: str
    cluster: Section
    user: Section


def read_context(paths: str, wanted: str | None) -> KubeconfigContext:
    """Read a context.

    Args:
        paths: of the files, with the path separator between them; those that do not exist are left out.
        wanted: name of the context; None for the current one.

    Raises:
        ConfigException: there is no file, no such context, or what it names is missing.
        OSError: a file cannot be read.
        yaml.YAMLError: one is no YAML.
    """
    sections: dict[str, dict[str, Section]] = {name: {} for name in _SECTIONS}
    current = ""
    files = [path for path in (expanded(one) for one in paths.split(os.pathsep) if one) if path.exists()]
    if not files:
        raise ConfigException("the file does not exist")
    for file in files:
        whole = _mapping(yaml.safe_load(file.read_text()) or {}, str(file))
        current = current or text_of(whole, "current-context")
        for plural, singular in _SECTIONS.items():
            for entry in whole.get(plural) or ():
                section = _mapping(_mapping(entry, plural).get(singular) or {}, plural)
                sections[plural].setdefault(text_of(entry, "name"), _absolute(section, file.absolute().parent))
    name = wanted or current
    if not name:
        raise ConfigException("it has no current context")
    context = _named(sections["contexts"], "context", name)
    user = text_of(context, "user")
    return KubeconfigContext(
        name=name,
        cluster=_named(sections["clusters"], "cluster", text_of(context, "cluster")),
        user=_named(sections["users"], "user", user) if user else {},
    )


def expanded(path: str) -> Path:
    """Return a file's path with the home folder for `~`; without a home folder, as in a container, it stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - `Path` raises an error where there is none


def text_of(section: Section, field: str) -> str:
    """Return a field's text; empty where it is not set.

    Raises:
        ConfigException: it is something else than text.
    """
    value = section.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigException(f"{field} is not a string")
    return value


def _mapping(value: object, where: str) -> Section:
    if not isinstance(value, dict):
        raise ConfigException(f"{where}: an entry is malformed")
    return value


def _named(entries: Mapping[str, Section], kind: str, name: str) -> Section:
    if name not in entries:
        raise ConfigException(f"it has no {kind} {name!r}")
    return entries[name]


def _absolute(section: Section, folder: Path) -> Section:
    """Give names of files as seen from anywhere; a plugin's name without a folder is looked for in `PATH`."""
    changes: dict[str, Any] = {field: str(folder / text_of(section, field)) for field in _FILES if section.get(field)}
    plugin = section.get("exec")
    if isinstance(plugin, dict) and os.sep in text_of(plugin, "command"):
        changes["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return {**section, **changes}
