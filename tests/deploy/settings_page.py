"""The lists of the settings page, made from the settings: `python -m tests.deploy.settings_page` writes them.

The text outside the two marks of the page is written by hand and left alone.
"""

from __future__ import annotations

import re
import textwrap
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
from evictstream.streams.settings.meanings import meanings
from evictstream.streams.settings.topics import TopicSettings
from evictstream.streams.settings.trial import TrialSettings
from tests.deploy.pages import ROOT

PAGE = ROOT / "docs" / "settings.md"
WIDTH = 120
BEGIN = "<!-- The lists are made by `python -m tests.deploy.settings_page`; a test holds them to the code. -->"
END = "<!-- End of the lists. -->"

GROUPS: dict[str, type[SettingsGroup]] = {
    "Connection": ConnectionSettings,
    "Topics": TopicSettings,
    "Engine": EngineSettings,
    "Gates": GateSettings,
    "Evictions": EvictionSettings,
    "Feeds": FeedSettings,
    "Health": HealthSettings,
    "Trying out": TrialSettings,
    "Logging": LoggingSettings,
}

_UNITS = {"seconds": "seconds", "minutes": "minutes", "hours": "hours", "bytes": "bytes", "ratio": "share"}
_BOUNDS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


def lists() -> str:
    """Make all lists, one for each group, in the order in which `evictstream config` shows the settings."""
    return "\n".join(_list(title, group) for title, group in GROUPS.items())


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


def _list(title: str, group: type[SettingsGroup]) -> str:
    meaning = " ".join((group.__doc__ or "").split())
    said = meanings(group)
    entries = [_entry(name, field, said[name]) for name, field in group.model_fields.items()]
    return "\n".join([f"## {title}", "", meaning, "", *entries, ""])


def _entry(name: str, field: FieldInfo, meaning: str) -> str:
    shown = default(field)
    end = "no default" if shown == "-" else f"default `{shown}`"
    return textwrap.fill(
        f"- `{variable(name)}` ({_takes(name, field)}; {end}): {meaning}",
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


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
    """Return the page with its lists made from the settings."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, f"{PAGE.name} has lost the first mark"
    assert end, f"{PAGE.name} has lost the second mark"
    return f"{head}{BEGIN}\n\n{lists()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
