"""The tables of the settings page, made from the settings: `python -m tests.deploy.settings_page` writes them.

What stands outside the two marks in the page is written by hand and left alone.
"""

from __future__ import annotations

import re
from typing import Any, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from evictstream.streams.settings.connection import ConnectionSettings
from evictstream.streams.settings.engine import EngineSettings
from evictstream.streams.settings.evictions import EvictionSettings
from evictstream.streams.settings.feeds import FeedSettings
from evictstream.streams.settings.gates import GateSettings
from evictstream.streams.settings.group import SettingsGroup
from evictstream.streams.settings.health import HealthSettings
from evictstream.streams.settings.loading import ENVIRONMENT_PREFIX
from evictstream.streams.settings.logging import LoggingSettings
from evictstream.streams.settings.topics import TopicSettings
from tests.deploy.pages import ROOT

PAGE = ROOT / "docs" / "settings.md"
BEGIN = "<!-- The tables are made by `python -m tests.deploy.settings_page`; a test holds them to the code. -->"
END = "<!-- End of the tables. -->"

GROUPS: dict[str, type[SettingsGroup]] = {
    "Connection": ConnectionSettings,
    "Topics": TopicSettings,
    "Engine": EngineSettings,
    "Gates": GateSettings,
    "Evictions": EvictionSettings,
    "Feeds": FeedSettings,
    "Health": HealthSettings,
    "Logging": LoggingSettings,
}

_UNITS = {"seconds": "seconds", "minutes": "minutes", "hours": "hours", "bytes": "bytes", "ratio": "share"}
_BOUNDS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


def tables() -> str:
    """Make all tables, one for each group, in the order in which `evictstream config` shows the settings."""
    return "\n".join(_table(title, group) for title, group in GROUPS.items())


def variable(name: str) -> str:
    """Spell a setting as its environment variable."""
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def default(field: FieldInfo) -> str:
    """Spell a default as one would write it in the environment; a dash for none."""
    value = field.default
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _table(title: str, group: type[SettingsGroup]) -> str:
    meaning = " ".join((group.__doc__ or "").split())
    lines = [f"## {title}", "", meaning, "", "| variable | takes | default | what, and why |", "|---|---|---|---|"]
    for name, field in group.model_fields.items():
        what = " ".join((field.description or "").split()).replace("|", "\\|")
        shown = default(field)
        lines.append(
            f"| `{variable(name)}` | {_takes(name, field)} | {shown if shown == '-' else f'`{shown}`'} | {what} |"
        )
    return "\n".join([*lines, ""])


def _takes(name: str, field: FieldInfo) -> str:
    kind = field.annotation
    optional = [each for each in get_args(kind) if each is not type(None)]
    if type(None) in get_args(kind):
        (kind,) = optional
    if kind is bool:
        return "`true` or `false`"
    if kind is SecretStr:
        return "text, shown nowhere"
    literals = _literals(kind)
    if literals:
        return " or ".join(f"`{each}`" for each in literals)
    if kind in (int, float):
        return ", ".join([_unit(name, kind), *_limits(field)])
    return "text"


def _literals(kind: Any) -> tuple[str, ...]:
    values = get_args(kind)
    return values if get_origin(kind) is not None and all(isinstance(each, str) for each in values) else ()


def _unit(name: str, kind: Any) -> str:
    found = _UNITS.get(re.split("_", name)[-1])
    return found or ("number" if kind is float else "count")


def _limits(field: FieldInfo) -> list[str]:
    return [
        f"{word} {getattr(rule, sign):g}"
        for rule in field.metadata
        for sign, word in _BOUNDS.items()
        if getattr(rule, sign, None) is not None
    ]


def rewritten(text: str) -> str:
    """Return the page with its tables made anew."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, f"{PAGE.name} has lost the first mark"
    assert end, f"{PAGE.name} has lost the second mark"
    return f"{head}{BEGIN}\n\n{tables()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
