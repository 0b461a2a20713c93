"""Labels of a cluster as people give them to its feed: in the form of Kubernetes' labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from evictstream.models.messages.fleet import LONGEST_LABEL_VALUE, MOST_CLUSTER_LABELS
from evictstream.streams.errors import WrongUseError

_LONGEST_PREFIX: Final = 253
_LONGEST_NAME: Final = 63
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def labels_of(texts: Iterable[str]) -> dict[str, str]:
    """Read `KEY=VALUE`, each key once.

    Raises:
        WrongUseError: a text is no label, a key is given twice, or there are too many.
    """
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise WrongUseError(f"--label {text} has no =", next_step="write --label KEY=VALUE")
        if not _is_key(key):
            problem = f"{key!r} cannot be the key of a label"
            raise WrongUseError(
                problem, next_step="use letters, digits, -, _ and dots, as in topology.example.com/site"
            )
        if not is_label_value(value):
            problem = f"{value!r} cannot be the value of a label"
            raise WrongUseError(problem, next_step="use up to 63 letters, digits, -, _ and dots")
        if key in labels:
            raise WrongUseError(f"--label {key} is given twice")
        labels[key] = value
    if len(labels) > MOST_CLUSTER_LABELS:
        raise WrongUseError(f"{len(labels)} labels are given; {MOST_CLUSTER_LABELS} are the most")
    return labels


def is_label(key: str, value: str) -> bool:
    """Whether both have the form that Kubernetes asks of a label."""
    return _is_key(key) and is_label_value(value)


def is_label_value(value: str) -> bool:
    """Whether it has the form that Kubernetes asks of a label's value, which may be empty."""
    return not value or (len(value) <= LONGEST_LABEL_VALUE and _WORD.fullmatch(value) is not None)


def is_subdomain(name: str, longest: int = _LONGEST_PREFIX) -> bool:
    """Whether it is a name as most objects of Kubernetes have, such as `a.example`, of so many characters."""
    return len(name) <= longest and _PREFIX.fullmatch(name) is not None


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= _LONGEST_NAME and _WORD.fullmatch(name) is not None
