"""Reads fields of raw objects that validation does not check, with the same errors for wrong types."""

from __future__ import annotations

from collections.abc import Mapping

from evictstream.kit.rules.validation import FieldError
from evictstream.kit.rules.validation.field_errors import wrong_type
from evictstream.kit.rules.validation.raw import object_at, text_at

Fields = Mapping[object, object]
"""A raw object. In each function below `path` is that of the object, and broken rules go into `errors`."""


def child_at(value: Fields, name: str, path: str, errors: list[FieldError]) -> Fields:
    """Return an object; empty if it is absent."""
    return object_at(value.get(name), f"{path}.{name}" if path else name, errors) or {}


def flag_at(value: Fields, name: str, path: str, errors: list[FieldError]) -> bool:
    """Return a flag; false if it is absent."""
    flag = value.get(name)
    if flag is not None and not isinstance(flag, bool):
        errors.append(wrong_type(f"{path}.{name}", flag, "true or false"))
    return flag is True


def texts_at(value: Fields, name: str, path: str, errors: list[FieldError]) -> dict[str, str]:
    """Return a map of texts, such as annotations; empty if it is absent."""
    texts = child_at(value, name, path, errors)
    return {str(key): text_at(texts, str(key), f"{path}.{name}", errors) or "" for key in texts}


def field_entries_at(value: Fields, name: str, path: str, errors: list[FieldError]) -> list[tuple[str, Fields]]:
    """Return a list of objects, each with its path; empty if it is absent."""
    listed = value.get(name)
    if listed is None:
        return []
    if not isinstance(listed, list):
        errors.append(wrong_type(f"{path}.{name}", listed, "a list"))
        return []
    entries = ((f"{path}.{name}[{index}]", entry) for index, entry in enumerate(listed))
    return [(at, fields) for at, entry in entries if (fields := object_at(entry, at, errors)) is not None]
