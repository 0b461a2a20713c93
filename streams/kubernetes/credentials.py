"""Who the requests come from: what a user of a kubeconfig says, as headers and a client certificate.

All that client-go honours is honoured, or refused by name. Nothing leads to requests without credentials, or with other
rights, than the user of the kubeconfig asks for.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubernetes.config.config_exception import ConfigException

from evictstream.streams.kubernetes.exec_plugin import run_plugin
from evictstream.streams.kubernetes.kubeconfig import KubeconfigContext, Section, text_of

_CERTIFICATE: Final = ("client-certificate", "client-certificate-data", "client-key", "client-key-data")

_IMPERSONATED: Final = ("as-uid", "as-groups", "as-user-extra")

_UNESCAPED: Final = re.compile(rb"[A-Za-z0-9!#$&'*+.^_`|~-]")
"""Bytes of a header's name that stay as they are (client-go, transport/round_trippers.go); `%` is escaped too."""

_NO_HEADER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

Header = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who sends, and until when that holds.

    Attributes:
        headers: of each request; one name may come several times.
        certificate: fields of a kubeconfig's user that hold the client certificate and its key; empty for none.
        expires_at: seconds since 1970, as a plugin says; None if it does not.
    """

    headers: tuple[Header, ...] = ()
    certificate: Section = dataclasses.field(default_factory=dict)
    expires_at: float | None = None

    @property
    def are_none(self) -> bool:
        """Whether the API server would take the sender for anonymous."""
        return not self.certificate and all(name != "Authorization" for name, _ in self.headers)


def read_credentials(context: KubeconfigContext) -> Credentials:
    """Read what the context's user asks for; runs its plugin.

    Raises:
        ConfigException: it cannot be had, or it is nothing that evictstream can honour.
        OSError: a file cannot be read.
    """
    user = context.user
    if user.get("auth-provider") is not None:
        raise ConfigException("the user's auth-provider is not supported; use an exec plugin")
    authorization = _authorization(user)
    certificate = _certificate(user)
    expires_at = None
    if not authorization and user.get("exec") is not None:  # as client-go: a token of the user's own comes first
        shown = run_plugin(user["exec"], context.cluster)
        authorization = f"Bearer {shown.token}" if shown.token else ""
        certificate = shown.certificate or certificate
        expires_at = shown.expires_at
    headers = [("Authorization", authorization)] if authorization else []
    return Credentials(
        headers=tuple((name, _header(name, value)) for name, value in [*headers, *_impersonation(user)]),
        certificate=certificate,
        expires_at=expires_at,
    )


def _authorization(user: Section) -> str:
    token, name, password = (text_of(user, field) for field in ("token", "username", "password"))
    if user.get("tokenFile"):
        token = Path(text_of(user, "tokenFile")).read_text().strip()
        if not token:
            raise ConfigException("the user's tokenFile is empty")
    if password and not name:
        raise ConfigException("the user has a password but no username")
    if token and name:
        raise ConfigException("the user has a token and a username; only one is allowed")
    if name:
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
    return f"Bearer {token}" if token else ""


def _certificate(user: Section) -> Section:
    fields = {field: text_of(user, field) for field in _CERTIFICATE if user.get(field)}
    if fields and len({field.removesuffix("-data") for field in fields}) == 1:
        raise ConfigException("the user has only one of client-certificate and client-key")
    return fields


def _impersonation(user: Section) -> list[Header]:
    """List the headers as client-go has them (transport/round_trippers.go)."""
    name = text_of(user, "as")
    if not name:
        asked = [field for field in _IMPERSONATED if user.get(field)]
        if asked:
            raise ConfigException(f"the user has {', '.join(asked)} without as")
        return []
    headers = [("Impersonate-User", name)]
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", text_of(user, "as-uid")))
    headers += [("Impersonate-Group", group) for group in _texts(user.get("as-groups"), "as-groups")]
    extra = user.get("as-user-extra") or {}
    if not isinstance(extra, Mapping):
        raise ConfigException("the user's as-user-extra is malformed")
    for key, values in extra.items():
        field = f"Impersonate-Extra-{_escaped(str(key))}"
        headers += [(field, value) for value in _texts(values, "as-user-extra")]
    return headers


def _texts(values: Any, field: str) -> list[str]:
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ConfigException(f"the user's {field} is not a list of strings")
    return values


def _escaped(key: str) -> str:
    encoded = (bytes([byte]) for byte in key.encode())
    return "".join(one.decode() if _UNESCAPED.fullmatch(one) else f"%{one[0]:02X}" for one in encoded)


def _header(name: str, value: str) -> str:
    """Return what `http.client` writes as UTF-8, as Go does; it takes each character for a byte."""
    if _NO_HEADER.search(value):
        raise ConfigException(f"the user's {name} has control characters")
    return value.encode().decode("latin-1")
