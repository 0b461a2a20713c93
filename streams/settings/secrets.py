"""Secrets among the settings: how they are hidden in texts, whatever wrote them."""

from __future__ import annotations

import base64
import json
import re
from typing import get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

MASK = "********"

SHORTEST_HIDDEN = 4
"""Shorter values are left alone in texts. They occur in half of all words and numbers: a log without these could not be
read, and its blanks would show the value all the same."""

_LOGIN = re.compile(r"(?<=://)[^\s/?#]+(?=@)")
"""Name and password in `https://name:password@host`, as kubeconfigs and proxies may have them."""

_LAYERS = 3
"""How often a value may have been quoted: in a configuration, in the exception that names it, in a line of JSON."""


def is_secret(field: FieldInfo) -> bool:
    """Whether a setting is shown nowhere."""
    return SecretStr in (field.annotation, *get_args(field.annotation))


class HiddenText(str):
    """A secret on its way to a client library, which may show its configuration: its representation is the mask."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show nothing."""
        return repr(MASK)


class Hider:
    """Replaces the values of all secret settings in a text, also escaped, quoted, as bytes and in base64."""

    def __init__(self, settings: BaseModel | None = None) -> None:
        """Hide whatever of these settings is a `SecretStr`; without settings, nothing."""
        values = [] if settings is None else [getattr(settings, name) for name in type(settings).model_fields]
        secrets = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        forms = {form for secret in secrets if len(secret) >= SHORTEST_HIDDEN for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def hide(self, text: str) -> str:
        """Return the text with the mask wherever a secret stood, or what an address has before its host."""
        if "://" in text:
            text = _LOGIN.sub(MASK, text)
        return text if self._pattern is None else self._pattern.sub(MASK, text)


def _forms(secret: str) -> set[str]:
    forms = {secret, " ".join(secret.split())}  # errors are put into one line
    for _ in range(_LAYERS):
        forms |= {escaped for form in forms for escaped in _escaped(form)}
    raw = secret.encode()
    for before in range(3):  # base64 writes three bytes at a time, so the place within a text matters
        text = base64.b64encode(bytes(before) + raw).decode()
        forms.add(text[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])  # only what no neighbour changes
    return {form for form in forms if len(form) >= SHORTEST_HIDDEN}


def _escaped(form: str) -> tuple[str, ...]:
    both_quotes = "'\""  # with both of them in a text Python escapes one
    return (
        repr(form)[1:-1],
        repr(form + both_quotes)[1:-4],
        repr(form.encode())[2:-1],
        repr((form + both_quotes).encode())[2:-4],
        json.dumps(form)[1:-1],
        json.dumps(form, ensure_ascii=False)[1:-1],
    )
